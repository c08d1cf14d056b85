//! The queries.

use crate::{Contents, GpuLsm, Key, Lookup, LsmView, Neighbour, Ranges, Value};
use gpu_dictionary::levels::{Intervals, RangesMut};
use gpu_primitives::kernel::View;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream};

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Looks up keys. Does not wait.
    ///
    /// Like all queries, [flushes](Self::flush) the buffer first, if there is something in it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. All queries can return these. After an error the dictionary is unchanged.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::lookup", keys.len());
        self.stack(stream)?.lookup(stream, keys)
    }

    /// Returns which keys are present: 1 or 0 for each. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::contains", keys.len());
        self.stack(stream)?.contains(stream, keys)
    }

    /// Counts the keys in each interval from `low` to `high`, both inclusive. An interval that ends before it begins is
    /// empty.
    ///
    /// Waits for the stream, to learn whether the intervals overlap so much that merging all levels once is faster.
    /// After a cleanup it does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length, or the errors of [`lookup`](Self::lookup).
    pub fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<DeviceVec<u64>, Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "lsm::count", low.len());
        self.stack(stream)?.count(stream, Intervals { low, high: high.into() })
    }

    /// Counts the keys in each interval into given memory: see [`count`](Self::count). Never waits, so it can be recorded in a
    /// graph. Intervals that overlap are counted one by one.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, or the errors of [`lookup`](Self::lookup).
    pub fn count_into<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
        counts: impl Into<DeviceSliceMut<'a, u64>>,
    ) -> Result<(), Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "lsm::count_into", low.len());
        self.stack(stream)?.count_into(stream, Intervals { low, high: high.into() }, counts.into())
    }

    /// Returns the pairs in each interval from `low` to `high`, both inclusive, in key order. Waits for the stream, to
    /// learn how many there are.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count). [`Error::OutOfMemory`] says how much memory was needed.
    pub fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Ranges<K, V>, Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "lsm::range", low.len());
        self.stack(stream)?.ranges(stream, Intervals { low, high: high.into() })
    }

    /// Writes the pairs in each interval into given room: see [`range`](Self::range). Never waits, so it can be recorded in a
    /// graph.
    ///
    /// `offsets` receives where the pairs of each interval begin, and finally where the last ones end. Returns how many
    /// pairs there must be room for: those in the intervals, with older versions of the same keys and deleted ones, which a
    /// [cleanup](Self::cleanup) removes. If there is less room, what is written is not specified.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[1, 2, 3, 5])?, &stream.upload(&[10, 20, 30, 50])?))?;
    /// let (low, high) = (stream.upload(&[2, 4])?, stream.upload(&[3, 9])?);
    /// let (mut keys, mut values) = (stream.zeroed(100)?, stream.zeroed(100)?);
    /// let mut offsets = stream.zeroed(3)?;
    /// let needed = lsm.range_into(&stream, &low, &high, &mut offsets, (&mut keys, &mut values))?;
    /// assert!(needed.get(&stream)? <= 100);
    /// assert_eq!(offsets.to_vec(&stream)?, [0, 2, 3]);
    /// assert_eq!(values.to_vec(&stream)?[..3], [20, 30, 50]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if `low` and `high` differ in length, if there is not one more offset than intervals, or if
    ///   there is not room for as many values as keys; for zero-sized values, if there is room for any.
    /// - The errors of [`lookup`](Self::lookup).
    pub fn range_into<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
        offsets: impl Into<DeviceSliceMut<'a, u64>>,
        pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    ) -> Result<DeviceValue<u64>, Error> {
        let to = RangesMut { offsets: offsets.into(), keys: pairs.0.into(), values: pairs.1.into() };
        self.stack(stream)?.ranges_into(stream, Intervals { low: low.into(), high: high.into() }, to)
    }

    /// Combines the values in each interval from `low` to `high`, both inclusive, in key order: their sum, the largest one, or
    /// by any other [`Monoid`]. An interval without keys gives the identity. Waits, as [`range`](Self::range) does.
    ///
    /// ```
    /// use gpu_primitives::scan::{Max, Sum};
    /// use gpu_primitives::{Device, Error};
    /// use gpu_lsm::GpuLsm;
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut prices = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// prices.insert(&stream, (&stream.upload(&[1, 2, 3, 5])?, &stream.upload(&[10, 40, 30, 20])?))?;
    /// let (low, high) = (stream.upload(&[2, 4, 6])?, stream.upload(&[3, 5, 9])?);
    /// assert_eq!(prices.reduce(&stream, &low, &high, Sum)?.to_vec(&stream)?, [70, 20, 0]);
    /// assert_eq!(prices.reduce(&stream, &low, &high, Max)?.to_vec(&stream)?, [40, 20, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Self::range).
    pub fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
        operation: impl Monoid<V>,
    ) -> Result<DeviceVec<V>, Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "lsm::reduce", low.len());
        self.stack(stream)?.reduce(stream, Intervals { low, high: high.into() }, operation)
    }

    /// Finds, for each of `keys`, the smallest key greater than it. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Neighbour<K, V>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::successor", keys.len());
        self.stack(stream)?.neighbours(stream, keys, false)
    }

    /// Finds, for each of `keys`, the largest key less than it. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Neighbour<K, V>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::predecessor", keys.len());
        self.stack(stream)?.neighbours(stream, keys, true)
    }

    /// Returns the exact number of keys. Scans all elements, unless nothing has changed since a cleanup. Waits for the
    /// stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        Ok(self.stack(stream)?.live_len(stream)?.to_vec(stream)?[0] as usize)
    }

    /// Returns whether the dictionary has no keys. Waits, as [`len`](Self::len) does, unless there are no levels.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        Ok(self.any.len()? == 0 || self.len(stream)? == 0)
    }

    /// Returns all pairs in key order, on the device. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        self.stack(stream)?.export(stream)
    }

    /// Returns all pairs in key order, on the host. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Returns the dictionary as an argument for a kernel of your own, which looks up single keys with
    /// [`LsmView::get`]. The kernel sees a key as the unsigned integer with the same bits. It sees a value as its
    /// [carrier](Value::Carrier): an unsigned integer of the same size, or `()`. Does not wait.
    ///
    /// A kernel can take several dictionaries. This one joins two:
    ///
    /// ```
    /// use gpu_lsm::{GpuLsm, LsmView};
    /// use gpu_primitives::kernel::kernel;
    /// use gpu_primitives::{Device, Error, Global, GlobalMut, thread};
    ///
    /// /// Writes, for each key, the product of its values in both dictionaries, or zero if one lacks the key.
    /// ///
    /// /// # Safety
    /// /// There are as many products as keys. The launch has at least one thread per key.
    /// #[kernel(threads = 64)]
    /// unsafe fn join(
    ///     prices: LsmView<u32, u32>,
    ///     amounts: LsmView<u32, u32>,
    ///     keys: Global<u32>,
    ///     products: GlobalMut<u32>,
    /// ) {
    ///     let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    ///     if at < keys.len() {
    ///         let key = keys.get(at);
    ///         let product = prices.get(key).zip(amounts.get(key)).map_or(0, |(price, amount)| price * amount);
    ///         products.set(at, product);
    ///     }
    /// }
    ///
    /// let stream = Device::cpu().stream()?; // on a GPU the kernel also needs PTX: see `instances!`
    /// let (mut prices, mut amounts) = (GpuLsm::<u32, u32>::with_batch_size(1024)?, GpuLsm::<u32, u32>::with_batch_size(1024)?);
    /// prices.insert(&stream, (&stream.upload(&[1, 2, 3])?, &stream.upload(&[10, 20, 30])?))?;
    /// amounts.insert(&stream, (&stream.upload(&[2, 3, 4])?, &stream.upload(&[5, 6, 7])?))?;
    /// let keys = stream.upload(&[1, 2, 3, 4])?;
    /// let mut products = stream.uninit::<u32>(4)?;
    /// let kernel =
    ///     Join::new(prices.view(&stream)?, amounts.view(&stream)?, keys.view(&stream)?, products.view_mut(&stream)?);
    /// // SAFETY: one block of 64 threads covers the four keys, and there are four products.
    /// unsafe { stream.launch(kernel, 1)? };
    /// assert_eq!(products.to_vec(&stream)?, [0, 100, 180, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::PendingUpserts`] if some [upserts](Self::upsert) are not combined yet. The errors of
    /// [`lookup`](Self::lookup).
    #[allow(clippy::type_complexity, reason = "a view of a view type: an alias would hide which")]
    pub fn view(&self, stream: &Stream) -> Result<View<'_, LsmView<K::Code, V::Carrier>>, Error> {
        self.stack(stream)?.view(stream)
    }
}
