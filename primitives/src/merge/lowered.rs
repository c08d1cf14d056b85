//! The merge of codes, for callers that know the sizes of their types alone: ordered dictionaries.

use super::{RunsSplits, Splits};
use crate::compare::Less;
use crate::runtime::column::{AnySlice, AnySliceMut};
use crate::sized;
use crate::sort::U256;
use crate::{Error, Stream};

/// A sorted run: codes, and values of 0, 4 or 8 bytes.
pub type Run<'a> = (AnySlice<'a>, AnySlice<'a>);

/// The kernels that merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Tiles of the output, one block each.
    Tiles,
    /// The place of each item, for short runs: see [`place_pairs`](super::place_pairs).
    Places,
}

/// Merges sorted runs of codes of 4, 8, 16 or 32 bytes, in their natural order, together with values of 0, 4 or 8 bytes.
/// Values of no size are not moved.
///
/// # Errors
/// Those of [`runs_pairs`](super::runs_pairs) and [`place_pairs`](super::place_pairs).
pub fn codes(
    stream: &Stream,
    runs: &[Run<'_>],
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    way: Way,
) -> Result<(), Error> {
    let (code, value) = (out.0.size(), out.1.size());
    sized!(code => C in u32 | u64 | u128 | U256, {
        let out_keys = out.0.typed::<C>().expect("codes are aligned");
        sized!(value => W in u32 | u64, {
            let runs: Vec<_> = runs.iter().map(|(keys, values)| {
                (keys.typed::<C>().expect("codes are aligned"), values.typed::<W>().expect("values are aligned"))
            }).collect();
            let out = (out_keys, out.1.typed::<W>().expect("aligned"));
            match way {
                Way::Tiles => super::runs_pairs(stream, &runs, out, Less),
                Way::Places => super::place_pairs(stream, &runs, out, Less),
            }
        }, else {
            let runs: Vec<_> = runs.iter().map(|run| run.0.typed::<C>().expect("aligned")).collect();
            match way {
                Way::Tiles => super::runs_keys(stream, &runs, out_keys, Less),
                Way::Places => super::place_keys(stream, &runs, out_keys, Less),
            }
        })
    }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
}

/// [`Splits::find`] for codes of 4, 8, 16 or 32 bytes in their natural order.
///
/// # Errors
/// Those of [`Splits::find`].
pub fn splits(stream: &Stream, a: AnySlice<'_>, b: AnySlice<'_>, tile: usize) -> Result<Splits, Error> {
    sized!(a.size() => C in u32 | u64 | u128 | U256, {
        Splits::find(stream, a.typed::<C>().expect("aligned"), b.typed::<C>().expect("aligned"), Less, tile)
    }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
}

/// [`RunsSplits::find`] for codes of 4, 8, 16 or 32 bytes in their natural order.
///
/// # Errors
/// Those of [`RunsSplits::find`].
pub fn runs_splits(stream: &Stream, runs: &[AnySlice<'_>], tile: usize) -> Result<RunsSplits, Error> {
    let size = runs.first().map_or(4, AnySlice::size);
    sized!(size => C in u32 | u64 | u128 | U256, {
        let runs: Vec<_> = runs.iter().map(|run| run.typed::<C>().expect("aligned")).collect();
        RunsSplits::find(stream, &runs, Less, tile)
    }, else unreachable!("codes have 4, 8, 16 or 32 bytes"))
}
