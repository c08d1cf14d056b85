//! The buckets of a table in device memory, and the launches of the kernels that use them.

use super::options::Width;
use super::pairs::{self, PairSlices, PairVec, Sizes, sizes_of, typed, typed_mut, with_types};
use crate::device::{
    Assign, BLOCKS_PER_MULTIPROCESSOR, CHUNK, Collect, Count, Erase, FillTiles, Find, Keep, LONG_TILE, PLACE_THREADS,
    PROBE_THREADS, PlacePairs, START_THREADS, Split, ThinTiles, TileDigits, TileStarts, Unpack, WALK_THREADS,
    WalkPairs, spill_slots, tile_buckets,
};
use crate::hash::{Hash, Map};
use crate::view::{CuckooView, TableMut};
use core::any::Any;
use gpu_dictionary::{Carrier, WordCode as KeyCode};
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{
    AnySlice, AnyVec, DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, sized, sort,
};

/// The buckets of a table.
#[derive(Debug)]
pub struct Storage {
    /// All buckets of the map.
    words: DeviceVec<u64>,
    map: AnyMap,
    width: Width,
    sizes: Sizes,
}

/// A [`Map`] for keys of 4 or of 8 bytes.
#[derive(Clone, Copy, Debug)]
pub enum AnyMap {
    Four(Map<u32>),
    Eight(Map<u64>),
}

impl AnyMap {
    /// Finds the markers for keys of so many bytes: see [`Map::new`].
    pub fn new(hash: Hash, key: usize) -> Option<Self> {
        if key == size_of::<u32>() { Map::new(hash).map(Self::Four) } else { Map::new(hash).map(Self::Eight) }
    }

    fn doubled(&self) -> Option<Self> {
        match self {
            Self::Four(map) => map.doubled().map(Self::Four),
            Self::Eight(map) => map.doubled().map(Self::Eight),
        }
    }

    fn hash(&self) -> Hash {
        match self {
            Self::Four(map) => map.hash,
            Self::Eight(map) => map.hash,
        }
    }

    /// Returns the map.
    ///
    /// # Panics
    /// If keys have another type.
    fn of<C: KeyCode>(&self) -> Map<C> {
        let map: &dyn Any = match self {
            Self::Four(map) => map,
            Self::Eight(map) => map,
        };
        *map.downcast_ref().expect("the type of the keys")
    }
}

/// Evaluates an expression with the type of keys, the type of values and the constant `WIDTH`, the number of keys per bucket.
macro_rules! with_table {
    ($storage:expr => $code:ident, $carrier:ident $(in $($listed:ty)|+)?, $body:expr) => {
        $crate::host::pairs::with_types!($storage.sizes() => $code, $carrier $(in $($listed)|+)?, {
            match $storage.width() {
                $crate::host::options::Width::Four => {
                    const WIDTH: usize = 4;
                    $body
                }
                $crate::host::options::Width::Eight => {
                    const WIDTH: usize = 8;
                    $body
                }
            }
        })
    };
}

pub(super) use with_table;

/// Returns the number of blocks with a thread for each of `len` elements.
pub fn probe_blocks(len: usize) -> usize {
    len.div_ceil(PROBE_THREADS as usize)
}

/// The result of [`Storage::fill`].
pub struct Filled {
    pub storage: Storage,
    /// The pairs whose first bucket was full, and room after them.
    pub spill: PairVec,
    /// The counters of [`Count`].
    pub counts: DeviceVec<u64>,
}

/// The arguments of [`Storage::place`].
pub struct PlaceJob<'a> {
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

/// Pairs on their way to a slot.
struct Walkers {
    pairs: PairVec,
    /// The buckets from which they will displace others.
    targets: DeviceVec<u32>,
}

impl Storage {
    /// Allocates buckets whose contents are not defined yet.
    fn uninit(stream: &Stream, map: AnyMap, width: Width, sizes: Sizes) -> Result<Self, Error> {
        // The division is exact: a bucket has at least 4 slots of 4 bytes.
        let bucket_words = width.keys() * (sizes.key + sizes.value) / size_of::<u64>();
        let words = stream.uninit(map.hash().buckets as usize * bucket_words)?;
        Ok(Self { words, map, width, sizes })
    }

    /// Copies the buckets. Does not wait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut words = stream.uninit(self.words.len())?;
        words.copy_from(stream, &self.words)?;
        Ok(Self { words, ..*self })
    }

    /// Builds the buckets, with the pairs that fit into the first bucket of their key. If a key occurs more than once,
    /// the last pair wins. Does not wait.
    pub fn fill(stream: &Stream, map: AnyMap, width: Width, pairs: PairSlices<'_>) -> Result<Filled, Error> {
        let (len, sizes) = (pairs.0.len(), sizes_of(pairs));
        let (tile_buckets, spill_slots) = sized!(sizes.key => C in u32 | u64, {
            (tile_buckets::<C>(width.keys()), spill_slots::<C>())
        }, else unreachable!("{sizes:?}"));
        let digits = TileDigits::new(map.hash(), tile_buckets);
        let tiles = digits.tiles();
        let mut storage = Self::uninit(stream, map, width, sizes)?;
        let mut counts = stream.zeroed(Count::ALL)?;

        // If there is only one tile, the pairs are already in tile order.
        let mut by_tile = PairVec::uninit(stream, sizes, if tiles == 1 { 0 } else { len })?;
        if tiles > 1 {
            with_types!(sizes => C, V, {
                let from = (typed::<C>(pairs.0), typed::<V>(pairs.1));
                let to = (typed_mut::<C>(&mut by_tile.keys), typed_mut::<V>(&mut by_tile.values));
                sort::pairs_by_digits(stream, from, to, digits, digits.passes())?;
            });
        }
        let sorted = if tiles == 1 { pairs } else { by_tile.slices() };
        let mut starts = stream.uninit::<u32>(tiles + 1)?;
        with_table!(storage => C, V, {
            let keys = typed::<C>(sorted.0);
            let find_starts = TileStarts::new(keys.view(stream)?, digits, starts.view_mut(stream)?).followed_by(|next| {
                next.kernel::<ThinTiles<C, V>>();
                next.kernel::<FillTiles<C, V, WIDTH>>();
                next.kernel::<PlacePairs<C, V, WIDTH>>();
            });
            // SAFETY: there is a thread per start, and the keys are in tile order.
            unsafe { stream.launch(find_starts, (tiles + 1).div_ceil(START_THREADS as usize))? };
        });

        // A single tile is long only if the table is far too small for the pairs.
        let chunks = if tiles == 1 || len <= LONG_TILE { 0 } else { len.div_ceil(CHUNK) };
        let mut kept = stream.uninit::<u32>(chunks)?;
        if chunks > 0 {
            with_types!(sizes => C, V, {
                let room = by_tile.view_mut::<C, V>(stream)?;
                let thin = ThinTiles::new(room, starts.view(stream)?, digits, kept.view_mut(stream)?);
                // SAFETY: there is a block per chunk. The pairs are in tile order, and the starts are theirs.
                unsafe { stream.launch(thin, chunks)? };
            });
        }
        let sorted = if tiles == 1 { pairs } else { by_tile.slices() };

        let mut spill = PairVec::uninit(stream, sizes, len.min(tiles * spill_slots))?;
        with_table!(storage => C, V, {
            let kernel = FillTiles::new(
                pairs::view::<C, V>(stream, sorted)?,
                starts.view(stream)?,
                kept.view(stream)?,
                storage.view_mut::<C, V, WIDTH>(stream)?,
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
    pub unsafe fn place(&mut self, stream: &Stream, job: PlaceJob<'_>) -> Result<(), Error> {
        let PlaceJob { pairs, count, skip_first, limit, mut locks, leftovers, mut unplaced, mut cleared } = job;
        let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks = pairs.0.len().div_ceil(PLACE_THREADS as usize).min(most);
        if blocks == 0 {
            return Ok(());
        }
        with_table!(self => C, V, {
            let kernel = PlacePairs::new(
                pairs::view::<C, V>(stream, pairs)?,
                count.view(stream)?,
                self.view_mut::<C, V, WIDTH>(stream)?,
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
        pairs: PairVec,
        count: DeviceSlice<'_, u64>,
        steps: u32,
    ) -> Result<(PairVec, DeviceVec<u64>), Error> {
        let len = pairs.len();
        let most = stream.device().limits().multiprocessors as usize * BLOCKS_PER_MULTIPROCESSOR;
        let blocks = len.div_ceil(WALK_THREADS as usize).clamp(1, most);
        let mut turns = stream.zeroed::<u32>(self.buckets() as usize)?;
        let mut counts = stream.zeroed::<u64>(steps as usize)?;
        // The first step has no targets.
        let mut from = Walkers { pairs, targets: stream.uninit(0)? };
        let mut to = Walkers { pairs: PairVec::uninit(stream, self.sizes, len)?, targets: stream.uninit(len)? };
        for step in 0..steps {
            let (known, unknown) = counts.as_mut_slice().split_at_mut(step as usize)?;
            let count = if step == 0 { count } else { known.slice(step as usize - 1..)? };
            let (mut left, _) = unknown.split_at_mut(1)?;
            with_table!(self => C, V, {
                let kernel = WalkPairs::new(
                    pairs::view::<C, V>(stream, from.pairs.slices())?,
                    from.targets.view(stream)?,
                    count.view(stream)?,
                    self.view_mut::<C, V, WIDTH>(stream)?,
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
        keys: AnySlice<'_>,
        with_values: bool,
    ) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        let mut values = AnyVec::uninit(stream, self.sizes.value, if with_values { keys.len() } else { 0 })?;
        let mut found = stream.uninit(keys.len())?;
        if !keys.is_empty() {
            with_table!(self => C, V, {
                let (table, asked) = (self.view::<C, V, WIDTH>(stream)?, typed::<C>(keys));
                let mut values = typed_mut::<V>(&mut values);
                let kernel = Find::new(table, asked.view(stream)?, values.view_mut(stream)?, found.view_mut(stream)?);
                // SAFETY: there is a thread per key. There are as many results as keys, or no values.
                unsafe { stream.launch(kernel, probe_blocks(keys.len()))? };
            });
        }
        Ok((values, found))
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
        moved: &mut PairVec,
        mut moved_count: DeviceSliceMut<'_, u64>,
    ) -> Result<Option<Self>, Error> {
        let Some(map) = self.map.doubled() else { return Ok(None) };
        let mut larger = Self::uninit(stream, map, self.width, self.sizes)?;
        with_table!(self => C, V, {
            let kernel = Split::new(
                self.view::<C, V, WIDTH>(stream)?,
                larger.view_mut::<C, V, WIDTH>(stream)?,
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
    pub fn unpack(&self, stream: &Stream) -> Result<PairVec, Error> {
        let slots = self.slots() as usize;
        let mut unpacked = PairVec::uninit(stream, self.sizes, slots)?;
        with_table!(self => C, V, {
            let kernel = Unpack::new(self.view::<C, V, WIDTH>(stream)?, unpacked.view_mut(stream)?);
            // SAFETY: there is a thread and room for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots))? };
        });
        Ok(unpacked)
    }

    /// Sets the values of all pairs, from one value per slot. Does not wait.
    ///
    /// # Panics
    /// If there are not as many values as slots.
    pub fn assign(&mut self, stream: &Stream, values: AnySlice<'_>) -> Result<(), Error> {
        let slots = self.slots() as usize;
        assert_eq!(values.len(), slots, "there is a value for every slot");
        if self.sizes.value == 0 {
            return Ok(());
        }
        with_table!(self => C, V in u32 | u64, {
            let kernel = Assign::new(self.view_mut::<C, V, WIDTH>(stream)?, typed(values).view(stream)?);
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
        with_table!(self => C, V, {
            let table = self.view_mut::<C, V, WIDTH>(stream)?;
            let kernel = Keep::new(table, keeps.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread and an element for every slot.
            unsafe { stream.launch(kernel, probe_blocks(slots)) }
        })
    }

    /// Deletes keys, and adds the number of those that were present to `erased`. Does not wait.
    pub fn erase(&mut self, stream: &Stream, keys: AnySlice<'_>, erased: &mut DeviceValue<u64>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut erased = erased.as_mut_slice();
        with_table!(self => C, V, {
            let (table, gone) = (self.view_mut::<C, V, WIDTH>(stream)?, typed::<C>(keys));
            let kernel = Erase::new(table, gone.view(stream)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per key.
            unsafe { stream.launch(kernel, probe_blocks(keys.len())) }
        })
    }

    /// Copies all pairs, in any order, to the first positions of `to`. Does not wait.
    ///
    /// # Safety
    /// `to` has room for all pairs.
    pub unsafe fn collect(&self, stream: &Stream, to: &mut PairVec) -> Result<(), Error> {
        let mut count = stream.zeroed::<u64>(1)?;
        with_table!(self => C, V, {
            let kernel = Collect::new(self.view::<C, V, WIDTH>(stream)?, to.view_mut(stream)?, count.view_mut(stream)?);
            // SAFETY: there is a thread per slot, and the count is zero. The caller guarantees the room.
            unsafe { stream.launch(kernel, probe_blocks(self.slots() as usize)) }
        })
    }

    /// Returns the table as an argument for kernels on `stream`. `WIDTH` must be the number of keys per bucket, and the types
    /// those of keys and values.
    #[allow(clippy::type_complexity)]
    pub fn view<C: KeyCode, V: Carrier, const WIDTH: usize>(
        &self,
        stream: &Stream,
    ) -> Result<View<'_, CuckooView<C, V, WIDTH>>, Error> {
        self.expect::<C, V, WIDTH>();
        let words = self.words.view(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(CuckooView::new(words.into_param(), self.map.of()), Reach::none()) })
    }

    /// Returns the table as an argument for kernels on `stream` that change it.
    #[allow(clippy::type_complexity)]
    pub fn view_mut<C: KeyCode, V: Carrier, const WIDTH: usize>(
        &mut self,
        stream: &Stream,
    ) -> Result<View<'_, TableMut<C, V, WIDTH>>, Error> {
        self.expect::<C, V, WIDTH>();
        let words = self.words.view_mut(stream)?;
        // SAFETY: the words hold all buckets of the map. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(TableMut::new(words.into_param(), self.map.of()), Reach::none()) })
    }

    fn expect<C, V, const WIDTH: usize>(&self) {
        let types = Sizes { key: size_of::<C>(), value: size_of::<V>() };
        assert_eq!((WIDTH, types), (self.width.keys(), self.sizes), "the keys per bucket and the types");
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> u32 {
        self.map.hash().buckets
    }

    /// Returns the hash functions.
    pub fn hash(&self) -> Hash {
        self.map.hash()
    }

    /// Returns the number of keys per bucket.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Returns the sizes of keys and values.
    pub fn sizes(&self) -> Sizes {
        self.sizes
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

    fn table(stream: &Stream) -> (Storage, DeviceVec<u32>) {
        let keys = stream.upload(&(0..1000u32).collect::<Vec<_>>()).unwrap();
        let map = AnyMap::new(Hash::new(0, 160, 2), 4).unwrap();
        let pairs = (keys.as_slice().into(), keys.as_slice().into());
        let filled = Storage::fill(stream, map, Width::Eight, pairs).unwrap();
        (filled.storage, keys)
    }

    #[test]
    fn a_table_with_fewer_buckets_than_it_says() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (mut table, keys) = table(&stream);
        let AnyMap::Four(map) = &mut table.map else { panic!("keys have 4 bytes") };
        map.hash.buckets *= 2;
        let mut erased = DeviceValue::new(&stream, 0).unwrap();
        assert!(matches!(fault(table.find(&stream, keys.as_slice().into(), true)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(
            fault(table.erase(&stream, keys.as_slice().into(), &mut erased)),
            FaultKind::OutOfBounds { .. }
        ));
        let mut pairs = PairVec::uninit(&stream, table.sizes, 4000).unwrap();
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
