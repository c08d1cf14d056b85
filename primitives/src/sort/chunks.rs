//! Sorting of small inputs: in chunks, one block each, which are then merged.

#![deny(unsafe_op_in_unsafe_fn)]

use super::digits::ByDigits;
use super::distribute::Spare;
use super::shape::{BLOCK_THREADS, BlockSort, SMALL_ITEMS, SMALL_THREADS, ShortSort, block_items};
use super::{Digits, RadixCode, Sign};
use crate::compare::{Compare, HoleOrder, Less};
use crate::hole::Held;
use crate::merge::{self, MAX_PLACED};
use crate::runtime::carrier::{carried, reinterpret, reinterpret_mut};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::transfer::Line;
use crate::with_shape;
use crate::{DeviceSlice, DeviceVec, Error, Stream, expect_len};
use bytemuck::Pod;

/// The number of items of a short chunk. Sorting a chunk keeps one multiprocessor busy, so short chunks are sorted sooner,
/// and take longer to merge.
const SHORT: usize = SMALL_THREADS as usize * SMALL_ITEMS;

/// Returns the number of items of a long chunk.
const fn long<K, V>() -> usize {
    BLOCK_THREADS as usize * block_items::<K, V>()
}

/// Returns whether there are chunks that are shorter than long ones. Keys of 16 bytes are not merged, so they come in one
/// long chunk.
const fn has_short<K, V>() -> bool {
    SHORT < long::<K, V>() && size_of::<K>() <= 8
}

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
    pub fn of<K: Pod, V: Pod>(from: Pairs<K, V>, digits: Digits) -> Option<Self> {
        // Keys of 16 bytes are not merged.
        let most = if size_of::<K>() > 8 { 1 } else { MAX_PLACED.min(8 * digits.passes() as usize) };
        let chunks = Self::at_most(most, from, digits)?;
        let is_one = from.keys.len() <= chunks.len;
        let are_short = const { has_short::<K, V>() } && !is_one && from.keys.len() <= most * SHORT;
        Some(if are_short { Self { len: SHORT, digits } } else { chunks })
    }

    /// Returns long chunks, or `None` if there are more than `chunks` of them.
    fn at_most<K: Pod, V: Pod>(chunks: usize, from: Pairs<K, V>, digits: Digits) -> Option<Self> {
        let len = long::<K, V>();
        (from.keys.len() <= chunks.saturating_mul(len)).then_some(Self { len, digits })
    }

    /// Sorts each chunk separately. Source and target may be the same memory: a block reads its whole chunk before it
    /// writes.
    pub fn sort<K: RadixCode, V: Pod>(
        self,
        stream: &Stream,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<(), Error> {
        let chunks = from.keys.len().div_ceil(self.len);
        if chunks == 0 {
            return Ok(());
        }
        let (digits, passes) = (self.digits, self.digits.passes());
        if const { has_short::<K, V>() } && self.len == SHORT {
            let kernel = ShortSort::<K, V, Digits>::new(from.keys, to.keys, from.values, to.values, digits, passes);
            // SAFETY: one block per chunk; keys and values have equal lengths.
            return unsafe { stream.launch(kernel, chunks) };
        }
        with_shape!(ITEMS in 8 | 4 = block_items::<K, V>(), {
            let kernel =
                BlockSort::<K, V, Digits, ITEMS>::new(from.keys, to.keys, from.values, to.values, digits, passes);
            // SAFETY: one block per chunk; keys and values have equal lengths.
            unsafe { stream.launch(kernel, chunks) }
        })
    }

    /// Merges sorted chunks.
    pub fn place<K: RadixCode, V: Pod>(
        self,
        stream: &Stream,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<(), Error> {
        if const { size_of::<K>() == 4 } {
            self.place_as::<K, u32, V>(stream, from, to)
        } else {
            self.place_as::<K, u64, V>(stream, from, to)
        }
    }

    /// Merges sorted chunks of codes that are a `C`.
    fn place_as<K: RadixCode, C: Held, V: Pod>(
        self,
        stream: &Stream,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<(), Error>
    where
        ByDigits: Compare<C>,
        Less: Compare<C>,
    {
        assert_eq!(size_of::<K>(), size_of::<C>(), "only codes of 4 and 8 bytes are merged");
        // SAFETY: codes are numbers; these two have the same size, and so the same type.
        let (keys, to_keys) = unsafe { (reinterpret::<K, C>(from.keys), reinterpret_mut::<K, C>(to.keys)) };
        let runs: Vec<_> = self.runs(Pairs { keys, values: from.values }).collect();
        // Most keys are plain numbers, whose comparison takes fewer instructions.
        let order = if self.digits.is_natural(K::BITS) {
            HoleOrder::of::<C, Less>(Less)
        } else {
            HoleOrder::of::<C, ByDigits>(self.digits.order())
        };
        merge::place(stream, &runs, PairsMut { keys: to_keys, values: to.values }, order)
    }

    /// Returns the chunks.
    fn runs<K: Pod, V: Pod>(self, from: Pairs<K, V>) -> impl Iterator<Item = Pairs<K, V>> {
        (0..from.keys.len()).step_by(self.len).map(move |start| {
            let len = self.len.min(from.keys.len() - start);
            let (first_value, values) = if size_of::<V>() > 0 { (start, len) } else { (0, 0) };
            // SAFETY: the range is within the input.
            unsafe { Pairs { keys: from.keys.slice(start, len), values: from.values.slice(first_value, values) } }
        })
    }
}

/// Pairs in a few sorted runs. To merge a small batch with other runs, it need not be a single run first: this is one
/// launch, and [`merge::place_pairs`] merges all runs in another.
#[derive(Debug)]
pub struct SortedRuns<K: Pod, V: Pod> {
    memory: Spare<K, V>,
    /// The number of pairs per run; the last run may have fewer.
    run: usize,
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
        expect_len("the values of a sort", if size_of::<V>() == 0 { 0 } else { keys.len() }, values.len())?;
        let from = Pairs { keys: keys.raw_view(stream)?, values: values.raw_view(stream)? };
        let digits = Digits::new(Sign::NONE, 0, K::BITS, false);
        if size_of::<K>() > 8 || !matches!(size_of::<V>(), 0 | 4 | 8 | 16) {
            return Ok(None);
        }
        let Some(chunks) = Chunks::at_most(most, from, digits) else { return Ok(None) };
        let mut memory = Spare::new(stream, keys.len())?;
        let to = memory.target(stream)?;
        carried!(
            V => () | u32 | u64 | Line, (from, to),
            |(from, to)| chunks.sort(stream, from, to)?,
            else |_| return Ok(None)
        );
        Ok(Some(Self { memory, run: chunks.len }))
    }

    /// Returns the keys, the values, and the number of pairs per run.
    pub(super) fn into_parts(self) -> (DeviceVec<K>, DeviceVec<V>, usize) {
        let (keys, values) = self.memory.into_parts();
        (keys, values, self.run)
    }

    /// Returns the keys and the values of the runs, in the order of the pairs they were made from.
    pub fn runs(&self) -> impl Iterator<Item = (DeviceSlice<'_, K>, DeviceSlice<'_, V>)> {
        let (keys, values) = self.memory.slices();
        (0..keys.len()).step_by(self.run).map(move |start| {
            let range = start..keys.len().min(start + self.run);
            let values = if size_of::<V>() == 0 { Ok(values) } else { values.slice(range.clone()) };
            keys.slice(range).and_then(|keys| Ok((keys, values?))).expect("runs lie within the memory")
        })
    }
}
