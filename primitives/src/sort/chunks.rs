//! Sorting of small inputs: in chunks, one block each, which are then merged.

#![deny(unsafe_op_in_unsafe_fn)]

use super::distribute::{Source, Spare, Target};
use super::shape::{BLOCK_THREADS, BlockSort, block_items};
use super::{Digits, RadixCode, Sign};
use crate::merge::{self, MAX_PLACED};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::{Error, Global, Stream};
use bytemuck::Pod;

/// The division of the input into chunks.
#[derive(Clone, Copy)]
pub(super) struct Chunks {
    /// The number of items per chunk; the last chunk may have fewer.
    pub len: usize,
    digits: Digits,
}

impl Chunks {
    /// Returns the chunks in which to sort the items. Returns `None` if there are so many items that distributing them
    /// digit by digit is faster; that limit grows with the number of digits.
    pub fn of<K: Pod, V: Pod>(from: Source<K, V>, digits: Digits) -> Option<Self> {
        Self::at_most(MAX_PLACED.min(8 * digits.passes() as usize), from, digits)
    }

    /// Same as [`of`](Self::of), but returns `None` for more than `chunks` chunks.
    fn at_most<K: Pod, V: Pod>(chunks: usize, from: Source<K, V>, digits: Digits) -> Option<Self> {
        let len = BLOCK_THREADS as usize * block_items::<K, V>();
        (from.keys.len() <= chunks * len).then_some(Self { len, digits })
    }

    /// Sorts each chunk separately. Source and target may be the same memory: a block reads its whole chunk before it
    /// writes.
    pub fn sort<K: RadixCode, V: Pod>(
        self,
        stream: &Stream,
        from: Source<K, V>,
        to: Target<K, V>,
    ) -> Result<(), Error> {
        let chunks = from.keys.len().div_ceil(self.len);
        if chunks == 0 {
            return Ok(());
        }
        macro_rules! launch {
            ($items:literal) => {{
                let (digits, passes) = (self.digits, self.digits.passes());
                let kernel =
                    BlockSort::<K, V, Digits, $items>::new(from.keys, to.keys, from.values, to.values, digits, passes);
                // SAFETY: one block per chunk; keys and values have equal lengths.
                unsafe { stream.launch(kernel, chunks) }
            }};
        }
        if const { block_items::<K, V>() == 8 } { launch!(8) } else { launch!(4) }
    }

    /// Merges sorted chunks.
    pub fn place<K: RadixCode, V: Pod>(
        self,
        stream: &Stream,
        from: Source<K, V>,
        to: Target<K, V>,
    ) -> Result<(), Error> {
        let runs: Vec<_> = self.runs(from).collect();
        merge::place(stream, &runs, PairsMut { keys: to.keys, values: to.values }, self.digits)
    }

    /// Returns the chunks.
    fn runs<K: Pod, V: Pod>(self, from: Source<K, V>) -> impl Iterator<Item = Pairs<K, V>> {
        (0..from.keys.len()).step_by(self.len).map(move |start| {
            let len = self.len.min(from.keys.len() - start);
            let (first_value, values) = if size_of::<V>() > 0 { (start, len) } else { (0, 0) };
            // SAFETY: the range is within the input.
            unsafe { Pairs { keys: from.keys.slice(start, len), values: from.values.slice(first_value, values) } }
        })
    }
}

/// A few pairs in sorted runs, for a merge with other runs.
pub(crate) struct SortedRuns<K: Pod, V: Pod> {
    memory: Spare<K, V>,
    chunks: Chunks,
}

impl<K: RadixCode, V: Pod> SortedRuns<K, V> {
    /// Sorts pairs in ascending order into new memory, as at most `most` runs. Returns `None` if there are too many
    /// pairs.
    pub fn new(stream: &Stream, keys: Global<K>, values: Global<V>, most: usize) -> Result<Option<Self>, Error> {
        let from = Source { keys, values };
        let digits = Digits::new(Sign::NONE, 0, K::BITS, false);
        let Some(chunks) = Chunks::at_most(most, from, digits) else { return Ok(None) };
        let mut memory = Spare::new(stream, keys.len())?;
        chunks.sort(stream, from, memory.target(stream)?)?;
        Ok(Some(Self { memory, chunks }))
    }

    /// Returns the runs, in the order of the pairs they were made from.
    pub fn runs(&self, stream: &Stream) -> Result<impl Iterator<Item = Pairs<K, V>>, Error> {
        Ok(self.chunks.runs(self.memory.source(stream)?))
    }
}
