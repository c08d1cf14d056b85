//! The queries.

use crate::{GpuLsm, Key, LsmView, Value};
use gpu_primitives::{Error, Stream};

gpu_dictionary::queries_of_levels! {
    gpu_lsm::GpuLsm, "lsm";

    /// Like all queries, [flushes](Self::flush) the buffer first, if there is something in it.
    lookup;

    /// Waits for the stream, to learn whether the intervals overlap so much that merging all levels once is faster.
    /// After a cleanup it does not wait.
    count;

    /// There must be room for the pairs in the intervals, with older versions of the same keys and deleted ones, which a
    /// [cleanup](Self::cleanup) removes.
    range_into;

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
    view -> LsmView;
}

impl<K: Key, V: Value> GpuLsm<K, V> {
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
}
