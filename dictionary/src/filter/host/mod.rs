//! The filter: what its owner calls.

#![deny(unsafe_op_in_unsafe_fn)]

mod file;
pub(crate) mod options;
pub(crate) mod raw;
mod theory;

use super::view::FilterView;
use bytemuck::Pod;
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream};
use options::Options;
use raw::RawFilter;
use std::io::{Read, Write};
use std::marker::PhantomData;

/// A blocked Bloom filter on the device, with keys of any plain type of 1 to 32 bytes.
///
/// Two keys are equal if their bytes are equal. All bits of a key are in one block of 32 bytes, so a query reads one sector of
/// memory. See the [module](super) for an example, and for what is guaranteed.
///
/// ```compile_fail,E0080
/// # use gpu_dictionary::filter::{BloomFilter, Options};
/// # use gpu_primitives::{Device, Error};
/// let stream = Device::cpu().stream()?;
/// let filter = BloomFilter::<[u64; 5]>::new(&stream, Options::new())?; // 40 bytes
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct BloomFilter<K> {
    raw: RawFilter,
    keys: PhantomData<fn() -> K>,
}

/// Statistics of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The bytes of device memory.
    pub bytes: usize,
    /// The bits of its block that a key sets.
    pub hashes: u32,
    /// The bits that are set, in the whole filter.
    pub bits_set: u64,
    /// The number of different keys that were inserted, as the bits that are set tell it: within a few per cent, unless the filter is
    /// nearly full. Infinite if all bits are set.
    pub estimated_keys: f64,
    /// The share of false positives among queries for absent keys, for that number of keys.
    pub false_positive_rate: f64,
}

impl<K: Pod> BloomFilter<K> {
    /// The bytes of a key, checked when this is compiled.
    const KEY_BYTES: usize = {
        assert!(matches!(size_of::<K>(), 1..=32), "a key of a filter has 1 to 32 bytes");
        size_of::<K>()
    };

    const fn of(raw: RawFilter) -> Self {
        Self { raw, keys: PhantomData }
    }

    /// Creates an empty filter for as many keys as the options [say](Options::capacity). Does not wait.
    ///
    /// # Errors
    /// [`Error::InvalidOption`], [`Error::TooLong`] for more than 128 GiB, or [`Error::OutOfMemory`].
    pub fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        RawFilter::new(stream, options.shape(0)?, const { Self::KEY_BYTES }).map(Self::of)
    }

    /// Builds a filter that has these keys. It is made for them, or for more if the options [say so](Options::capacity). Does not
    /// wait.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new) and of [`insert`](Self::insert).
    pub fn build<'a>(stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>, options: Options) -> Result<Self, Error> {
        let keys = keys.into();
        let mut raw = RawFilter::new(stream, options.shape(keys.len())?, const { Self::KEY_BYTES })?;
        raw.insert(stream, keys.into())?;
        Ok(Self::of(raw))
    }

    /// Inserts keys. Does not wait.
    ///
    /// Takes temporary memory for the keys, if it is there: many keys for a filter that is larger than the caches are first sorted
    /// by the part of the filter that they change, which is faster. Keys of other sizes than 4 and 8 bytes, and misaligned ones, take
    /// 8 bytes each.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for keys of other sizes than 4 and 8 bytes and for misaligned ones, or any launch error. After an error
    /// the filter is unchanged.
    pub fn insert<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.raw.insert(stream, keys.into().into())
    }

    /// Returns 1 for each key that the filter may contain, and 0 for the others, which were never inserted. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the results, or any launch error.
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        self.raw.contains(stream, keys.into().into())
    }

    /// Returns the answers of [`contains`](Self::contains) as [packed bits](gpu_primitives::Bits): a byte for eight keys. Does not
    /// wait.
    ///
    /// ```
    /// use gpu_dictionary::filter::{BloomFilter, Options};
    /// use gpu_primitives::{Bits, Device, Error, select};
    ///
    /// // Keep what is probably in the set, before a join that is exact and costs more.
    /// let stream = Device::cpu().stream()?;
    /// let set = BloomFilter::build(&stream, &stream.upload(&[3u64, 5, 8])?, Options::new())?;
    /// let rows = stream.upload(&[1u64, 3, 4, 8, 9])?;
    /// let bits = set.contains_bits(&stream, &rows)?;
    /// let mut kept = stream.uninit(5)?;
    /// let count = select::by_bits(&stream, &rows, Bits::new(&bits, 0, 5)?, &mut kept)?.get(&stream)? as usize;
    /// assert_eq!(kept.slice(..count)?.to_vec(&stream)?, [3, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn contains_bits<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<DeviceVec<u8>, Error> {
        self.raw.contains_bits(stream, keys.into().into())
    }

    /// Returns how many of the keys the filter may contain. Equal keys count as often as they occur. Does not wait.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn count<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceValue<u64>, Error> {
        self.raw.count(stream, keys.into().into())
    }

    /// Inserts all keys of another filter. Does not wait. Takes temporary memory of the size of the filter.
    ///
    /// ```
    /// use gpu_dictionary::filter::{BloomFilter, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let options = Options::new().capacity(1000);
    /// let mut one = BloomFilter::build(&stream, &stream.upload(&[1u32, 2])?, options.clone())?;
    /// let other = BloomFilter::build(&stream, &stream.upload(&[3u32])?, options)?;
    /// one.merge(&stream, &other)?;
    /// assert_eq!(one.contains(&stream, &stream.upload(&[1, 2, 3])?)?.to_vec(&stream)?, [1, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the filters have different sizes, hashes or seeds; [`Error::NotRecordable`] if the stream records;
    /// [`Error::OutOfMemory`], or any launch error. After an error the filter is unchanged.
    pub fn merge(&mut self, stream: &Stream, other: &Self) -> Result<(), Error> {
        self.raw.merge(stream, &other.raw)
    }

    /// Removes all keys. Does not wait.
    ///
    /// # Errors
    /// Any error of a fill.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.raw.clear(stream)
    }

    /// Makes a copy that can change independently. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        self.raw.try_clone(stream).map(Self::of)
    }

    /// Returns the bytes of device memory that the filter takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.raw.bytes()
    }

    /// Counts the bits that are set, and estimates by them how many keys there are, and how many false positives. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy to the host.
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        self.raw.stats(stream)
    }

    /// Returns the filter as an argument for a kernel of your own: see [`FilterView`]. Does not wait.
    ///
    /// # Errors
    /// [`Error::WrongDevice`].
    pub fn view(&self, stream: &Stream) -> Result<View<'_, FilterView<K>>, Error>
    where
        K: 'static,
    {
        let words = self.raw.words().view(stream)?;
        // SAFETY: the words hold all blocks of the shape. The result borrows them, as the view of the words does.
        Ok(unsafe { View::new(FilterView::new(words.into_param(), self.raw.shape()), Reach::none()) })
    }

    /// Writes the filter to a file. [`load`](Self::load) reads it on any device. Waits.
    ///
    /// ```
    /// use gpu_dictionary::filter::{BloomFilter, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[[1u8, 2, 3], [4, 5, 6]])?;
    /// let mut file = Vec::new();
    /// BloomFilter::build(&stream, &keys, Options::new())?.save(&stream, &mut file)?;
    /// let again = BloomFilter::<[u8; 3]>::load(&stream, &file[..])?;
    /// assert_eq!(again.contains(&stream, &keys)?.to_vec(&stream)?, [1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or any error of a copy to the host.
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        self.raw.save(stream, &mut writer)
    }

    /// Reads a filter written by [`save`](Self::save). Reads exactly to the end of the filter. Checks everything: it returns a complete
    /// filter or an error. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or holds another structure or keys of another size. The error says
    ///   what is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - [`Error::OutOfMemory`].
    pub fn load(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        RawFilter::load(stream, &mut reader, const { Self::KEY_BYTES }).map(Self::of)
    }
}
