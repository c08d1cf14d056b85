//! Sorting of small inputs: in chunks, one block each, which are then merged.

#![deny(unsafe_op_in_unsafe_fn)]

use super::lowered::Runs;
use crate::compare::{HoleOrder, Less};
use crate::host::runtime::loading::Upcoming;
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::merge::{self, MAX_PLACED};
use crate::sized;
use crate::sort::device::digits::ByDigits;
use crate::sort::device::instances::{sort_digits, sort_short};
use crate::sort::device::shape::{BLOCK_THREADS, BlockSort, SMALL_ITEMS, SMALL_THREADS, ShortSort, block_items};
use crate::sort::{Digits, RadixCode};
use crate::{DeviceSlice, Error, Stream};
use bytemuck::Pod;
use std::marker::PhantomData;

/// The number of items of a short chunk. Sorting a chunk keeps one multiprocessor busy, so short chunks are sorted sooner,
/// and take longer to merge.
const SHORT: usize = SMALL_THREADS as usize * SMALL_ITEMS;

/// Returns the number of items of a long chunk.
const fn long<K, V>() -> usize {
    BLOCK_THREADS as usize * block_items::<K, V>()
}

/// Names the kernel that merges chunks of plain numbers.
fn merged<K>(next: &mut Upcoming) {
    merge::placed(size_of::<K>(), next);
}

/// The division of the input into chunks.
#[derive(Clone, Copy)]
pub(crate) struct Chunks {
    /// The number of items per chunk; the last chunk may have fewer.
    pub len: usize,
    digits: Digits,
}

impl Chunks {
    /// Returns the chunks in which to sort the items. Returns `None` if there are so many items that distributing them
    /// digit by digit is faster; that limit grows with the number of digits.
    pub fn of(from: Columns, digits: Digits) -> Option<Self> {
        // Keys of 16 bytes are not merged.
        let most = if from.keys.size() > 8 { 1 } else { MAX_PLACED.min(8 * digits.passes() as usize) };
        let chunks = Self::at_most(most, from, digits)?;
        let is_one = from.keys.len() <= chunks.len;
        let has_short = sort_short!(from.sizes() => (K, V), SHORT < long::<K, V>(), else false);
        let are_short = has_short && !is_one && from.keys.len() <= most * SHORT;
        Some(if are_short { Self { len: SHORT, digits } } else { chunks })
    }

    /// Returns long chunks, or `None` if there are more than `chunks` of them.
    pub fn at_most(chunks: usize, from: Columns, digits: Digits) -> Option<Self> {
        let len = sort_digits!(from.sizes() => (K, V, ITEMS, BLOCK_ITEMS), long::<K, V>());
        (from.keys.len() <= chunks.saturating_mul(len)).then_some(Self { len, digits })
    }

    /// Sorts each chunk separately. Source and target may be the same memory: a block reads its whole chunk before it
    /// writes.
    pub fn sort(self, stream: &Stream, from: Columns, to: ColumnsMut) -> Result<(), Error> {
        let chunks = from.keys.len().div_ceil(self.len);
        if chunks == 0 {
            return Ok(());
        }
        let (digits, passes) = (self.digits, self.digits.passes());
        let are_merged = chunks > 1 && from.keys.size() <= 8;
        if self.len == SHORT {
            sort_short!(from.sizes() => (K, V), {
                let (keys, from, to) = (from.keys.prefix::<K>(), from.as_types::<K, V>(), to.as_types::<K, V>());
                let kernel = ShortSort::<K, V, Digits>::new(keys, to.keys, from.values, to.values, digits, passes)
                    .followed_by(if are_merged { merged::<K> } else { |_| {} });
                // SAFETY: one block per chunk; keys and values have equal lengths.
                return unsafe { stream.launch(kernel, chunks) };
            }, else ());
        }
        sort_digits!(from.sizes() => (K, V, ITEMS, BLOCK_ITEMS), {
            let (keys, from, to) = (from.keys.prefix::<K>(), from.as_types::<K, V>(), to.as_types::<K, V>());
            let kernel =
                BlockSort::<K, V, Digits, BLOCK_ITEMS>::new(keys, to.keys, from.values, to.values, digits, passes)
                    .followed_by(if are_merged { merged::<K> } else { |_| {} });
            // SAFETY: one block per chunk; keys and values have equal lengths.
            unsafe { stream.launch(kernel, chunks) }
        })
    }

    /// Merges sorted chunks of codes of 4 or 8 bytes.
    pub fn place(self, stream: &Stream, from: Columns, to: ColumnsMut) -> Result<(), Error> {
        let all = from.keys.len();
        let starts = (0..all).step_by(self.len);
        let runs: Vec<_> = starts.map(|start| from.slice(start, self.len.min(all - start))).collect();
        let order = sized!(from.keys.size() => C in u32 | u64, {
            // Most keys are plain numbers, whose comparison takes fewer instructions.
            if self.digits.is_natural(C::BITS) {
                HoleOrder::of::<C, Less>(Less)
            } else {
                HoleOrder::of::<C, ByDigits>(self.digits.order())
            }
        }, else unreachable!("only codes of 4 and 8 bytes are merged"));
        merge::place(stream, &runs, to, order)
    }
}

/// Pairs in a few sorted runs. To merge a small batch with other runs, it need not be a single run first: this is one
/// launch, and [`merge::small_runs_pairs`] merges all runs in another.
#[derive(Debug)]
pub struct SortedRuns<K: Pod, V: Pod> {
    runs: Runs,
    types: PhantomData<(K, V)>,
}

impl<K: RadixCode, V: Pod> SortedRuns<K, V> {
    /// Sorts pairs in ascending order into new memory, as at most `most` runs. Returns `None` if there are too many
    /// pairs, if keys have 16 bytes, or if values have another size than 4, 8 or 16 bytes. For zero-sized values, pass an
    /// empty slice.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`], or any launch error.
    pub fn new(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        most: usize,
    ) -> Result<Option<Self>, Error> {
        let runs = Runs::new(stream, keys.into(), values.into(), most)?;
        Ok(runs.map(|runs| Self { runs, types: PhantomData }))
    }

    /// Returns the keys and the values of the runs, in the order of the pairs they were made from.
    pub fn runs(&self) -> impl Iterator<Item = (DeviceSlice<'_, K>, DeviceSlice<'_, V>)> {
        self.runs.runs().map(|(keys, values)| {
            keys.typed().zip(values.typed()).expect("the runs were made for elements of these types")
        })
    }
}
