//! Pairs that are placed one by one, and displace others: what is left over in a build, and in an insertion.

use super::pairs::{self, PairSlices, PairVec};
use super::storage::{Storage, with_table};
use super::work::{InUse, Work, counter};
use crate::device::{BLOCKS_PER_MULTIPROCESSOR, Claims, PLACE_THREADS, PlacePairs};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, Error, Stream};

/// Pairs to place one by one.
pub struct Placement<'a> {
    pub pairs: PairSlices<'a>,
    /// The number of pairs to place, from the first one on: one element.
    pub count: DeviceSlice<'a, u64>,
    /// Whether the first bucket of every pair is known to be full.
    pub skip_first: bool,
    /// The number of pairs that each pair may displace.
    pub limit: u32,
    /// One bit per bucket: all zero before and after.
    pub locks: DeviceSliceMut<'a, u32>,
    /// Room for as many pairs as `pairs`, or none. Unplaced pairs are written to it from the first position on.
    pub leftovers: &'a mut PairVec,
    /// One element, to which the number of unplaced pairs is added. Zero before, if there is room for leftovers.
    pub unplaced: DeviceSliceMut<'a, u64>,
    /// Some counters that become zero, for a later call.
    pub cleared: DeviceSliceMut<'a, u64>,
}

impl Placement<'_> {
    /// Places the pairs. Does not wait.
    ///
    /// # Safety
    /// `count` is at most the number of pairs. Their keys are distinct and not in the table. The buffers are as
    /// [`Placement`] describes them.
    pub unsafe fn launch(self, stream: &Stream, storage: &mut Storage) -> Result<(), Error> {
        let Self { pairs, count, skip_first, limit, mut locks, leftovers, mut unplaced, mut cleared } = self;
        let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks = pairs.0.len().div_ceil(PLACE_THREADS as usize).min(most);
        if blocks == 0 {
            return Ok(());
        }
        with_table!(storage => C, V, {
            let kernel = PlacePairs::new(
                pairs::view::<C, V>(stream, pairs)?,
                count.view(stream)?,
                storage.view_mut::<C, V, WIDTH>(stream)?,
                locks.view_mut(stream)?,
                u32::from(skip_first),
                limit,
                leftovers.view_mut(stream)?,
                unplaced.view_mut(stream)?,
                cleared.view_mut(stream)?,
            );
            // SAFETY: guaranteed by the caller. Any number of blocks will do.
            unsafe { stream.launch(kernel, blocks) }
        })
    }
}

impl Work {
    /// Places the pairs of the overflow, as many as are counted. Those that cannot be placed become the leftovers, and are
    /// counted. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The count is right. The keys are different and not in the table. The work was prepared for at least so many buckets.
    pub unsafe fn place_overflow(&mut self, stream: &Stream, storage: &mut Storage, limit: u32) -> Result<(), Error> {
        let InUse { claims, unplaced, others, .. } = self.counters.in_use()?;
        let overflowed = counter(claims, Claims::Overflowed)?;
        let placement = Placement {
            pairs: self.lists.overflow.slices(),
            count: overflowed.as_slice(),
            skip_first: false,
            limit,
            locks: self.locks.as_mut_slice(),
            leftovers: &mut self.lists.leftovers,
            unplaced,
            cleared: others,
        };
        // SAFETY: there is a lock for every bucket. Each pair leaves at most one pair over, and there is room for them. The
        // caller guarantees the rest.
        unsafe { placement.launch(stream, storage) }
    }

    /// Places the first `len` leftovers. Returns how many are left over again. If it fails before it changes anything, the
    /// leftovers stay as they are. Waits; allocates nothing.
    ///
    /// # Safety
    /// The leftovers have different keys, which are not in the table. The work was prepared for at least so many buckets.
    pub unsafe fn place_leftovers(
        &mut self,
        stream: &Stream,
        storage: &mut Storage,
        len: usize,
        limit: u32,
    ) -> Result<usize, Error> {
        let InUse { claims, mut unplaced, .. } = self.counters.in_use()?;
        counter(claims, Claims::Overflowed)?.copy_from_host(stream, &[len as u64])?;
        unplaced.copy_from_host(stream, &[0])?;
        std::mem::swap(&mut self.lists.overflow, &mut self.lists.leftovers);
        // SAFETY: guaranteed by the caller.
        let placed = unsafe { self.place_overflow(stream, storage, limit) };
        placed.inspect_err(|_| std::mem::swap(&mut self.lists.overflow, &mut self.lists.leftovers))?;
        Ok(self.counters.read(stream)?.unplaced as usize)
    }
}
