//! The buckets of a table in device memory, and the launches of the kernels that use them.

use super::options::Width;
use super::pairs::{PairSlices, PairVec};
use crate::hash::{Hash, Map};
use crate::kernel::{
    Assign, BLOCKS_PER_MULTIPROCESSOR, CHUNK, Claim, Collect, Count, Entries, Erase, FillTiles, Find, Keep, LONG_TILE,
    Marks, PLACE_THREADS, PROBE_THREADS, Pairs, PlacePairs, Raise, Revert, START_THREADS, Settle, Split, Sweep, Take,
    ThinTiles, TileDigits, TileStarts, Unpack, WALK_THREADS, WalkPairs, spill_slots, tile_buckets,
};
use crate::view::{CuckooView, TableMut, bucket_bytes};
use core::marker::PhantomData;
use gpu_dictionary::{Carrier, WordCode as KeyCode, values_for};
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::monoid::Combine;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, sort};

/// The buckets of a table: keys of type `C`, and values carried as `V`.
#[derive(Debug)]
pub struct Storage<C: KeyCode, V: Carrier> {
    /// All buckets of the map.
    words: DeviceVec<u64>,
    map: Map<C>,
    width: Width,
    values: PhantomData<V>,
}

/// Evaluates an expression with the constant `WIDTH`, the number of keys per bucket.
macro_rules! with_width {
    ($storage:expr, $body:expr) => {
        match $storage.width {
            Width::Four => {
                const WIDTH: usize = 4;
                $body
            }
            Width::Eight => {
                const WIDTH: usize = 8;
                $body
            }
        }
    };
}

/// Returns the number of blocks with a thread for each of `len` elements.
fn probe_blocks(len: usize) -> usize {
    len.div_ceil(PROBE_THREADS as usize)
}

/// The result of [`Storage::fill`].
pub struct Filled<C: KeyCode, V: Carrier> {
    pub storage: Storage<C, V>,
    /// The pairs whose first bucket was full, and room after them.
    pub spill: PairVec<C, V>,
    /// The counters of [`Count`].
    pub counts: DeviceVec<u64>,
}

/// The arguments of [`Storage::place`].
pub struct PlaceJob<'a, C: KeyCode, V: Carrier> {
    pub pairs: PairSlices<'a, C, V>,
    /// The number of pairs to place, from the first one on: one element.
    pub count: DeviceSlice<'a, u64>,
    /// Whether the first bucket of every pair is known to be full.
    pub skip_first: bool,
    /// The number of pairs that each pair may displace.
    pub limit: u32,
    /// One bit per bucket: all zero before and after.
    pub locks: DeviceSliceMut<'a, u32>,
    /// Room for as many pairs as `pairs`, or none. Unplaced pairs are written to it from the first position on.
    pub leftovers: &'a mut PairVec<C, V>,
    /// One element, to which the number of unplaced pairs is added. Zero before, if there is room for leftovers.
    pub unplaced: DeviceSliceMut<'a, u64>,
    /// Some counters that become zero, for a later call.
    pub cleared: DeviceSliceMut<'a, u64>,
}

/// Pairs on their way to a slot.
struct Walkers<C: KeyCode, V: Carrier> {
    pairs: PairVec<C, V>,
    /// The buckets from which they will displace others.
    targets: DeviceVec<u32>,
}

/// What [`Storage::claim`] needs to find equal keys, if there can be any.
pub enum Repeats<'a> {
    /// All keys are different.
    None,
    /// Keys may be equal.
    Possible {
        /// A mark for every bucket.
        marks: &'a mut DeviceVec<u32>,
        /// A number that no mark has, from 1 to [`Marks::LAST_BATCH`].
        batch: u32,
        entries: EntrySlice<'a>,
        /// Whether all pairs with equal keys are to be recorded in the entries, or at least the last one.
        all_count: bool,
    },
}

/// Entries for the last positions of keys: more of them than keys, all at most `base` before. The base plus the number of
/// keys is less than 2^32.
pub struct EntrySlice<'a> {
    pub words: DeviceSliceMut<'a, u32>,
    /// Decides where the search for a key begins.
    pub hash: Hash,
    pub base: u32,
}

impl EntrySlice<'_> {
    /// Returns the entries as an argument for kernels on `stream`.
    fn view(&mut self, stream: &Stream) -> Result<View<'_, Entries>, Error> {
        Entries::view(stream, &mut self.words, self.hash, self.base)
    }
}

/// The arguments of [`Storage::claim`].
pub struct ClaimJob<'a, C: KeyCode, V: Carrier> {
    pub pairs: PairSlices<'a, C, V>,
    /// The number of pairs to insert, from the first one on: one element. All pairs if there is none.
    pub count: Option<DeviceSlice<'a, u64>>,
    /// What finds equal keys.
    pub repeats: Repeats<'a>,
    /// Room for the fate of every pair and for the old values; or none.
    pub history: &'a mut PairVec<u8, V>,
    /// Room for the pairs that find all of their buckets full.
    pub overflow: &'a mut PairVec<C, V>,
    /// The counters of [`Claims`](crate::kernel::Claims), to which the numbers are added.
    pub counts: DeviceSliceMut<'a, u64>,
}

impl<C: KeyCode, V: Carrier> Storage<C, V> {
    /// Allocates buckets whose contents are not defined yet.
    fn uninit(stream: &Stream, map: Map<C>, width: Width) -> Result<Self, Error> {
        // The division is exact: a bucket has at least 4 slots of 4 bytes.
        let bucket_words = bucket_bytes::<C, V>(width.keys()) / size_of::<u64>();
        let words = stream.uninit(map.hash.buckets as usize * bucket_words)?;
        Ok(Self { words, map, width, values: PhantomData })
    }

    /// Copies the buckets. Does not wait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut words = stream.uninit(self.words.len())?;
        words.copy_from(stream, &self.words)?;
        Ok(Self { words, map: self.map, width: self.width, values: PhantomData })
    }

    /// Builds the buckets, with the pairs that fit into the first bucket of their key. If a key occurs more than once,
    /// the last pair wins. Does not wait.
    pub fn fill(
        stream: &Stream,
        map: Map<C>,
        width: Width,
        pairs: PairSlices<'_, C, V>,
    ) -> Result<Filled<C, V>, Error> {
        let len = pairs.0.len();
        let digits = TileDigits::new(map.hash, tile_buckets::<C>(width.keys()));
        let tiles = digits.tiles();
        let mut storage = Self::uninit(stream, map, width)?;
        let mut counts = stream.zeroed(Count::ALL)?;

        // If there is only one tile, the pairs are already in tile order.
        let mut by_tile = PairVec::uninit(stream, if tiles == 1 { 0 } else { len })?;
        if tiles > 1 {
            let to = (&mut by_tile.keys, &mut by_tile.values);
            sort::pairs_by_digits(stream, pairs, to, digits, digits.passes())?;
        }
        let sorted = if tiles == 1 { pairs } else { by_tile.slices() };
        let mut starts = stream.uninit::<u32>(tiles + 1)?;
        let find_starts = TileStarts::new(sorted.0.view(stream)?, digits, starts.view_mut(stream)?);
        // SAFETY: there is a thread per start, and the keys are in tile order.
        unsafe { stream.launch(find_starts, (tiles + 1).div_ceil(START_THREADS as usize))? };

        // A single tile is long only if the table is far too small for the pairs.
        let chunks = if tiles == 1 || len <= LONG_TILE { 0 } else { len.div_ceil(CHUNK) };
        let mut kept = stream.uninit::<u32>(chunks)?;
        if chunks > 0 {
            let room = by_tile.view_mut(stream)?;
            let thin = ThinTiles::new(room, starts.view(stream)?, digits, kept.view_mut(stream)?);
            // SAFETY: there is a block per chunk. The pairs are in tile order, and the starts are theirs.
            unsafe { stream.launch(thin, chunks)? };
        }
        let sorted = if tiles == 1 { pairs } else { by_tile.slices() };

        let mut spill = PairVec::uninit(stream, len.min(tiles * spill_slots::<C>()))?;
        with_width!(storage, {
            let kernel = FillTiles::new(
                Pairs::view(stream, sorted)?,
                starts.view(stream)?,
                kept.view(stream)?,
                storage.view_mut::<WIDTH>(stream)?,
                spill.view_mut(stream)?,
                counts.view_mut(stream)?,
            );
            // SAFETY: there is a block per tile. The pairs are in tile order, and the starts are theirs, as is what was
            // kept. The spill has room for all pairs, or for all that the tiles may spill. The counters are zero.
            unsafe { stream.launch(kernel, tiles)? };
        });
        Ok(Filled { storage, spill, counts })
    }

    /// Places pairs one by one. Does not wait.
    ///
    /// # Safety
    /// `count` is at most the number of pairs. Their keys are distinct and not in the table. The buffers are as
    /// [`PlaceJob`] describes them.
    pub unsafe fn place(&mut self, stream: &Stream, job: PlaceJob<'_, C, V>) -> Result<(), Error> {
        let PlaceJob { pairs, count, skip_first, limit, mut locks, leftovers, mut unplaced, mut cleared } = job;
        let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks = pairs.0.len().div_ceil(PLACE_THREADS as usize).min(most);
        if blocks == 0 {
            return Ok(());
        }
        with_width!(self, {
            let kernel = PlacePairs::new(
                Pairs::view(stream, pairs)?,
                count.view(stream)?,
                self.view_mut::<WIDTH>(stream)?,
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

    /// Takes `steps` steps with pairs, as many as `count` says, whose first bucket is full: see [`WalkPairs`]. Returns those
    /// that have no slot yet, and how many there were after each step. Does not wait.
    ///
    /// # Safety
    /// `count` is one element, at most the number of pairs. Their keys are distinct and not in the table, and their first
    /// buckets are full.
    pub unsafe fn walk(
        &mut self,
        stream: &Stream,
        pairs: PairVec<C, V>,
        count: DeviceSlice<'_, u64>,
        steps: u32,
    ) -> Result<(PairVec<C, V>, DeviceVec<u64>), Error> {
        let len = pairs.keys.len();
        let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks = len.div_ceil(WALK_THREADS as usize).clamp(1, most);
        let mut turns = stream.zeroed::<u32>(self.buckets() as usize)?;
        let mut counts = stream.zeroed::<u64>(steps as usize)?;
        // The first step has no targets.
        let mut from = Walkers { pairs, targets: stream.uninit(0)? };
        let mut to = Walkers { pairs: PairVec::uninit(stream, len)?, targets: stream.uninit(len)? };
        for step in 0..steps {
            let (known, unknown) = counts.as_mut_slice().split_at_mut(step as usize)?;
            let count = if step == 0 { count } else { known.slice(step as usize - 1..)? };
            let (mut left, _) = unknown.split_at_mut(1)?;
            with_width!(self, {
                let kernel = WalkPairs::new(
                    Pairs::view(stream, from.pairs.slices())?,
                    from.targets.view(stream)?,
                    count.view(stream)?,
                    self.view_mut::<WIDTH>(stream)?,
                    turns.view_mut(stream)?,
                    step + 1,
                    to.pairs.view_mut(stream)?,
                    to.targets.view_mut(stream)?,
                    left.view_mut(stream)?,
                );
                // SAFETY: any number of blocks will do. The targets are those of the step before; the first step has none,
                // and first buckets are full. The turns are those of earlier steps. There is room for all pairs.
                unsafe { stream.launch(kernel, blocks)? };
            });
            std::mem::swap(&mut from, &mut to);
            if to.targets.is_empty() {
                to.targets = stream.uninit(len)?;
            }
        }
        Ok((from.pairs, counts))
    }

    /// Looks up keys. Returns the values, or none if `with_values` is false, and 1 or 0 for each key. Does not wait.
    pub fn find(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, C>,
        with_values: bool,
    ) -> Result<(DeviceVec<V>, DeviceVec<u8>), Error> {
        let mut values = stream.uninit(if with_values { keys.len() } else { 0 })?;
        let mut found = stream.uninit(keys.len())?;
        if !keys.is_empty() {
            with_width!(self, {
                let table = self.view::<WIDTH>(stream)?;
                let kernel = Find::new(table, keys.view(stream)?, values.view_mut(stream)?, found.view_mut(stream)?);
                // SAFETY: there is a thread per key. There are as many results as keys, or no values.
                unsafe { stream.launch(kernel, probe_blocks(keys.len()))? };
            });
        }
        Ok((values, found))
    }

    /// Inserts pairs without displacing any others. The old value of a key and the new one are combined. Of equal keys one
    /// takes part; [`settle`](Self::settle) corrects its value. Does not wait.
    ///
    /// # Safety
    /// The buffers are as [`ClaimJob`] describes them. `count` is at most the number of pairs. If there can be no repeats,
    /// the keys are different. There is room for the overflow. The operation is one of values that `V` carries.
    pub unsafe fn claim<O: Combine<V>>(
        &mut self,
        stream: &Stream,
        job: ClaimJob<'_, C, V>,
        operation: O,
    ) -> Result<(), Error> {
        let ClaimJob { pairs, count, repeats, history, overflow, mut counts } = job;
        let len = pairs.0.len();
        if len == 0 {
            return Ok(());
        }
        let (no_count, mut no_marks, mut no_entries) = (stream.uninit(0)?, stream.uninit(0)?, stream.uninit(0)?);
        let count = count.unwrap_or(no_count.as_slice());
        let (marks, batch, mut entries, all_count) = match repeats {
            Repeats::None => {
                let entries = EntrySlice { words: no_entries.as_mut_slice(), hash: self.map.hash, base: 0 };
                (&mut no_marks, 0, entries, false)
            }
            Repeats::Possible { marks, batch, entries, all_count } => (marks, batch, entries, all_count),
        };
        with_width!(self, {
            let kernel = Claim::new(
                self.view_mut::<WIDTH>(stream)?,
                Pairs::view(stream, pairs)?,
                count.view(stream)?,
                Marks::view(stream, marks, batch, all_count)?,
                entries.view(stream)?,
                operation,
                history.view_mut(stream)?,
                overflow.view_mut(stream)?,
                counts.view_mut(stream)?,
            );
            // SAFETY: there is a thread per pair. The rest is guaranteed by the caller.
            unsafe { stream.launch(kernel, probe_blocks(len)) }
        })
    }

    /// Gives every key of a batch the value of its last pair. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// [`claim`](Self::claim) has inserted these pairs with the operation [`Latest`](crate::kernel::Latest), and wrote the
    /// fates and the entries. All keys are in the table.
    pub unsafe fn settle(
        &mut self,
        stream: &Stream,
        pairs: PairSlices<'_, C, V>,
        fates: DeviceSlice<'_, u8>,
        entries: &mut EntrySlice<'_>,
    ) -> Result<(), Error> {
        let blocks = probe_blocks(pairs.0.len());
        let raise = Raise::new(pairs.0.view(stream)?, fates.view(stream)?, entries.view(stream)?);
        // SAFETY: there is a thread per key. The caller guarantees the rest.
        unsafe { stream.launch(raise, blocks)? };
        with_width!(self, {
            let table = self.view_mut::<WIDTH>(stream)?;
            let settle = Settle::new(table, Pairs::view(stream, pairs)?, fates.view(stream)?, entries.view(stream)?);
            // SAFETY: there is a thread per pair. The caller guarantees the rest.
            unsafe { stream.launch(settle, blocks) }
        })
    }

    /// Takes back what an insertion has done to keys that occur more than once, and sets the elements of `reverted` that
    /// belong to them to 1. Adds the number of keys that are absent again to `erased`. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// [`claim`](Self::claim) has inserted pairs with these keys, all of which count, and wrote the history and the entries.
    /// All keys are in the table. There are as many elements of `reverted` as keys.
    pub unsafe fn revert(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, C>,
        history: &mut PairVec<u8, V>,
        entries: &mut EntrySlice<'_>,
        reverted: &mut DeviceVec<u8>,
        erased: &mut DeviceValue<u64>,
    ) -> Result<(), Error> {
        let mut erased = erased.as_mut_slice();
        with_width!(self, {
            let kernel = Revert::new(
                self.view_mut::<WIDTH>(stream)?,
                keys.view(stream)?,
                history.view_mut(stream)?,
                entries.view(stream)?,
                reverted.view_mut(stream)?,
                erased.view_mut(stream)?,
            );
            // SAFETY: there is a thread per key. The caller guarantees the rest.
            unsafe { stream.launch(kernel, probe_blocks(keys.len())) }
        })
    }

    /// Returns a copy with twice as many buckets, without the pairs that are not in the first bucket of their key. These
    /// are appended to `moved`, and their number is added to `moved_count`, one element, zero before. Returns `None` if
    /// there can be no such table. Does not wait.
    ///
    /// # Safety
    /// `moved` has room for these pairs.
    pub unsafe fn split(
        &self,
        stream: &Stream,
        moved: &mut PairVec<C, V>,
        mut moved_count: DeviceSliceMut<'_, u64>,
    ) -> Result<Option<Self>, Error> {
        let Some(map) = self.map.doubled() else { return Ok(None) };
        let mut larger = Self::uninit(stream, map, self.width)?;
        with_width!(self, {
            let kernel = Split::new(
                self.view::<WIDTH>(stream)?,
                larger.view_mut::<WIDTH>(stream)?,
                moved.view_mut(stream)?,
                moved_count.view_mut(stream)?,
            );
            // SAFETY: there is a thread per slot. The map is the same with twice as many buckets. The caller guarantees
            // the room.
            unsafe { stream.launch(kernel, probe_blocks(self.slots() as usize))? };
        });
        Ok(Some(larger))
    }

    /// Copies the contents of all slots, in order. Those of free slots are of no importance. Does not wait.
    pub fn unpack(&self, stream: &Stream) -> Result<PairVec<C, V>, Error> {
        let slots = self.slots() as usize;
        let mut unpacked = PairVec::uninit(stream, slots)?;
        with_width!(self, {
            let kernel = Unpack::new(self.view::<WIDTH>(stream)?, unpacked.view_mut(stream)?);
            // SAFETY: there is a thread and room for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots))? };
        });
        Ok(unpacked)
    }

    /// Sets the values of all pairs, from one value per slot. Does not wait.
    ///
    /// # Panics
    /// If there are not as many values as slots.
    pub fn assign(&mut self, stream: &Stream, values: &DeviceVec<V>) -> Result<(), Error> {
        let slots = self.slots() as usize;
        assert_eq!(values.len(), slots, "there is a value for every slot");
        with_width!(self, {
            let kernel = Assign::new(self.view_mut::<WIDTH>(stream)?, values.view(stream)?);
            // SAFETY: there is a thread and a value for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots)) }
        })
    }

    /// Deletes the pairs whose slots have a 0, and adds their number to `erased`. Does not wait.
    ///
    /// # Panics
    /// If there are not as many elements as slots.
    pub fn keep(&mut self, stream: &Stream, keeps: &DeviceVec<u8>, erased: &mut DeviceValue<u64>) -> Result<(), Error> {
        let slots = self.slots() as usize;
        assert_eq!(keeps.len(), slots, "there is an element for every slot");
        let mut erased = erased.as_mut_slice();
        with_width!(self, {
            let table = self.view_mut::<WIDTH>(stream)?;
            let kernel = Keep::new(table, keeps.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread and an element for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots)) }
        })
    }

    /// Deletes keys, and adds the number of those that were present to `erased`. Does not wait.
    pub fn erase(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, C>,
        erased: &mut DeviceValue<u64>,
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut erased = erased.as_mut_slice();
        with_width!(self, {
            let table = self.view_mut::<WIDTH>(stream)?;
            let kernel = Erase::new(table, keys.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per key.
            unsafe { stream.launch(kernel, probe_blocks(keys.len())) }
        })
    }

    /// Looks up keys, and deletes those that are present: with a pass over all buckets, so for many keys. Returns the values, or
    /// none if they are zero-sized, and 1 or 0 for each key. Adds the number of deleted keys to `erased`. Does not wait.
    ///
    /// # Safety
    /// There is a mark for every bucket, and none has this number of a batch.
    pub unsafe fn take(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, C>,
        (marks, batch): (&mut DeviceVec<u32>, u32),
        erased: &mut DeviceValue<u64>,
    ) -> Result<(DeviceVec<V>, DeviceVec<u8>), Error> {
        let mut values = stream.uninit(values_for::<V>(keys.len()))?;
        let mut found = stream.uninit(keys.len())?;
        if keys.is_empty() {
            return Ok((values, found));
        }
        let mut erased = erased.as_mut_slice();
        with_width!(self, {
            let take = Take::new(
                self.view::<WIDTH>(stream)?,
                Marks::view(stream, marks, batch, false)?,
                keys.view(stream)?,
                values.view_mut(stream)?,
                found.view_mut(stream)?,
            );
            // SAFETY: there is a thread per key, and there are as many results. The caller guarantees the rest.
            unsafe { stream.launch(take, probe_blocks(keys.len()))? };
            let (slots, table) = (self.slots() as usize, self.view_mut::<WIDTH>(stream)?);
            let sweep = Sweep::new(table, Marks::view(stream, marks, batch, false)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per slot. The marks are those of keys that were found.
            unsafe { stream.launch(sweep, probe_blocks(slots))? };
        });
        Ok((values, found))
    }

    /// Copies all pairs, in any order, to the first positions of `to`. Does not wait.
    ///
    /// # Safety
    /// `to` has room for all pairs.
    pub unsafe fn collect(&self, stream: &Stream, to: &mut PairVec<C, V>) -> Result<(), Error> {
        let mut count = stream.zeroed::<u64>(1)?;
        with_width!(self, {
            let kernel = Collect::new(self.view::<WIDTH>(stream)?, to.view_mut(stream)?, count.view_mut(stream)?);
            // SAFETY: there is a thread per slot, and the count is zero. The caller guarantees the room.
            unsafe { stream.launch(kernel, probe_blocks(self.slots() as usize)) }
        })
    }

    /// Returns the table as an argument for kernels on `stream`. `WIDTH` must be the number of keys per bucket.
    #[allow(clippy::type_complexity)]
    pub fn view<const WIDTH: usize>(&self, stream: &Stream) -> Result<View<'_, CuckooView<C, V, WIDTH>>, Error> {
        assert_eq!(WIDTH, self.width.keys(), "the number of keys per bucket");
        let words = self.words.view(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(CuckooView::new(words.into_param(), self.map), Reach::none()) })
    }

    /// Returns the table as an argument for kernels on `stream` that change it.
    #[allow(clippy::type_complexity)]
    pub fn view_mut<const WIDTH: usize>(&mut self, stream: &Stream) -> Result<View<'_, TableMut<C, V, WIDTH>>, Error> {
        assert_eq!(WIDTH, self.width.keys(), "the number of keys per bucket");
        let words = self.words.view_mut(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(TableMut::new(words.into_param(), self.map), Reach::none()) })
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> u32 {
        self.map.hash.buckets
    }

    /// Returns the hash functions.
    pub fn hash(&self) -> Hash {
        self.map.hash
    }

    /// Returns the number of keys per bucket.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u64 {
        u64::from(self.buckets()) * self.width.keys() as u64
    }

    /// Returns the device memory in bytes.
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }
}

/// Deliberate bugs in what the kernels are told about the table: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::hash::Hash;
    use gpu_primitives::{Device, FaultKind, Global};

    fn fault<T>(result: Result<T, Error>) -> FaultKind {
        match result {
            Err(Error::KernelFault(fault)) => fault.kind,
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("the bug was not found"),
        }
    }

    fn table(stream: &Stream) -> (Storage<u32, u32>, DeviceVec<u32>) {
        let keys = stream.upload(&(0..1000u32).collect::<Vec<_>>()).unwrap();
        let map = Map::new(Hash::new(0, 160, 2)).unwrap();
        let filled = Storage::fill(stream, map, Width::Eight, (keys.as_slice(), keys.as_slice())).unwrap();
        (filled.storage, keys)
    }

    #[test]
    fn a_table_with_fewer_buckets_than_it_says() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (mut table, keys) = table(&stream);
        table.map.hash.buckets *= 2;
        let mut erased = DeviceValue::new(&stream, 0).unwrap();
        assert!(matches!(fault(table.find(&stream, keys.as_slice(), true)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(fault(table.erase(&stream, keys.as_slice(), &mut erased)), FaultKind::OutOfBounds { .. }));
        let mut pairs = PairVec::uninit(&stream, 4000).unwrap();
        // SAFETY: there is room for all pairs. The checked device refuses the access, which is what this tests.
        let result = unsafe { table.collect(&stream, &mut pairs) };
        assert!(matches!(fault(result), FaultKind::OutOfBounds { .. }));
    }

    #[test]
    fn a_table_that_was_freed() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (table, keys) = table(&stream);
        // SAFETY: the memory is not borrowed any more at the launch. The checked device refuses the access, which is
        // what this tests.
        let freed: CuckooView<u32, u32, 8> = unsafe { table.view(&stream).unwrap().into_param() };
        drop(table);
        let mut found = stream.uninit::<u8>(1000).unwrap();
        let mut values = stream.uninit::<u32>(1000).unwrap();
        let keys: View<'_, Global<u32>> = keys.view(&stream).unwrap();
        let kernel = Find::new(freed, keys, values.view_mut(&stream).unwrap(), found.view_mut(&stream).unwrap());
        // SAFETY: as above.
        let result = unsafe { stream.launch(kernel, probe_blocks(1000)) };
        assert!(matches!(fault(result), FaultKind::Freed { .. }));
    }
}
