//! The table: builds and queries.

use super::build::{Built, Pairs, buckets_for, build, codes, read, writable, write};
use super::launch::{Launch, RawTable, kernels};
use super::options::Options;
use crate::map::{CuckooView, Map, TableMut};
use bytemuck::Pod;
use core::marker::PhantomData;
use gpu_primitives::dictionary::{Contents, Key, Lookup};
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream};

/// A hash table on the device, from keys to values of 0, 4 or 8 bytes.
///
/// - **Keys**: `u32`, `u64`, `i32`, `i64`, `f32`, `f64`, all values of them. Two keys are equal if their bits are
///   equal.
/// - **Equal keys**: within one call, the last one wins. Inserting a key that is already present replaces its value.
/// - **Synchronisation**: [`lookup`](Self::lookup), [`contains`](Self::contains), [`delete`](Self::delete) and
///   [`view`](Self::view) do not wait. Operations that need a count do: building, inserting, [`clear`](Self::clear),
///   [`len`](Self::len), [`export`](Self::export), [`stats`](Self::stats).
/// - **Memory**: only the slots: `(size of key + size of value) / load factor` bytes per key. A build temporarily needs
///   another two copies of the pairs and a quarter of the slots.
/// - **Bounded work**: a key displaces a bounded number of others. A build tries a bounded number of seeds, then grows
///   or fails, as [`Options`] say. A failed call leaves the table with the pairs it had.
/// - **Streams**: calls may use different streams. On the device, a call waits for changes made on other streams.
#[derive(Debug)]
pub struct GpuCuckoo<K: Key, V: Pod> {
    pub(super) words: DeviceVec<u64>,
    pub(super) map: Map<K::Code>,
    /// Keys placed by the build and since then, minus those that lost their slot and found no other.
    pub(super) placed: u64,
    /// Keys deleted since the build.
    pub(super) erased: DeviceValue<u64>,
    pub(super) options: Options,
    pub(super) rebuilds: u64,
    pub(super) values: PhantomData<V>,
}

/// Statistics of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The number of keys.
    pub len: usize,
    /// The number of slots.
    pub capacity: usize,
    /// Keys per slot.
    pub load: f64,
    /// The device memory in bytes.
    pub bytes: usize,
    /// How often the table was rebuilt: to try another seed, or to grow.
    pub rebuilds: u64,
}

impl<K: Key, V: Pod> GpuCuckoo<K, V> {
    /// Creates an empty table with room for `capacity` keys at its load factor.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build).
    pub fn new(stream: &Stream, capacity: usize, options: Options) -> Result<Self, Error> {
        options.check()?;
        let nothing = Pairs::<K, V>::room(stream, 0)?;
        let buckets = buckets_for(capacity, &options)?;
        let built = build(stream, nothing.keys.as_slice(), nothing.values.as_slice(), buckets, &options)?;
        Self::of(stream, built, options)
    }

    /// Builds a table from these pairs. If a key occurs more than once, the last pair wins. For zero-sized values, pass
    /// an empty slice. Waits for the result.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[1.5f64, -0.0, 0.0])?;
    /// let values = stream.upload(&[[1u8, 2, 3, 4], [5; 4], [6; 4]])?;
    /// let table = GpuCuckoo::bulk_build(&stream, &keys, &values, Options::new())?;
    /// let answers = table.lookup(&stream, &stream.upload(&[0.0f64, 2.5])?)?;
    /// assert_eq!(answers.to_vec(&stream)?, [Some([6; 4]), None]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::InvalidOption`].
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TooLong`] for 2^32 - 1 keys or more.
    /// - [`Error::TableFull`] if some keys cannot be placed and the table may not grow.
    /// - [`Error::OutOfMemory`].
    /// - Any launch error.
    pub fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
        options: Options,
    ) -> Result<Self, Error> {
        let (keys, values) = (keys.into(), values.into());
        options.check()?;
        expect_values(keys, values)?;
        let built = build(stream, keys, values, buckets_for(keys.len(), &options)?, &options)?;
        Self::of(stream, built, options)
    }

    pub(super) fn of(stream: &Stream, built: Built<K::Code>, options: Options) -> Result<Self, Error> {
        Ok(Self {
            words: built.words,
            map: built.map,
            placed: built.len,
            erased: DeviceValue::new(stream, 0)?,
            options,
            rebuilds: u64::from(built.failures),
            values: PhantomData,
        })
    }

    /// Looks up the values of keys. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the results, or any launch error.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let keys = keys.into();
        let mut values = stream.uninit::<V>(if size_of::<V>() == 0 { 0 } else { keys.len() })?;
        let mut found = stream.uninit::<u8>(keys.len())?;
        let wanted = if values.is_empty() {
            core::ptr::null_mut()
        } else {
            write(stream, values.as_mut_slice())?.as_const().as_ptr().cast_mut().cast()
        };
        self.find(stream, keys, wanted, &mut found)?;
        Ok(Lookup { values, found })
    }

    /// Returns 1 for each key that is present and 0 for each that is absent. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        let keys = keys.into();
        let mut found = stream.uninit::<u8>(keys.len())?;
        self.find(stream, keys, core::ptr::null_mut(), &mut found)?;
        Ok(found)
    }

    fn find(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: *mut u8,
        found: &mut DeviceVec<u8>,
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let (table, keys, found) = (self.raw(stream)?, codes(stream, keys)?, write(stream, found.as_mut_slice())?);
        // SAFETY: the table is this one. There are as many results as keys, and at least one key.
        unsafe { self.kernels().find(stream, table, keys, values, found) }
    }

    /// Returns the number of keys. Waits.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        Ok((self.placed - self.erased.get(stream)?) as usize)
    }

    /// Returns whether the table has no keys. Waits.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        Ok(self.len(stream)? == 0)
    }

    /// Returns all pairs in key order. Waits for the number of keys.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let mut pairs = self.collect(stream, 0)?;
        let len = pairs.keys.len();
        let mut sorted = Pairs::<K, V>::room(stream, len)?;
        // SAFETY: `sorted` has as many pairs, in separate memory.
        unsafe { self.kernels().sort(stream, pairs.raw(stream)?, sorted.raw(stream)?, K::SIGN)? };
        let values = if size_of::<V>() == 0 { stream.uninit(0)? } else { sorted.values };
        Ok(Contents { keys: sorted.keys, values, len })
    }

    /// Copies all pairs, in any order, and leaves room for `more` pairs after them. Waits.
    pub(super) fn collect(&self, stream: &Stream, more: usize) -> Result<Pairs<K, V>, Error> {
        let mut pairs = Pairs::<K, V>::room(stream, self.len(stream)? + more)?;
        let mut count = stream.zeroed::<u64>(1)?;
        let (table, to, count) = (self.raw(stream)?, pairs.raw(stream)?, write(stream, count.as_mut_slice())?);
        // SAFETY: `pairs` has room for all pairs of the table.
        unsafe { self.kernels().collect(stream, table, to, count)? };
        Ok(pairs)
    }

    /// Returns statistics of the table. Waits for the number of keys.
    ///
    /// # Errors
    /// The errors of [`len`](Self::len).
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let (len, capacity) = (self.len(stream)?, self.slots() as usize);
        let bytes = (self.words.len() + 1) * size_of::<u64>();
        Ok(Stats { len, capacity, load: len as f64 / capacity as f64, bytes, rebuilds: self.rebuilds })
    }

    /// Returns the table as an argument for kernels on this stream. The view's `C` is the code type of `K`. `W` is a
    /// type of the size of `V`: `()`, `u32` or `u64`. Does not wait.
    ///
    /// # Errors
    /// - [`Error::InvalidOption`] if `WIDTH` is not the table's bucket width, or `W` does not have the size of the
    ///   values.
    /// - [`Error::WrongDevice`].
    #[allow(clippy::type_complexity)]
    pub fn view<W: Pod, const WIDTH: usize>(
        &self,
        stream: &Stream,
    ) -> Result<View<'_, CuckooView<K::Code, W, WIDTH>>, Error> {
        if WIDTH != self.options.bucket_width {
            let allowed = "that of the table, as its options say";
            return Err(Error::InvalidOption { what: "the bucket width of a view", asked: WIDTH.to_string(), allowed });
        }
        if size_of::<W>() != size_of::<V>() || align_of::<W>() > size_of::<W>().max(1) {
            let asked = size_of::<W>().to_string();
            return Err(Error::InvalidOption {
                what: "the size of a view's values",
                asked,
                allowed: "that of the table",
            });
        }
        let table = self.raw(stream)?;
        // SAFETY: the words hold the buckets of the map, for values of this size.
        let table = unsafe { TableMut::<K::Code, W, WIDTH>::new(table.words, table.map) }.as_const();
        // SAFETY: the view borrows the table for as long as it lives.
        Ok(unsafe { View::new(table, Reach::none()) })
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> u64 {
        u64::from(self.map.hash.buckets) * self.options.bucket_width as u64
    }

    pub(super) fn kernels(&self) -> &'static dyn Launch<K::Code> {
        kernels::<K::Code, V>(self.options.bucket_width)
    }

    /// Returns the table as kernels read it.
    pub(super) fn raw(&self, stream: &Stream) -> Result<RawTable<K::Code>, Error> {
        Ok(RawTable { words: writable(read(stream, self.words.as_slice())?), map: self.map })
    }

    /// Returns the table as kernels change it.
    pub(super) fn raw_mut(&mut self, stream: &Stream) -> Result<RawTable<K::Code>, Error> {
        Ok(RawTable { words: write(stream, self.words.as_mut_slice())?, map: self.map })
    }
}

/// Sets: keys without values.
impl<K: Key> GpuCuckoo<K, ()> {
    /// Builds a set of these keys: [`bulk_build`](Self::bulk_build) without values.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build).
    pub fn build_set<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        options: Options,
    ) -> Result<Self, Error> {
        let keys = keys.into();
        Self::bulk_build(stream, keys, &stream.uninit::<()>(0)?, options)
    }

    /// Inserts keys: [`insert`](Self::insert) without values.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_keys<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        self.insert(stream, keys, &stream.uninit::<()>(0)?)
    }
}

/// Returns an error unless there are as many values as keys or, for zero-sized values, none.
pub(super) fn expect_values<K: Pod, V: Pod>(keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<(), Error> {
    let expected = if size_of::<V>() == 0 { 0 } else { keys.len() };
    if values.len() == expected {
        return Ok(());
    }
    Err(Error::LengthMismatch { what: "the slice of values", expected, found: values.len() })
}

/// Deliberate bugs in what the kernels are told about the table: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use gpu_primitives::{Device, FaultKind};

    fn fault<T: std::fmt::Debug>(result: Result<T, Error>) -> FaultKind {
        match result {
            Err(Error::KernelFault(fault)) => fault.kind,
            other => panic!("the bug was not found: {other:?}"),
        }
    }

    fn table(stream: &Stream) -> (GpuCuckoo<u32, u32>, DeviceVec<u32>) {
        let keys = stream.upload(&(0..1000u32).collect::<Vec<_>>()).unwrap();
        (GpuCuckoo::bulk_build(stream, &keys, &keys, Options::new()).unwrap(), keys)
    }

    #[test]
    fn a_table_with_fewer_buckets_than_it_says() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (mut table, keys) = table(&stream);
        table.map.hash.buckets *= 2;
        assert!(matches!(fault(table.lookup(&stream, &keys)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(fault(table.delete(&stream, &keys)), FaultKind::OutOfBounds { .. }));
        assert!(matches!(fault(table.export(&stream)), FaultKind::OutOfBounds { .. }));
    }

    #[test]
    fn a_table_that_was_freed() {
        let stream = Device::cpu_checked().stream().unwrap();
        let (table, keys) = table(&stream);
        let raw = table.raw(&stream).unwrap();
        let kernels = table.kernels();
        drop(table);
        let mut found = stream.uninit::<u8>(1000).unwrap();
        let (keys, found) = (codes(&stream, keys.as_slice()).unwrap(), write(&stream, found.as_mut_slice()).unwrap());
        // SAFETY: the checked device refuses the access, which is what this tests.
        let result = unsafe { kernels.find(&stream, raw, keys, core::ptr::null_mut(), found) };
        assert!(matches!(fault(result), FaultKind::Freed { .. }));
    }
}
