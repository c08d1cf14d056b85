//! The options of an LSM.

use crate::CleanupPolicy;
use crate::budget::Budget;
use gpu_dictionary::DictionaryOptions;
use gpu_primitives::Error;

/// The largest batch size.
pub(crate) const MAX_BATCH: usize = 1 << 31;
/// The largest buffer.
const MAX_BUFFER: usize = 1 << 31;
/// The buffer if nothing else is said.
pub(crate) const BUFFER: usize = 1 << 22;

/// How an LSM collects updates, and when it cleans up.
///
/// ```
/// use gpu_lsm::{CleanupPolicy, GpuLsm, Options};
/// # use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let options = Options::new().batch_size(1 << 16).cleanup_policy(CleanupPolicy::new().stale_share(0.5));
/// let lsm = GpuLsm::<u32, u32>::new(&stream, options)?;
/// assert_eq!(lsm.stats(&stream)?.batch_size, 1 << 16);
/// assert!(GpuLsm::<u32, u32>::new(&stream, Options::new().batch_size(0)).is_err());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub(crate) batch_size: usize,
    pub(crate) buffer: usize,
    pub(crate) device_memory: Budget,
    pub(crate) cleanup_policy: Option<CleanupPolicy>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Returns the defaults: a batch size for calls of about a million operations, which also suits smaller calls, a buffer of 2^22
    /// operations, all of it in device memory, and no automatic cleanup.
    #[must_use]
    pub fn new() -> Self {
        let batch_size = suggest_batch_size(1 << 20);
        Self { batch_size, buffer: BUFFER, device_memory: Budget(None), cleanup_policy: None }
    }

    /// Sets the largest number of operations in a batch: from 1 to 2^31. A call with more operations is split into
    /// several batches. [`suggest_batch_size`] chooses one.
    #[must_use]
    pub const fn batch_size(self, batch_size: usize) -> Self {
        Self { batch_size, ..self }
    }

    /// Sets how many operations may wait in a buffer: up to 2^31, by default 2^22. With 0 there is no buffer.
    ///
    /// Operations of small calls are copied into the buffer, in the order of their arrival. The first query, or a call that does
    /// not fit, sorts all of them and merges them with the levels, as one batch: see [`GpuLsm::flush`](crate::GpuLsm::flush). A
    /// call with this many operations or more is not copied.
    ///
    /// A buffer that is not empty takes device memory for a key and a value per operation: room for as many as it has had so
    /// far, at most for this many.
    ///
    /// ```
    /// use gpu_lsm::{GpuLsm, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::new(&stream, Options::new().buffer(1 << 16))?;
    /// for key in 0..100 {
    ///     let key = stream.upload(&[key])?;
    ///     lsm.insert(&stream, (&key, &key))?;
    /// }
    /// assert_eq!((lsm.stats(&stream)?.buffered, lsm.stats(&stream)?.levels), (100, 0));
    /// assert_eq!(lsm.len(&stream)?, 100);
    /// assert_eq!((lsm.stats(&stream)?.buffered, lsm.stats(&stream)?.levels), (0, 1));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn buffer(self, operations: usize) -> Self {
        Self { buffer: operations, ..self }
    }

    /// Sets how many bytes of device memory the keys and values of levels may take. Levels that do not fit, the largest and oldest ones, are
    /// in page-locked memory of the host, and kernels read and write them over the link. By default all levels are on the device.
    ///
    /// The index of all levels is on the device in any case, and so are the buffer and the temporary memory of calls: an update needs room
    /// for the batch, its sort, and a new level of up to the budget, before it frees what it replaces. The page
    /// "Larger than the GPU" of the book says how much that is, and what costs what.
    ///
    /// Updates and flushes that merge more than 2^22 elements, some of them on the host, wait for the stream.
    ///
    /// ```
    /// use gpu_lsm::{GpuLsm, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let options = Options::new().batch_size(100).buffer(0).device_memory(1000);
    /// let mut lsm = GpuLsm::<u32, u32>::new(&stream, options)?;
    /// let keys = stream.upload(&(0..200).collect::<Vec<u32>>())?;
    /// lsm.insert(&stream, (&keys, &keys))?; // a level of 1600 bytes
    /// let keys = stream.upload(&(150..250).collect::<Vec<u32>>())?;
    /// lsm.insert(&stream, (&keys, &keys))?; // and one of 800
    /// assert_eq!(lsm.len(&stream)?, 250);
    /// assert_eq!(lsm.stats(&stream)?.host_bytes, 1600);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub const fn device_memory(self, bytes: usize) -> Self {
        Self { device_memory: Budget(Some(bytes)), ..self }
    }

    /// Sets when an update is followed by a cleanup. By default it never is: see
    /// [`GpuLsm::set_cleanup_policy`](crate::GpuLsm::set_cleanup_policy).
    #[must_use]
    pub const fn cleanup_policy(self, policy: CleanupPolicy) -> Self {
        Self { cleanup_policy: Some(policy), ..self }
    }

    /// Returns the options, or an error if a setting is out of range.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if !(1..=MAX_BATCH).contains(&self.batch_size) {
            let asked = self.batch_size.to_string();
            return Err(Error::InvalidOption { what: "the batch size", asked, allowed: "from 1 to 2^31" });
        }
        if self.buffer > MAX_BUFFER {
            let asked = self.buffer.to_string();
            return Err(Error::InvalidOption { what: "the size of the buffer", asked, allowed: "up to 2^31" });
        }
        Ok(self)
    }
}

impl DictionaryOptions for Options {
    /// Has no effect: levels are allocated when they are needed.
    fn expected_keys(self, _: usize) -> Self {
        self
    }

    /// Sets the [batch size](suggest_batch_size) for updates of that many operations.
    fn expected_operations(self, operations: usize) -> Self {
        self.batch_size(suggest_batch_size(operations))
    }
}

/// Returns a batch size for updates of about `operations` operations per call: a power of two.
///
/// A batch size much larger than the calls wastes nothing, but the size of a level then says less about its age. A
/// batch size much smaller than the calls creates more levels than necessary. Below about ten thousand operations,
/// launch overhead dominates the time of a batch.
#[must_use]
pub fn suggest_batch_size(operations: usize) -> usize {
    operations.clamp(1 << 14, 1 << 27).next_power_of_two()
}
