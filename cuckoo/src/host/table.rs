//! The table, and how it is built.

use super::additions::Additions;
use super::build::{Built, buckets_for, build};
use super::options::Options;
use super::pairs::{Given, PairSlices, PairVec, Sizes};
use super::storage::Storage;
use super::work::Work;
use core::marker::PhantomData;
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::{Value, WordKey as Key, assert_carried};
use gpu_primitives::lowered::AnySlice;
use gpu_primitives::{DeviceSlice, DeviceValue, Error, Stream};

/// A hash table on the device, from keys to values of 0, 4 or 8 bytes.
///
/// - **Keys**: `u32`, `u64`, `i32`, `i64`, `f32`, `f64`, all values of them. Two keys are equal if their bits are
///   equal.
/// - **Equal keys**: within one call, the last one wins. Inserting a key that is already present replaces its value.
/// - **Synchronisation**: [`lookup`](Self::lookup), [`contains`](Self::contains), [`delete`](Self::delete),
///   [`remove`](Self::remove), [`retain`](Self::retain), [`for_each`](Self::for_each) and [`view`](Self::view) do not
///   wait. Operations that need a count do: building, [`insert`](Self::insert), [`upsert`](Self::upsert),
///   [`clear`](Self::clear), [`len`](Self::len), [`export`](Self::export), [`stats`](Self::stats).
/// - **Memory**: the slots: `(size of key + size of value) / load factor` bytes per key. A build temporarily needs another
///   two copies of the pairs and a quarter of the slots; an insertion about four copies of its batch, and 33 bits per
///   bucket. The table keeps these for the next insertion, unless the copies are larger than half of its slots.
///   [`rebuild`](Self::rebuild) and [`clear`](Self::clear) free them.
/// - **Bounded work**: a key displaces a bounded number of others. A build tries a bounded number of seeds, then grows
///   or fails, as [`Options`] say. A failed call leaves the table with the pairs it had.
/// - **Streams**: calls may use different streams. On the device, a call waits for changes made on other streams.
#[derive(Debug)]
pub struct GpuCuckoo<K: Key, V: Value> {
    pub(super) raw: RawTable,
    /// Which checkpoints this table continues.
    pub(super) history: History,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table whose types are known by their sizes alone, so that its code is compiled once, with this crate. Slices of keys and of
/// values have these sizes.
#[derive(Debug)]
pub struct RawTable {
    pub(super) storage: Storage,
    /// Keys placed by the build and by the host since then, minus those that were displaced and found no other slot.
    pub(super) placed: u64,
    /// Keys that kernels of the user have placed in addition.
    pub(super) additions: Option<Additions>,
    /// Keys deleted since the build.
    pub(super) erased: DeviceValue<u64>,
    /// How many of them the host knows of: at least so many have been deleted.
    pub(super) known_erased: u64,
    pub(super) options: Options,
    pub(super) rebuilds: u64,
    /// What the last insertion has left for the next one.
    pub(super) work: Option<Work>,
    /// Whether the kernels are loaded that place pairs and undo insertions.
    pub(super) has_kernels: bool,
}

/// Statistics of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The number of keys.
    pub len: usize,
    /// The number of slots.
    pub slots: usize,
    /// Keys per slot.
    pub load: f64,
    /// The device memory in bytes.
    pub bytes: usize,
    /// The device memory in bytes that is kept for the next insertion, in addition.
    pub kept: usize,
    /// How often the table was rebuilt: to try another seed, or to grow.
    pub rebuilds: u64,
}

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    pub(super) const SIZES: Sizes = {
        assert_carried::<V>();
        Sizes { key: size_of::<K>(), value: size_of::<V>() }
    };

    /// Returns a table of keys and values with these [sizes](Self::SIZES).
    pub(super) fn of(raw: RawTable) -> Self {
        assert_eq!(raw.storage.sizes(), Self::SIZES, "the types of a table");
        Self { raw, history: History::default(), types: PhantomData }
    }

    /// Creates an empty table with room for as many keys as the options [say](Options::capacity). Waits.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build).
    pub fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        RawTable::empty(stream, Self::SIZES, options).map(Self::of)
    }

    /// Returns the options that the table has. A new one with them behaves in the same way.
    #[must_use]
    pub fn options(&self) -> Options {
        self.raw.options.clone()
    }

    /// Makes a copy of the table, which can be queried and updated independently. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        self.raw.try_clone(stream).map(Self::of)
    }

    /// Builds a table from these pairs: keys, and as many values. If a key occurs more than once, the last pair wins.
    /// For zero-sized values, pass an empty slice. Waits for the result.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[1.5f64, -0.0, 0.0])?;
    /// let values = stream.upload(&[[1u8, 2, 3, 4], [5; 4], [6; 4]])?;
    /// let table = GpuCuckoo::bulk_build(&stream, (&keys, &values), Options::new())?;
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
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        RawTable::bulk_build(stream, of_caller(pairs), options).map(Self::of)
    }
}

/// Returns pairs of the caller without their types.
pub fn of_caller<'a, K: Key, V: Value>(
    pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
) -> PairSlices<'a> {
    (AnySlice::from(pairs.0.into()), AnySlice::from(pairs.1.into()))
}

impl RawTable {
    fn empty(stream: &Stream, sizes: Sizes, options: Options) -> Result<Self, Error> {
        Self::build(stream, PairVec::uninit(stream, sizes, 0)?.slices(), options)
    }

    fn bulk_build(stream: &Stream, pairs: PairSlices<'_>, options: Options) -> Result<Self, Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::bulk_build", pairs.0.len());
        Self::build(stream, Given::new(stream, pairs)?.slices(), options)
    }

    fn build(stream: &Stream, pairs: PairSlices<'_>, options: Options) -> Result<Self, Error> {
        options.check()?;
        let options = options.with_any_seed();
        let buckets = buckets_for(pairs.0.len().max(options.capacity), &options)?;
        Self::from_built(stream, build(stream, pairs, buckets, &options)?, options)
    }

    fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut erased = DeviceValue::new(stream, 0)?;
        erased.as_mut_slice().copy_from(stream, self.erased.as_slice())?;
        Ok(Self {
            storage: self.storage.try_clone(stream)?,
            placed: self.placed,
            additions: self.additions.as_ref().map(|additions| additions.try_clone(stream)).transpose()?,
            erased,
            known_erased: self.known_erased,
            options: self.options.clone(),
            rebuilds: self.rebuilds,
            work: None,
            has_kernels: self.has_kernels,
        })
    }

    pub(super) fn from_built(stream: &Stream, built: Built, options: Options) -> Result<Self, Error> {
        let Built { storage, len, failures } = built;
        let erased = DeviceValue::new(stream, 0)?;
        let rebuilds = u64::from(failures);
        Ok(Self {
            storage,
            placed: len,
            additions: None,
            erased,
            known_erased: 0,
            options,
            rebuilds,
            work: None,
            has_kernels: false,
        })
    }
}

gpu_dictionary::methods_of_sets! {
    GpuCuckoo<K, ()>: [K: Key], K, Options
}
