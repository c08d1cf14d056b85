//! Room for the pairs of an insertion that found no slot: further displacements, or a larger table.

use super::build::{Built, full};
use super::claim::{Claiming, Operation, Repeats, no_history};
use super::options::{GROWTH_LOAD, MAX_LOAD, Options, WhenFull};
use super::pairs::{PairSlices, PairVec};
use super::storage::{Storage, probe_blocks, with_table};
use super::table::RawTable;
use super::work::{InUse, Work};
use crate::device::Split;
use gpu_primitives::{DeviceSliceMut, Error, Stream};

impl RawTable {
    /// Finds slots for the first `unplaced` leftovers of an insertion: in this table if its load allows, otherwise in a
    /// larger one, which then replaces the table. Waits. After an error, `unplaced` is the number of leftovers then.
    pub(super) fn make_room(&mut self, stream: &Stream, work: &mut Work, unplaced: &mut usize) -> Result<(), Error> {
        self.known_erased = self.erased.get(stream)?;
        let (len, slots, most) = ((self.placed - self.known_erased) as usize, self.storage.slots(), self.most_keys());
        let total = (len + *unplaced) as u64;
        if total <= most {
            // SAFETY: the leftovers have different keys, which are not in the table. The work is for this table.
            let left = unsafe { work.place_leftovers(stream, &mut self.storage, *unplaced, self.options.evictions)? };
            self.placed += (*unplaced - left) as u64;
            *unplaced = left;
            if left == 0 {
                return Ok(());
            }
            let capacity = (slots as f64 * self.options.load_factor) as usize;
            return self.build_with(stream, work.leftovers(left)?, capacity, self.options.clone());
        }
        if self.options.when_full == WhenFull::Refuse {
            return Err(full(total - most, total, slots));
        }
        if total as f64 <= 2.0 * slots as f64 * self.options.load_factor {
            // SAFETY: the leftovers have different keys, which are not in the table.
            if let Some(storage) = unsafe { self.split_with_leftovers(stream, work, len, *unplaced)? } {
                self.install(stream, Built { storage, len: total, failures: 0 })?;
                self.rebuilds += 1;
                return Ok(());
            }
        }
        // At least twice the room, so a table that grows by many batches is not rebuilt for each of them.
        let capacity = (total as usize).max(2 * len);
        self.build_with(stream, work.leftovers(*unplaced)?, capacity, self.options.clone())
    }

    /// Returns how many keys the table may have before it grows, or fails.
    fn most_keys(&self) -> u64 {
        let load = match self.options.when_full {
            WhenFull::Grow => self.options.load_factor.max(GROWTH_LOAD),
            WhenFull::Refuse => MAX_LOAD,
        };
        (self.storage.slots() as f64 * load) as u64
    }

    /// Returns whether there is certainly room for more keys. The host knows at most how many there are.
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        self.placed - self.known_erased + more as u64 <= self.most_keys()
    }

    /// Rebuilds the table together with other pairs, with room for at least `capacity` keys.
    pub(super) fn build_with(
        &mut self,
        stream: &Stream,
        others: PairSlices<'_>,
        capacity: usize,
        options: Options,
    ) -> Result<(), Error> {
        let more = others.0.len();
        let mut all = self.collect(stream, more)?;
        let len = all.len();
        all.copy_from(stream, len - more, others)?;
        self.build_anew(stream, all.slices(), capacity.max(len), options)
    }

    /// Copies the table of `len` keys to one with twice as many buckets, and inserts the first `unplaced` leftovers there.
    /// Returns `None` if there can be no such table, or if some pairs cannot be placed. The leftovers stay as they are. Waits.
    ///
    /// # Safety
    /// The leftovers have different keys, which are not in the table.
    unsafe fn split_with_leftovers(
        &self,
        stream: &Stream,
        work: &mut Work,
        len: usize,
        unplaced: usize,
    ) -> Result<Option<Storage>, Error> {
        work.lists.overflow.reserve(stream, len + unplaced)?;
        let others = PairVec::uninit(stream, self.storage.sizes(), len + unplaced)?;
        let leftovers = std::mem::replace(&mut work.lists.leftovers, others);
        // SAFETY: there is room for the overflow of all pairs, and for those that cannot be placed. The caller guarantees the
        // rest.
        let result = leftovers.first(unplaced).and_then(|pairs| unsafe { self.split_with(stream, work, len, pairs) });
        work.lists.leftovers = leftovers;
        result
    }

    /// Copies the table of `len` keys to one with twice as many buckets, and inserts the pairs that this moves, and others.
    /// Returns `None` if there can be no such table, or if some pairs cannot be placed. Waits.
    ///
    /// # Safety
    /// The overflow and the leftovers have room for all pairs. The others have different keys, which are not in the table.
    unsafe fn split_with(
        &self,
        stream: &Stream,
        work: &mut Work,
        len: usize,
        others: PairSlices<'_>,
    ) -> Result<Option<Storage>, Error> {
        work.prepare_locks(stream, self.storage.buckets().saturating_mul(2))?;
        let mut moved = PairVec::uninit(stream, self.storage.sizes(), len)?;
        let InUse { moved: mut count, mut claims, .. } = work.counters.in_use()?;
        // SAFETY: there is room for all pairs.
        let Some(mut larger) = (unsafe { self.split(stream, &mut moved, count.reborrow())? }) else {
            return Ok(None);
        };
        for (pairs, count) in [(moved.slices(), Some(count.as_slice())), (others, None)] {
            let claiming = Claiming {
                pairs,
                count,
                repeats: Repeats::None,
                history: &mut no_history(stream, self.storage.sizes())?,
                overflow: &mut work.lists.overflow,
                counts: claims.reborrow(),
            };
            // SAFETY: the keys of a table are different, and the split has counted those that it moves. The others are not
            // among them. There is room for their overflow.
            unsafe { claiming.launch(stream, &mut larger, Operation::Latest)? };
        }
        // SAFETY: the overflow has as many pairs as were counted. Their keys are not in the table.
        unsafe { work.place_overflow(stream, &mut larger, self.options.evictions)? };
        Ok((work.counters.read(stream)?.unplaced == 0).then_some(larger))
    }

    /// Returns a copy with twice as many buckets, without the pairs that are not in the first bucket of their key. These
    /// are appended to `moved`, and their number is added to `moved_count`, one element, zero before. Returns `None` if
    /// there can be no such table. Does not wait.
    ///
    /// # Safety
    /// `moved` has room for these pairs.
    unsafe fn split(
        &self,
        stream: &Stream,
        moved: &mut PairVec,
        mut moved_count: DeviceSliceMut<'_, u64>,
    ) -> Result<Option<Storage>, Error> {
        let Some(map) = self.storage.map().doubled() else { return Ok(None) };
        let mut larger = Storage::uninit(stream, map, self.storage.width(), self.storage.sizes())?;
        with_table!(self.storage => C, V, {
            let kernel = Split::new(
                self.storage.view::<C, V, WIDTH>(stream)?,
                larger.view_mut::<C, V, WIDTH>(stream)?,
                moved.view_mut(stream)?,
                moved_count.view_mut(stream)?,
            );
            // SAFETY: there is a thread per slot. The map is the same with twice as many buckets. The caller guarantees
            // the room.
            unsafe { stream.launch(kernel, probe_blocks(self.storage.slots() as usize))? };
        });
        Ok(Some(larger))
    }
}
