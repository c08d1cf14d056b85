//! The table: building and asking.

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
/// - **Keys**: `u32`, `u64`, `i32`, `i64`, `f32`, `f64`, all values of them. Keys are the same if their bits are.
/// - **Equal keys**: of those in one call the last one counts; a key that is there already gets the new value.
/// - **Synchronisation**: [`lookup`](Self::lookup), [`contains`](Self::contains), [`delete`](Self::delete) and
///   [`view`](Self::view) do not wait. What must know a count does: building, inserting, [`clear`](Self::clear),
///   [`len`](Self::len), [`export`](Self::export), [`stats`](Self::stats).
/// - **Memory**: the slots and nothing else: `(size of key + size of value) / load factor` bytes per key. While it is built,
///   twice the pairs and a quarter of the slots more.
/// - **Bounded work**: a key displaces a bounded number of others; a build tries a bounded number of seeds, then grows or refuses, as
///   [`Options`] say. What fails leaves the table with the pairs that it had.
/// - **Streams**: calls may use different streams. What one of them does waits, on the device, for changes that were made on
///   another.
#[derive(Debug)]
pub struct GpuCuckoo<K: Key, V: Pod> {
    pub(super) words: DeviceVec<u64>,
    pub(super) map: Map<K::Code>,
    /// Keys that were placed since the table was built, less those that the host knows to be gone.
    pub(super) placed: u64,
    /// Keys that were deleted since.
    pub(super) erased: DeviceValue<u64>,
    pub(super) options: Options,
    pub(super) rebuilds: u64,
    pub(super) values: PhantomData<V>,
}

/// Figures of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Keys.
    pub len: usize,
    /// Slots.
    pub capacity: usize,
    /// Keys per slot.
    pub load: f64,
    /// Bytes of device memory that it holds.
    pub bytes: usize,
    /// How often it was built anew: other seeds that were tried, and growth.
    pub rebuilds: u64,
}

impl<K: Key, V: Pod> GpuCuckoo<K, V> {
    /// An empty table with room for `capacity` keys at its load factor.
    ///
    /// # Errors
    /// As [`bulk_build`](Self::bulk_build).
    pub fn new(stream: &Stream, capacity: usize, options: Options) -> Result<Self, Error> {
        options.check()?;
        let nothing = Pairs::<K, V>::room(stream, 0)?;
        let buckets = buckets_for(capacity, &options)?;
        let built = build(stream, nothing.keys.as_slice(), nothing.values.as_slice(), buckets, &options)?;
        Self::of(stream, built, options)
    }

    /// A table of these pairs. Of equal keys the last one counts. Values of no size are not given. Waits for the verdict.
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
    /// [`Error::InvalidOption`]; [`Error::LengthMismatch`]; [`Error::TooLong`] for 2^32 - 1 keys and more;
    /// [`Error::TableFull`] if keys found no place and the table may not grow; [`Error::OutOfMemory`]; what a launch can give.
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

    /// The values of keys. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the answers; what a launch can give.
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

    /// For each key 1 if it is there, else 0. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
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
        // SAFETY: the table is this one; as many answers as keys; there is a key.
        unsafe { self.kernels().find(stream, table, keys, values, found) }
    }

    /// The number of keys. Waits.
    ///
    /// # Errors
    /// As a copy to the host.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        Ok((self.placed - self.erased.get(stream)?) as usize)
    }

    /// Whether there is no key. Waits.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        Ok(self.len(stream)? == 0)
    }

    /// All pairs, in the order of their keys. Waits for their number.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; what a launch can give.
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let mut pairs = self.collect(stream, 0)?;
        let len = pairs.keys.len();
        let mut sorted = Pairs::<K, V>::room(stream, len)?;
        // SAFETY: as many pairs, in memory of their own.
        unsafe { self.kernels().sort(stream, pairs.raw(stream)?, sorted.raw(stream)?, K::SIGN)? };
        let values = if size_of::<V>() == 0 { stream.uninit(0)? } else { sorted.values };
        Ok(Contents { keys: sorted.keys, values, len })
    }

    /// All pairs in any order, and room for so many more behind them. Waits.
    pub(super) fn collect(&self, stream: &Stream, more: usize) -> Result<Pairs<K, V>, Error> {
        let mut pairs = Pairs::<K, V>::room(stream, self.len(stream)? + more)?;
        let mut count = stream.zeroed::<u64>(1)?;
        let (table, to, count) = (self.raw(stream)?, pairs.raw(stream)?, write(stream, count.as_mut_slice())?);
        // SAFETY: there is room for as many pairs as the table has.
        unsafe { self.kernels().collect(stream, table, to, count)? };
        Ok(pairs)
    }

    /// Figures of the table. Waits for the number of keys.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let (len, capacity) = (self.len(stream)?, self.slots() as usize);
        let bytes = (self.words.len() + 1) * size_of::<u64>();
        Ok(Stats { len, capacity, load: len as f64 / capacity as f64, bytes, rebuilds: self.rebuilds })
    }

    /// The table as an argument of kernels on this stream. `C` of the view is the code of `K`, `W` a type of the size of `V`:
    /// `()`, `u32` or `u64`. Does not wait.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the table's buckets have another width, or the values another size; [`Error::WrongDevice`].
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
        // SAFETY: the table is borrowed as long as the view.
        Ok(unsafe { View::new(table, Reach::none()) })
    }

    /// Slots of the table.
    pub(super) fn slots(&self) -> u64 {
        u64::from(self.map.hash.buckets) * self.options.bucket_width as u64
    }

    pub(super) fn kernels(&self) -> &'static dyn Launch<K::Code> {
        kernels::<K::Code, V>(self.options.bucket_width)
    }

    /// The table as kernels read it.
    pub(super) fn raw(&self, stream: &Stream) -> Result<RawTable<K::Code>, Error> {
        Ok(RawTable { words: writable(read(stream, self.words.as_slice())?), map: self.map })
    }

    /// The table as kernels change it.
    pub(super) fn raw_mut(&mut self, stream: &Stream) -> Result<RawTable<K::Code>, Error> {
        Ok(RawTable { words: write(stream, self.words.as_mut_slice())?, map: self.map })
    }
}

/// Sets: keys without values.
impl<K: Key> GpuCuckoo<K, ()> {
    /// A set of these keys: [`bulk_build`](Self::bulk_build) without values.
    ///
    /// # Errors
    /// As [`bulk_build`](Self::bulk_build).
    pub fn build_set<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        options: Options,
    ) -> Result<Self, Error> {
        let keys = keys.into();
        Self::bulk_build(stream, keys, &stream.uninit::<()>(0)?, options)
    }

    /// Adds keys: [`insert`](Self::insert) without values.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_keys<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        self.insert(stream, keys, &stream.uninit::<()>(0)?)
    }
}

/// The error if there are not as many values as keys, or any that have no size.
pub(super) fn expect_values<K: Pod, V: Pod>(keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<(), Error> {
    let expected = if size_of::<V>() == 0 { 0 } else { keys.len() };
    if values.len() == expected {
        return Ok(());
    }
    Err(Error::LengthMismatch { what: "the slice of values", expected, found: values.len() })
}

/// Bugs planted in what the kernels are told about the table: the checked device must find them.
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
        let is_beyond = |kind| matches!(kind, FaultKind::OutOfBounds { .. } | FaultKind::NotGiven { .. });
        assert!(is_beyond(fault(table.lookup(&stream, &keys))));
        assert!(is_beyond(fault(table.delete(&stream, &keys))));
        assert!(is_beyond(fault(table.export(&stream))));
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
        // SAFETY: the checked device refuses the access, which is the test.
        let result = unsafe { kernels.find(&stream, raw, keys, core::ptr::null_mut(), found) };
        assert!(matches!(fault(result), FaultKind::Freed { .. }));
    }
}
