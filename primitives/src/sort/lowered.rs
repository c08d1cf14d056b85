//! The sort of codes, for callers that know the sizes of their types alone: ordered dictionaries.

use super::{Options, SortedRuns, U256};
use crate::runtime::column::{AnySlice, AnySliceMut, AnyVec};
use crate::sized;
use crate::{Error, Stream};

/// Sorts codes of 4, 8, 16 or 32 bytes, by their lowest `bits` bits, together with values of 0, 4 or 8 bytes. Values of no
/// size are not moved.
///
/// # Errors
/// Those of [`pairs`](super::pairs).
pub fn codes(
    stream: &Stream,
    from: (AnySlice<'_>, AnySlice<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    bits: u32,
) -> Result<(), Error> {
    let options = Options::new().bits(0..bits);
    sized!(from.0.size() => C in u32 | u64 | u128 | U256, {
        let keys = (from.0.typed::<C>().expect("codes are aligned"), to.0.typed::<C>().expect("codes are aligned"));
        sized!(from.1.size() => W in u32 | u64, {
            let values = (from.1.typed::<W>().expect("aligned"), to.1.typed::<W>().expect("aligned"));
            super::pairs(stream, (keys.0, values.0), (keys.1, values.1), options)
        }, else super::keys(stream, keys.0, keys.1, options))
    }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
}

/// Codes and values in a few sorted runs: see [`SortedRuns`].
#[derive(Debug)]
pub struct Runs {
    keys: AnyVec,
    values: AnyVec,
    len: usize,
}

impl Runs {
    /// Sorts codes with their values in at most `most` runs. Returns `None` if there are too many for that.
    ///
    /// # Errors
    /// Those of [`SortedRuns::new`].
    pub fn new(stream: &Stream, keys: AnySlice<'_>, values: AnySlice<'_>, most: usize) -> Result<Option<Self>, Error> {
        sized!(keys.size() => C in u32 | u64 | u128 | U256, {
            let keys = keys.typed::<C>().expect("codes are aligned");
            sized!(values.size() => W in () | u32 | u64, {
                let values = values.typed::<W>().expect("aligned");
                Ok(SortedRuns::<C, W>::new(stream, keys, values, most)?.map(SortedRuns::into_parts).map(
                    |(keys, values, len)| Self { keys: keys.into(), values: values.into(), len }
                ))
            }, else unreachable!("values have 0, 4 or 8 bytes"))
        }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
    }

    /// Returns the runs, each with its codes and values.
    pub fn runs(&self) -> impl Iterator<Item = (AnySlice<'_>, AnySlice<'_>)> {
        let all = self.keys.len();
        (0..all).step_by(self.len.max(1)).map(move |start| {
            let range = start..all.min(start + self.len);
            let values = if self.values.size() == 0 { 0..0 } else { range.clone() };
            let keys = self.keys.as_slice().slice(range);
            keys.and_then(|keys| Ok((keys, self.values.as_slice().slice(values)?)))
                .expect("runs lie within the vectors")
        })
    }
}
