//! Builds a table from pairs.

use super::launch::{RawPairs, RawTable, SettleJob, kernels};
use super::options::{Options, WhenFull};
use crate::kernel::{Count, TileDigits, TileStarts, spill_slots, tile_buckets};
use crate::map::{FEWEST_BUCKETS, Hash, Map};
use bytemuck::Pod;
use gpu_primitives::dictionary::{Key, KeyCode};
use gpu_primitives::sort::{as_codes, as_codes_mut};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream};

/// The name of the table in error messages.
const NAME: &str = "a cuckoo table";

/// The most keys in a build: positions have 32 bits.
pub const MOST_KEYS: usize = u32::MAX as usize - 1;

/// The result of a build.
pub struct Built<C> {
    pub words: DeviceVec<u64>,
    pub map: Map<C>,
    /// The number of keys in the table.
    pub len: u64,
    /// The number of failed attempts before this one.
    pub failures: u32,
}

/// Returns the number of buckets for `keys` keys.
pub fn buckets_for(keys: usize, options: &Options) -> Result<u32, Error> {
    let buckets = (keys as f64 / options.load_factor / options.bucket_width as f64).ceil();
    if keys > MOST_KEYS || buckets >= f64::from(u32::MAX) {
        return Err(Error::TooLong { what: NAME, len: keys, limit: MOST_KEYS });
    }
    Ok((buckets as u32).max(FEWEST_BUCKETS))
}

/// Builds a table of at least `buckets` buckets. Waits once per attempt.
pub fn build<K: Key, V: Pod>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    buckets: u32,
    options: &Options,
) -> Result<Built<K::Code>, Error> {
    /// Each growth makes the table a quarter larger: 18 times as large after the last one.
    const MOST_GROWTHS: u32 = 13;

    if keys.len() > MOST_KEYS {
        return Err(Error::TooLong { what: NAME, len: keys.len(), limit: MOST_KEYS });
    }
    let values = aligned(stream, values)?;
    let mut buckets = buckets;
    let mut failures = 0;
    for growth in 0.. {
        let mut unplaced = 0;
        for _ in 0..=options.reseeds {
            let seed = options.seed.wrapping_add(u64::from(failures) << 32);
            match attempt(stream, keys, values.as_slice(), Hash::new(seed, buckets, options.hashes), options)? {
                Attempt::Built(built) => return Ok(Built { failures, ..built }),
                Attempt::Failed { keys } => unplaced = keys,
            }
            failures += 1;
        }
        let larger = u64::from(buckets) + u64::from(buckets / 4) + 1;
        if options.when_full == WhenFull::Refuse || growth == MOST_GROWTHS || larger > u64::from(u32::MAX) {
            let slots = u64::from(buckets) * options.bucket_width as u64;
            return Err(Error::TableFull { what: NAME, unplaced, keys: keys.len() as u64, slots });
        }
        buckets = larger as u32;
    }
    unreachable!("the loop above has no end of its own")
}

/// Returns the error for a table that cannot take more keys.
pub fn full(unplaced: u64, keys: u64, slots: u64) -> Error {
    Error::TableFull { what: NAME, unplaced, keys, slots }
}

enum Attempt<C> {
    Built(Built<C>),
    Failed { keys: u64 },
}

/// Makes one attempt, with one seed. Waits.
fn attempt<K: Key, V: Pod>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    hash: Hash,
    options: &Options,
) -> Result<Attempt<K::Code>, Error> {
    let Some(map) = Map::<K::Code>::new(hash) else { return Ok(Attempt::Failed { keys: keys.len() as u64 }) };
    let kernels = kernels::<K::Code, V>(options.bucket_width);
    let mut words = stream.uninit::<u64>(kernels.words(hash.buckets))?;
    let table = RawTable { words: write(stream, words.as_mut_slice())?, map };
    let mut counts = stream.zeroed::<u64>(Count::ALL)?;
    let counters = write(stream, counts.as_mut_slice())?;

    let digits = TileDigits::new(hash, tile_buckets::<K::Code>(options.bucket_width));
    // If there is only one tile, the pairs are already in tile order.
    let mut by_tile = Pairs::<K, V>::room(stream, if digits.passes() == 0 { 0 } else { keys.len() })?;
    let mut pairs = RawPairs::of(stream, keys, values)?;
    if digits.passes() > 0 {
        let by_tile = by_tile.raw(stream)?;
        // SAFETY: `by_tile` has as many pairs, in separate memory.
        unsafe { kernels.partition(stream, pairs, by_tile, digits)? };
        pairs = by_tile;
    }
    let mut starts = stream.uninit::<u32>(digits.tiles() + 1)?;
    let starts_out = write(stream, starts.as_mut_slice())?;
    let spill_room = keys.len().min(digits.tiles() * spill_slots::<K::Code>());
    let mut spill = Pairs::<K, V>::room(stream, spill_room)?;
    let mut locks = stream.zeroed::<u32>((hash.buckets as usize).div_ceil(32))?;
    let spill = spill.raw(stream)?;
    // SAFETY: there is a thread per start. The pairs are in tile order, and the starts are theirs. The spill has room
    // for all keys, or for all that the tiles may spill. There is a lock for every bucket. Orphans are only counted.
    unsafe {
        let find_starts = TileStarts::new(pairs.keys.as_const(), digits, starts_out);
        stream.launch(find_starts, starts_out.len().div_ceil(256))?;
        kernels.fill(stream, pairs, starts_out.as_const(), table, spill, counters)?;
        let settle = SettleJob {
            pairs: spill,
            count: counters.slice(Count::Spilled as usize, 1).as_const(),
            table,
            locks: write(stream, locks.as_mut_slice())?,
            skip_first: true,
            limit: options.evictions,
            orphans: RawPairs::none(),
            unplaced: counters.slice(Count::Unplaced as usize, 1),
        };
        kernels.settle(stream, settle)?;
    }
    let counts = counts.to_vec(stream)?;
    let [placed, spilled, unplaced] =
        [Count::Placed, Count::Spilled, Count::Unplaced].map(|count| counts[count as usize]);
    Ok(if unplaced == 0 {
        Attempt::Built(Built { words, map, len: placed + spilled, failures: 0 })
    } else {
        Attempt::Failed { keys: unplaced }
    })
}

/// Pairs that own their memory.
pub struct Pairs<K: Pod, V: Pod> {
    pub keys: DeviceVec<K>,
    pub values: DeviceVec<V>,
}

impl<K: Key, V: Pod> Pairs<K, V> {
    /// Allocates room for `len` pairs.
    pub fn room(stream: &Stream, len: usize) -> Result<Self, Error> {
        Ok(Self { keys: stream.uninit(len)?, values: stream.uninit(len)? })
    }

    /// Copies pairs to the positions from `at` on. Zero-sized values are not copied and need not be given.
    pub fn put(
        &mut self,
        stream: &Stream,
        at: usize,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        self.keys.slice_mut(at..at + keys.len())?.copy_from(stream, keys)?;
        if size_of::<V>() > 0 {
            self.values.slice_mut(at..at + keys.len())?.copy_from(stream, values)?;
        }
        Ok(())
    }

    /// Returns the first `len` pairs.
    pub fn first(&self, len: usize) -> Result<(DeviceSlice<'_, K>, DeviceSlice<'_, V>), Error> {
        Ok((self.keys.slice(..len)?, self.values.slice(..len)?))
    }

    /// Returns the pairs in the form that kernels take.
    pub fn raw(&mut self, stream: &Stream) -> Result<RawPairs<K::Code>, Error> {
        let keys = as_codes_mut(write(stream, self.keys.as_mut_slice())?);
        let values = write(stream, self.values.as_mut_slice())?;
        Ok(RawPairs { keys, values: values.as_const().as_ptr().cast_mut().cast() })
    }
}

impl<C: KeyCode> RawPairs<C> {
    /// Returns these pairs, for reading, in the form that kernels take.
    pub fn of<K: Key<Code = C>, V: Pod>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<Self, Error> {
        let values = read(stream, values)?.as_ptr().cast_mut().cast();
        Ok(Self { keys: writable(codes(stream, keys)?), values })
    }
}

/// Returns a slice as the kernels of this crate read it: they are launched while it is borrowed.
pub fn read<T: Pod>(stream: &Stream, slice: DeviceSlice<'_, T>) -> Result<Global<T>, Error> {
    // SAFETY: every launch in this crate happens while the slice is borrowed.
    Ok(unsafe { slice.view(stream)?.into_param() })
}

/// Returns a slice as the kernels of this crate write it: they are launched while it is borrowed.
pub fn write<T: Pod>(stream: &Stream, mut slice: DeviceSliceMut<'_, T>) -> Result<GlobalMut<T>, Error> {
    // SAFETY: every launch in this crate happens while the slice is borrowed.
    Ok(unsafe { slice.view_mut(stream)?.into_param() })
}

/// Returns a view of the bits of keys.
pub fn codes<K: Key>(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Global<K::Code>, Error> {
    Ok(as_codes(read(stream, keys)?))
}

/// Returns a read-only view as a writable one, for a kernel that only reads it.
pub fn writable<T: Pod>(view: Global<T>) -> GlobalMut<T> {
    // SAFETY: the view is of the same memory, which is not written.
    unsafe { GlobalMut::from_raw(view.as_ptr().cast_mut(), view.len()) }
}

/// Values that kernels can read: the given slice, or a copy if the slice is foreign memory that is misaligned for its
/// element size.
pub enum Aligned<'a, V: Pod> {
    Here(DeviceSlice<'a, V>),
    Copied(DeviceVec<V>),
}

impl<V: Pod> Aligned<'_, V> {
    pub fn as_slice(&self) -> DeviceSlice<'_, V> {
        match self {
            Self::Here(values) => *values,
            Self::Copied(values) => values.as_slice(),
        }
    }
}

/// Copies misaligned values: see [`Aligned`].
pub fn aligned<'a, V: Pod>(stream: &Stream, values: DeviceSlice<'a, V>) -> Result<Aligned<'a, V>, Error> {
    if values.as_ptr().addr().is_multiple_of(size_of::<V>().max(1)) {
        return Ok(Aligned::Here(values));
    }
    let mut copy = stream.uninit(values.len())?;
    copy.copy_from(stream, values)?;
    Ok(Aligned::Copied(copy))
}
