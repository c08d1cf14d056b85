//! A table with keys of any plain type.

use super::hasher::{Hasher, verify};
use super::options::Options;
use super::table::GpuCuckoo;
use bytemuck::Pod;
use gpu_dictionary::column::{Column, indices};
use gpu_dictionary::file::{Format, Source, write_array, write_section};
use gpu_dictionary::{self as dictionary, Contents, Lookup, values_for};
use gpu_primitives::{AnySlice, DeviceSlice, DeviceVec, Error, Stream, expect_len, select};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-pln\n", version: 2 };

/// The name of the table in error messages.
const NAME: &str = "a cuckoo table of plain keys";

/// A hash table on the device with keys of any plain type of 1 to 32 bytes, and values of any plain type.
///
/// Two keys are equal if their bytes are equal. Of equal keys in one call the last one wins.
///
/// The pairs are in two arrays, where they stay. A [`GpuCuckoo`] has their indices, by a hash of 64 bits of the key. All keys
/// that are present have different hashes: an insertion that would break this chooses another hash function at random and
/// rebuilds the table, which practically never happens. A lookup compares the whole key, so answers are exact. A pair that is
/// replaced or deleted keeps its place until the arrays are full; then the others are moved together, if they are less than
/// half. [`compact`](Self::compact) does so at once.
///
/// Cost for keys of `K` bytes and values of `V` bytes, in addition to a `GpuCuckoo<u64, u32>`: an answer reads `K` bytes in
/// order, and `K` and `V` at random places; an insertion does so too, and writes both. The arrays take up to twice the memory
/// of their pairs.
///
/// ```
/// use gpu_cuckoo::{Options, PlainCuckoo};
/// use gpu_primitives::{Device, Error};
///
/// // Keys are points of a grid.
/// let stream = Device::cpu().stream()?;
/// let points = stream.upload(&[[1i32, 2, 3], [1, 2, -3], [1, 2, 3]])?;
/// let colours = stream.upload(&[[255u8, 0, 0], [0, 255, 0], [0, 0, 255]])?;
/// let mut grid = PlainCuckoo::bulk_build(&stream, (&points, &colours), Options::new())?;
/// assert_eq!(grid.len(&stream)?, 2); // of equal keys, the last one wins
///
/// let asked = stream.upload(&[[1, 2, 3], [0, 0, 0]])?;
/// assert_eq!(grid.lookup(&stream, &asked)?.to_vec(&stream)?, [Some([0, 0, 255]), None]);
/// grid.delete(&stream, &asked)?;
/// assert_eq!(grid.contains(&stream, &asked)?.to_vec(&stream)?, [0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// Longer keys do not compile:
///
/// ```compile_fail,E0080
/// # use gpu_cuckoo::{Options, PlainCuckoo};
/// # use gpu_primitives::{Device, Error};
/// # let stream = Device::cpu().stream()?;
/// PlainCuckoo::<[u64; 5], u32>::new(&stream, Options::new())?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct PlainCuckoo<K: Pod, V: Pod> {
    index: Index,
    keys: Column<K>,
    values: Column<V>,
}

/// Where the pair with each hash is. Its code is compiled once, with this crate: it knows keys by their size alone.
#[derive(Debug)]
struct Index {
    table: GpuCuckoo<u64, u32>,
    hasher: Hasher,
}

/// What is known of some keys.
struct Found {
    hashes: DeviceVec<u64>,
    indices: DeviceVec<u32>,
    /// 1 for each key that is present, and 0 for the others.
    found: DeviceVec<u8>,
}

impl<K: Pod, V: Pod> PlainCuckoo<K, V> {
    /// Creates an empty table with room for as many keys as the options [say](Options::capacity). Waits.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::new`].
    pub fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        const { assert!(matches!(size_of::<K>(), 1..=32), "a key has 1 to 32 bytes") };
        let options = options.with_any_seed();
        let hasher = Hasher::new(options.any_seed());
        let index = Index { table: GpuCuckoo::new(stream, options)?, hasher };
        Ok(Self { index, keys: Column::empty(stream)?, values: Column::empty(stream)? })
    }

    /// Builds a table from these pairs: keys, and as many values. If a key occurs more than once, the last pair wins. For
    /// zero-sized values, pass an empty slice. Waits.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - The errors of [`GpuCuckoo::bulk_build`].
    /// - [`Error::TableFull`] if no hash function is found that tells all keys apart, which practically never happens.
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::bulk_build", pairs.0.len());
        let (keys, values) = (pairs.0, pairs.1.into());
        expect_values::<V>(keys.len(), values.len())?;
        let empty = Self::new(stream, options)?;
        empty.with_pairs(stream, (keys, values), empty.index.hasher)
    }

    /// Makes a copy of the table, which can be queried and updated independently. The two share their pairs until one of
    /// them changes. Does not wait.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::try_clone`].
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let index = Index { table: self.index.table.try_clone(stream)?, hasher: self.index.hasher };
        Ok(Self { index, keys: self.keys.clone(), values: self.values.clone() })
    }

    /// Looks up the values of keys. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::lookup", keys.len());
        let Found { indices, found, .. } = self.find(stream, keys)?;
        Ok(Lookup { values: self.values.where_found(stream, &indices, &found)?, found })
    }

    /// Returns 1 for each key that is present and 0 for each that is absent. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::contains", keys.len());
        Ok(self.find(stream, keys)?.found)
    }

    /// Inserts pairs: keys, and as many values. Inserting a key that is already present replaces its value. If a key occurs
    /// more than once, the last pair wins. For zero-sized values, pass an empty slice. Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build) and of [`GpuCuckoo::insert`]. After an error the table holds the same
    /// pairs as before.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::insert", pairs.0.len());
        let (keys, values) = (pairs.0, pairs.1.into());
        expect_values::<V>(keys.len(), values.len())?;
        stream.refuse_recording("an insertion")?;
        if keys.is_empty() {
            return Ok(());
        }
        let Some(hashes) = self.index.hashes_to_insert(stream, self.keys.values()?.into(), keys.into())? else {
            *self = self.with_pairs(stream, (keys, values), self.index.hasher.reseeded())?;
            return Ok(());
        };
        if !self.keys.has_room_for(keys.len()) && self.len(stream)? < self.keys.len() / 2 {
            *self = self.with_pairs(stream, (keys, values), self.index.hasher)?;
            return Ok(());
        }
        let all = (self.keys.with(stream, keys)?, self.values.with(stream, values)?);
        self.index.table.insert(stream, (&hashes, &indices(stream, self.keys.len(), keys.len())?))?;
        (self.keys, self.values) = all;
        Ok(())
    }

    /// Deletes keys. Ignores absent keys. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::delete", keys.len());
        self.index.delete(stream, self.keys.values()?.into(), keys.into())
    }

    /// Deletes all keys. Waits.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::clear`]. After an error the table is unchanged.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let empty = (Column::empty(stream)?, Column::empty(stream)?);
        self.index.table.clear(stream)?;
        (self.keys, self.values) = empty;
        Ok(())
    }

    /// Returns the number of keys. Waits.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.index.table.len(stream)
    }

    /// Returns whether the table has no keys. Waits.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        self.index.table.is_empty(stream)
    }

    /// Returns all pairs, in any order: the keys, and as many values, or none if they are zero-sized. Waits for their
    /// number.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn pairs(&self, stream: &Stream) -> Result<(DeviceVec<K>, DeviceVec<V>), Error> {
        let Contents { values: live, .. } = self.index.table.export(stream)?;
        Ok((self.keys.at(stream, &live)?, self.values.at(stream, &live)?))
    }

    /// Moves the pairs together and builds the table of their indices anew. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn compact(&mut self, stream: &Stream) -> Result<(), Error> {
        let none = (stream.uninit(0)?, stream.uninit(0)?);
        *self = self.with_pairs(stream, (none.0.as_slice(), none.1.as_slice()), self.index.hasher)?;
        Ok(())
    }

    /// Returns statistics of the table. Waits for the number of keys.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn stats(&self, stream: &Stream) -> Result<dictionary::Stats, Error> {
        let stats = self.index.table.stats(stream)?;
        let bytes = stats.bytes + self.keys.bytes() + self.values.bytes();
        Ok(dictionary::Stats { resident: self.keys.len(), live: Some(stats.len), bytes })
    }

    /// Writes the table to a file: its pairs and its options. [`load`](Self::load) reads the file on any device. Waits.
    ///
    /// After the header with the sizes of keys and values and their number come an empty `GpuCuckoo` with the options, the
    /// keys, and the values.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or the errors of [`pairs`](Self::pairs).
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        let mut writer: &mut dyn Write = &mut writer;
        let (keys, values) = self.pairs(stream)?;
        let mut header = FORMAT.header::<u64, V>();
        for number in [size_of::<K>(), size_of::<V>(), keys.len()] {
            header.extend((number as u64).to_le_bytes());
        }
        write_section(&mut writer, &header)?;
        GpuCuckoo::<u64, u32>::new(stream, self.index.table.raw.options.clone().capacity(0))?
            .save(stream, &mut writer)?;
        write_array(stream, &mut writer, keys.as_slice())?;
        write_array(stream, &mut writer, values.as_slice())?;
        writer.flush()?;
        Ok(())
    }

    /// Reads a table written by [`save`](Self::save) and builds it anew. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has keys or values of other sizes. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - The errors of [`bulk_build`](Self::bulk_build).
    pub fn load(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        let mut reader: &mut dyn Read = &mut reader;
        let mut source = Source::new(&mut reader);
        let own = |source: &mut Source<_>| Ok([source.u64()?, source.u64()?, source.u64()?]);
        let [key_bytes, value_bytes, len] = source.header::<u64, V, _>(FORMAT, own)?;
        for (what, bytes, expected) in [("keys", key_bytes, size_of::<K>()), ("values", value_bytes, size_of::<V>())] {
            if bytes != expected as u64 {
                return Err(source.invalid(format!("its {what} have {bytes} bytes, but {expected} were expected")));
            }
        }
        let options = GpuCuckoo::<u64, u32>::load(stream, &mut reader)?.raw.options;
        let mut source = Source::new(&mut reader);
        let keys = source.array::<K>(stream, "the keys", len as usize, |_| Ok(()))?;
        let values = source.values::<V>(stream, "the values", len as usize)?;
        // As in a `GpuCuckoo`: this build may grow the table, and the file does not decide how long it tries.
        let Options { reseeds, evictions, when_full, .. } = Options::new();
        let building = Options { reseeds, evictions, when_full, ..options.clone() };
        let mut table = Self::bulk_build(stream, (&keys, &values), building)?;
        if table.len(stream)? != keys.len() {
            return Err(source.invalid("it has some key more than once"));
        }
        let Options { reseeds, evictions, when_full, .. } = options;
        let of_table = &mut table.index.table.raw.options;
        *of_table = Options { reseeds, evictions, when_full, ..of_table.clone() };
        Ok(table)
    }

    /// Finds keys. Does not wait.
    fn find(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Found, Error> {
        self.index.find(stream, self.keys.values()?.into(), keys.into())
    }

    /// Returns a compact table with further pairs, by this hash function, or else by the first random one that tells all keys
    /// apart. Waits.
    fn with_pairs(
        &self,
        stream: &Stream,
        (more_keys, more_values): (DeviceSlice<'_, K>, DeviceSlice<'_, V>),
        hasher: Hasher,
    ) -> Result<Self, Error> {
        let Contents { values: live, .. } = self.index.table.export(stream)?;
        let (old, len) = (live.len(), live.len() + more_keys.len());
        let (mut keys, mut values) = (stream.uninit::<K>(len)?, stream.uninit::<V>(values_for::<V>(len))?);
        self.keys.gather(stream, &live, keys.slice_mut(..old)?)?;
        keys.slice_mut(old..)?.copy_from(stream, more_keys)?;
        self.values.gather(stream, &live, values.slice_mut(..values_for::<V>(old))?)?;
        values.slice_mut(values_for::<V>(old)..)?.copy_from(stream, more_values)?;
        let index = self.index.of_keys(stream, keys.as_slice().into(), hasher)?;
        Ok(Self { index, keys: keys.into(), values: values.into() })
    }
}

impl Index {
    /// Finds keys. Does not wait.
    fn find(&self, stream: &Stream, stored: AnySlice<'_>, keys: AnySlice<'_>) -> Result<Found, Error> {
        self.find_hashes(stream, stored, keys, self.hasher.hash(stream, keys)?, &mut stream.zeroed(1)?)
    }

    /// Finds keys by their hashes. Adds the number of keys whose hash belongs to another key to `different`, one element. Does
    /// not wait.
    fn find_hashes(
        &self,
        stream: &Stream,
        stored: AnySlice<'_>,
        keys: AnySlice<'_>,
        hashes: DeviceVec<u64>,
        different: &mut DeviceVec<u64>,
    ) -> Result<Found, Error> {
        let Lookup { values: indices, mut found } = self.table.lookup(stream, &hashes)?;
        // SAFETY: the indices in the table are those of keys in the array.
        unsafe { verify(stream, stored, keys, &indices, &mut found, different)? };
        Ok(Found { hashes, indices, found })
    }

    /// Returns the hashes of keys that are to be inserted, or `None` if two different keys would have the same. Waits.
    fn hashes_to_insert(
        &self,
        stream: &Stream,
        stored: AnySlice<'_>,
        keys: AnySlice<'_>,
    ) -> Result<Option<DeviceVec<u64>>, Error> {
        let hashes = self.hasher.hash(stream, keys)?;
        let mut clashes = stream.zeroed(1)?;
        self.hasher.find_clashes(stream, keys, &hashes, &mut clashes)?;
        let Found { hashes, .. } = self.find_hashes(stream, stored, keys, hashes, &mut clashes)?;
        Ok((clashes.to_vec(stream)? == [0]).then_some(hashes))
    }

    /// Deletes keys. Waits.
    fn delete(&mut self, stream: &Stream, stored: AnySlice<'_>, keys: AnySlice<'_>) -> Result<(), Error> {
        let Found { hashes, found, .. } = self.find(stream, stored, keys)?;
        // An absent key may have the hash of a present one.
        let mut present = stream.uninit(hashes.len())?;
        let count = select::flagged(stream, &hashes, &found, &mut present)?.get(stream)?;
        self.table.delete(stream, present.slice(..count as usize)?)
    }

    /// Returns the index of these keys, with the options of this one, by this hash function, or else by the first random one that
    /// tells all of them apart. Waits.
    fn of_keys(&self, stream: &Stream, keys: AnySlice<'_>, mut hasher: Hasher) -> Result<Self, Error> {
        /// If hashes had few bits, many functions would fail.
        const ATTEMPTS: u32 = 64;

        let mut found = 0;
        for _ in 0..ATTEMPTS {
            let hashes = hasher.hash(stream, keys)?;
            let mut clashes = stream.zeroed(1)?;
            hasher.find_clashes(stream, keys, &hashes, &mut clashes)?;
            found = clashes.to_vec(stream)?[0];
            if found == 0 {
                let (pairs, options) = ((&hashes, &indices(stream, 0, keys.len())?), self.table.raw.options.clone());
                return Ok(Self { table: GpuCuckoo::bulk_build(stream, pairs, options)?, hasher });
            }
            hasher = hasher.reseeded();
        }
        let slots = self.table.stats(stream)?.slots as u64;
        Err(Error::TableFull { what: NAME, unplaced: found, keys: keys.len() as u64, slots })
    }
}

/// Checks that there is exactly one value per key or, for zero-sized values, none.
fn expect_values<V>(keys: usize, found: usize) -> Result<(), Error> {
    expect_len("the values of a dictionary", values_for::<V>(keys), found)
}

#[cfg(test)]
mod tests {
    use super::super::options::WhenFull;
    use super::*;
    use gpu_primitives::Device;
    use std::collections::HashMap;
    use std::fmt::Debug;
    use std::hash::Hash;

    fn devices() -> impl Iterator<Item = Device> {
        let gpus = (0..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).unwrap());
        [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus)
    }

    /// A table whose hashes have only some bits, and a map that must have the same contents.
    struct Modelled<K: Pod, V: Pod> {
        stream: Stream,
        table: PlainCuckoo<K, V>,
        model: HashMap<K, V>,
    }

    impl<K: Pod + Eq + Hash + Debug, V: Pod + PartialEq + Debug> Modelled<K, V> {
        fn new(stream: &Stream, bits: Option<u32>) -> Self {
            Self::with_seed(stream, bits, 0)
        }

        fn with_seed(stream: &Stream, bits: Option<u32>, seed: u64) -> Self {
            let mut table = PlainCuckoo::new(stream, Options::new().seed(seed)).unwrap();
            if let Some(bits) = bits {
                table.index.hasher = table.index.hasher.with_bits(bits);
            }
            Self { stream: stream.clone(), table, model: HashMap::new() }
        }

        fn upload(&self, values: &[V]) -> DeviceVec<V> {
            self.stream.upload(&values[..values_for::<V>(values.len())]).unwrap()
        }

        fn insert(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
            let pairs = (&self.stream.upload(keys).unwrap(), &self.upload(values));
            self.table.insert(&self.stream, pairs)?;
            self.model.extend(keys.iter().copied().zip(values.iter().copied()));
            Ok(())
        }

        fn delete(&mut self, keys: &[K]) {
            self.table.delete(&self.stream, &self.stream.upload(keys).unwrap()).unwrap();
            self.model.retain(|key, _| !keys.contains(key));
        }

        /// Compares lookups of these keys, and all pairs.
        fn check(&self, asked: &[K]) {
            let (stream, table) = (&self.stream, &self.table);
            let on_device = stream.upload(asked).unwrap();
            let expected: Vec<_> = asked.iter().map(|key| self.model.get(key).copied()).collect();
            assert_eq!(table.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap(), expected);
            let found: Vec<_> = expected.iter().map(|value| u8::from(value.is_some())).collect();
            assert_eq!(table.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), found);
            assert_eq!(table.len(stream).unwrap(), self.model.len());
            let (keys, values) = table.pairs(stream).unwrap();
            let (keys, values) = (keys.to_vec(stream).unwrap(), values.to_vec(stream).unwrap());
            assert_eq!((keys.len(), values.len()), (self.model.len(), values_for::<V>(self.model.len())));
            for (i, key) in keys.iter().enumerate() {
                let value = if size_of::<V>() == 0 { V::zeroed() } else { values[i] };
                assert_eq!(self.model.get(key), Some(&value), "{key:?}");
            }
        }
    }

    /// Returns a key whose bytes depend on a number; many numbers differ in one byte only.
    fn key<K: Pod>(number: usize) -> K {
        let mut key = K::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut key);
        let len = bytes.len();
        bytes[number % len] = 1 + (number / len) as u8;
        bytes[(number / 3) % len] ^= (number / (200 * len)) as u8;
        key
    }

    /// Insertions, replacements, deletions and growth, with keys of one type.
    fn check_type<K: Pod + Eq + Hash + Debug, V: Pod + PartialEq + Debug>(stream: &Stream, value: impl Fn(usize) -> V) {
        let keys: Vec<K> = (0..200).map(key).collect();
        let mut both = Modelled::new(stream, None);
        both.check(&keys);
        for (round, range) in [0..50, 20..150, 0..1, 100..200].into_iter().enumerate() {
            // All of them twice.
            let batch: Vec<K> = keys[range.clone()].iter().chain(&keys[range]).copied().collect();
            let values: Vec<V> = (0..batch.len()).map(|i| value(1000 * round + i)).collect();
            both.insert(&batch, &values).unwrap();
            both.check(&keys);
        }
        both.delete(&keys[10..180]);
        both.check(&keys);
        both.table.compact(stream).unwrap();
        both.check(&keys);
        let mut file = Vec::new();
        both.table.save(stream, &mut file).unwrap();
        both.table = PlainCuckoo::load(stream, &file[..]).unwrap();
        both.check(&keys);
        both.table.clear(stream).unwrap();
        both.model.clear();
        both.check(&keys);
        both.insert(&keys, &(0..200).map(&value).collect::<Vec<_>>()).unwrap();
        both.check(&keys);
    }

    #[test]
    fn keys_and_values_of_many_types() {
        for device in devices() {
            let stream = device.stream().unwrap();
            check_type::<u8, u64>(&stream, |i| i as u64);
            check_type::<[u8; 5], ()>(&stream, |_| ());
            check_type::<[i16; 3], [u8; 3]>(&stream, |i| [i as u8, (i >> 8) as u8, 7]);
            check_type::<u128, u32>(&stream, |i| i as u32);
            check_type::<[u32; 8], [f64; 3]>(&stream, |i| [i as f64; 3]);
            check_type::<[u64; 4], i8>(&stream, |i| i as i8);
        }
    }

    /// Hashes of a few bits: many insertions have to find another function. Nothing is lost or found by mistake.
    #[test]
    fn clashes_choose_other_functions() {
        for device in devices() {
            let stream = device.stream().unwrap();
            let keys: Vec<[u8; 7]> = (0..120).map(key).collect();
            let mut changes = 0;
            for seed in 0..4 {
                let mut both = Modelled::with_seed(&stream, Some(8), 1000 * seed);
                for i in 0..20 {
                    let before = both.table.index.hasher;
                    // Replaces one, and inserts one.
                    both.insert(&[keys[i / 2], keys[i]], &[i as u16, 500 + i as u16]).unwrap();
                    changes += usize::from(both.table.index.hasher != before);
                    // Absent keys often have the hash of a present one: deleting them deletes nothing.
                    both.delete(&keys[60..]);
                }
                both.check(&keys);
            }
            assert!(changes > 1, "{changes} changes");
            // Two keys of a batch.
            let mut both = Modelled::new(&stream, Some(11));
            let before = both.table.index.hasher;
            both.insert(&keys[..60], &(0..60).collect::<Vec<u16>>()).unwrap();
            assert_ne!(both.table.index.hasher, before);
            both.check(&keys);
        }
    }

    /// More keys than there are hashes: an error, and the table is as before.
    #[test]
    fn too_many_clashes() {
        for device in devices() {
            let stream = device.stream().unwrap();
            let keys: Vec<[u8; 6]> = (0..100).map(key).collect();
            let mut both = Modelled::new(&stream, Some(6));
            both.insert(&keys[..5], &[1u32, 2, 3, 4, 5]).unwrap();
            let error = both.insert(&keys, &[9; 100]).unwrap_err();
            assert!(matches!(error, Error::TableFull { unplaced: 36.., keys: 105, .. }), "{error}");
            both.check(&keys);
            both.insert(&keys[3..7], &[6, 7, 8, 9]).unwrap();
            both.check(&keys);
        }
    }

    /// Every allocation fails once, in insertions that append, that compact, and that choose another function.
    #[test]
    fn failures_change_nothing() {
        let device = Device::cpu();
        let home = device.stream().unwrap();
        let keys: Vec<[u16; 5]> = (0..200).map(key).collect();
        for (bits, present, deleted, batch) in
            [(64, 0..50, 0..10, 40..90), (64, 0..150, 0..140, 100..200), (10, 0..10, 0..1, 5..45)]
        {
            let bits = (bits < 64).then_some(bits);
            for successes in 0.. {
                let mut both = Modelled::new(&home, bits);
                for &key in &keys[present.clone()] {
                    both.insert(&[key], &[7u64]).unwrap();
                }
                both.delete(&keys[deleted.clone()]);
                let copy = both.table.try_clone(&home).unwrap();
                let on_device = home.upload(&keys[batch.clone()]).unwrap();
                let values = home.upload(&vec![8u64; batch.len()]).unwrap();
                home.synchronize().unwrap();
                let stream = device.stream().unwrap();
                stream.fail_allocation_after(Some(successes));
                let result = both.table.insert(&stream, (&on_device, &values));
                stream.fail_allocation_after(None);
                stream.synchronize().unwrap();
                match &result {
                    Ok(()) => both.model.extend(keys[batch.clone()].iter().map(|&key| (key, 8))),
                    Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
                }
                both.check(&keys);
                // A copy made before keeps its contents.
                assert_eq!(copy.len(&home).unwrap(), present.len() - deleted.len());
                if result.is_ok() {
                    assert!(successes > 5, "{successes}");
                    break;
                }
            }
        }
    }

    /// The bytes decide, wherever they are: a slice that is not aligned has the same hashes.
    #[test]
    fn misaligned_keys() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let bytes: Vec<u8> = (0..=80u8).map(|i| i.wrapping_mul(37)).collect();
        let on_device = stream.upload(&bytes).unwrap();
        // SAFETY: the ten keys lie within the vector, which outlives the slice. Arrays of bytes need no alignment.
        let keys = unsafe {
            DeviceSlice::from_raw_parts(&device, on_device.as_slice().as_ptr().wrapping_add(1).cast::<[u8; 8]>(), 10)
        };
        let aligned = stream.upload(&bytes[1..]).unwrap();
        // SAFETY: as above.
        let same = unsafe { DeviceSlice::from_raw_parts(&device, aligned.as_slice().as_ptr().cast::<[u8; 8]>(), 10) };
        let mut table = PlainCuckoo::<[u8; 8], u32>::new(&stream, Options::new()).unwrap();
        table.insert(&stream, (keys, &stream.upload(&(0..10).collect::<Vec<u32>>()).unwrap())).unwrap();
        let expected: Vec<_> = (0..10).map(Some).collect();
        for keys in [keys, same] {
            assert_eq!(table.lookup(&stream, keys).unwrap().to_vec(&stream).unwrap(), expected);
        }
    }

    /// A table that may not grow, and has so much room that nothing is displaced. Its file has no room, but can be loaded, and
    /// has the same options.
    #[test]
    fn tables_that_may_not_grow_are_loaded() {
        let stream = Device::cpu().stream().unwrap();
        let options = Options::new().capacity(8000).load_factor(0.95).hashes(2).bucket_width(4);
        let options = options.reseeds(0).evictions(1).when_full(WhenFull::Refuse);
        let keys: Vec<u64> = (0..1000).map(|i| i * i).collect();
        let on_device = stream.upload(&keys).unwrap();
        let table = PlainCuckoo::bulk_build(&stream, (&on_device, &on_device), options).unwrap();
        let mut file = Vec::new();
        table.save(&stream, &mut file).unwrap();
        let loaded = PlainCuckoo::<u64, u64>::load(&stream, &file[..]).unwrap();
        let found = loaded.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
        assert!(found.into_iter().eq(keys.into_iter().map(Some)));
        let Options { reseeds, evictions, when_full, .. } = loaded.index.table.raw.options;
        assert_eq!((reseeds, evictions, when_full), (0, 1, WhenFull::Refuse));
    }

    /// Keys of 8 bytes, two of which clash under each of the seeds 0 to 63 of a hash that XORs one word after the other into a
    /// state of 64 bits: if the upper halves of two states are equal, the next words can make the lower ones equal.
    fn keys_against_xored_words() -> Vec<[u32; 2]> {
        fn mix(bits: u64) -> u64 {
            let bits = (bits ^ (bits >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits ^ (bits >> 32)
        }
        let hash = |seed: u64, key: [u32; 2]| {
            key.iter().fold(mix(seed ^ 0x2545_F491_4F6C_DD1D), |state, &word| mix(state ^ u64::from(word)))
        };
        let mut keys: Vec<[u32; 2]> = (0..12).map(|i| [i, i]).collect();
        for seed in 0..64 {
            let start = mix(seed ^ 0x2545_F491_4F6C_DD1D);
            let mut upper_halves = HashMap::new();
            let (first, second) = (0..)
                .find_map(|word: u32| {
                    let upper = mix(start ^ u64::from(word)) >> 32;
                    upper_halves.insert(upper, word).map(|other| (other, word))
                })
                .unwrap();
            let difference = mix(start ^ u64::from(first)) ^ mix(start ^ u64::from(second));
            let pair = [[first, 0], [second, difference as u32]];
            assert_eq!(hash(seed, pair[0]), hash(seed, pair[1]));
            keys.extend(pair);
        }
        keys
    }

    #[test]
    fn crafted_keys_are_told_apart() {
        let crafted = keys_against_xored_words();
        assert_eq!(crafted.len(), 140);
        for device in devices() {
            let stream = device.stream().unwrap();
            let keys = stream.upload(&crafted).unwrap();
            let values: Vec<u32> = (0..140).collect();
            let values = stream.upload(&values).unwrap();
            for options in [Options::new(), Options::new().seed(0)] {
                let table = PlainCuckoo::bulk_build(&stream, (&keys, &values), options).unwrap();
                let found = table.lookup(&stream, &keys).unwrap().to_vec(&stream).unwrap();
                assert!(found.iter().zip(0..).all(|(&found, number)| found == Some(number)));
            }
        }
    }

    /// Pairs of keys whose words differ by the same bits, in any way that an attacker may try: no seed gives two of them the same
    /// hash.
    #[test]
    fn keys_with_equal_differences_do_not_clash() {
        for device in devices() {
            let stream = device.stream().unwrap();
            let single = |bit: u32| 1u32 << bit;
            let mut keys = vec![[0u32; 3]];
            for first in 0..32 {
                keys.extend([[single(first), 0, 0], [0, single(first), 0], [0, 0, single(first)]]);
                // Two words, with bits at any distance.
                keys.extend((0..32).map(|second| [single(first), single(second), 0]));
                keys.extend((0..32).map(|second| [0, single(first), single(second)]));
                // Two words whose XOR, or sum, is always the same.
                keys.extend([[5 + first, 77 ^ (5 + first), 1], [5 + first, 77u32.wrapping_sub(first), 2]]);
            }
            let keys = stream.upload(&keys).unwrap();
            for seed in 0..5 {
                let hasher = Hasher::new(seed);
                let (hashes, mut clashes) =
                    (hasher.hash(&stream, keys.as_slice().into()).unwrap(), stream.zeroed(1).unwrap());
                hasher.find_clashes(&stream, keys.as_slice().into(), &hashes, &mut clashes).unwrap();
                assert_eq!(clashes.to_vec(&stream).unwrap(), [0], "seed {seed}");
            }
        }
    }

    /// With random hashes, 6.6 % of the keys find their first bucket full at load 0.8.
    #[test]
    fn patterns_of_plain_keys_spread_like_random_ones() {
        const KEYS: u32 = 20_000;
        const BUCKETS: u32 = KEYS * 5 / 4 / 8;
        fn check<K: Pod>(name: &str, stream: &Stream, key: impl Fn(u32) -> K) {
            let keys = stream.upload(&(0..KEYS).map(key).collect::<Vec<K>>()).unwrap();
            for seed in 0..5 {
                let hashes = Hasher::new(seed).hash(stream, keys.as_slice().into()).unwrap().to_vec(stream).unwrap();
                let mut counts = vec![0; BUCKETS as usize];
                for hash in hashes {
                    counts[crate::hash::Hash::new(seed, BUCKETS, 2).choices(hash).get(0) as usize] += 1;
                }
                let over: u32 = counts.iter().map(|&count: &u32| count.saturating_sub(8)).sum();
                let share = f64::from(over) / f64::from(KEYS);
                assert!(share < 0.085, "{name}, seed {seed}: {share}");
            }
        }
        let stream = &Device::cpu().stream().unwrap();
        check("sequence of bytes", stream, |i| [i as u8, (i >> 8) as u8, (i >> 16) as u8]);
        check("sequence", stream, |i| [i, 0]);
        check("second word", stream, |i| [0, i]);
        check("grid", stream, |i| [i % 141, i / 141]);
        check("equal words", stream, |i| [i; 3]);
        check("stride", stream, |i| [i << 12, i << 17, 0, 0]);
        check("last word", stream, |i| [7, 7, 7, 7, 7, 7, 7, i]);
        check("floats", stream, |i| [f64::from(i), -f64::from(i)]);
    }

    #[test]
    fn files_are_checked() {
        let stream = Device::cpu().stream().unwrap();
        let mut both = Modelled::<[u8; 12], u32>::new(&stream, None);
        both.insert(&[key(1), key(2)], &[10, 20]).unwrap();
        let mut file = Vec::new();
        both.table.save(&stream, &mut file).unwrap();
        for len in 0..file.len() {
            let result = PlainCuckoo::<[u8; 12], u32>::load(&stream, &file[..len]);
            assert!(matches!(result, Err(Error::InvalidFile { .. })), "{len} of {} bytes", file.len());
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 4;
            assert!(PlainCuckoo::<[u8; 12], u32>::load(&stream, &damaged[..]).is_err(), "byte {at}");
        }
        let message = PlainCuckoo::<[u8; 16], u32>::load(&stream, &file[..]).unwrap_err().to_string();
        assert!(message.contains("12") && message.contains("16"), "{message}");
        let message = GpuCuckoo::<u64, u32>::load(&stream, &file[..]).unwrap_err().to_string();
        assert!(message.contains("plain keys"), "{message}");
    }
}
