//! The options of an LSM.

use crate::CleanupPolicy;
use gpu_dictionary::DictionaryOptions;
use gpu_primitives::Error;

/// The largest batch size.
pub(crate) const MAX_BATCH: usize = 1 << 31;

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
    pub(crate) cleanup_policy: Option<CleanupPolicy>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Returns the defaults: a batch size for calls of about a million operations, which also suits smaller calls, and
    /// no automatic cleanup.
    #[must_use]
    pub fn new() -> Self {
        Self { batch_size: suggest_batch_size(1 << 20), cleanup_policy: None }
    }

    /// Sets the largest number of operations in a batch: from 1 to 2^31. A call with more operations is split into
    /// several batches. [`suggest_batch_size`] chooses one.
    #[must_use]
    pub const fn batch_size(self, batch_size: usize) -> Self {
        Self { batch_size, ..self }
    }

    /// Sets when an update is followed by a cleanup. By default it never is: see
    /// [`GpuLsm::set_cleanup_policy`](crate::GpuLsm::set_cleanup_policy).
    #[must_use]
    pub const fn cleanup_policy(self, policy: CleanupPolicy) -> Self {
        Self { cleanup_policy: Some(policy), ..self }
    }

    /// Returns the options, or an error if a setting is out of range.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if (1..=MAX_BATCH).contains(&self.batch_size) {
            return Ok(self);
        }
        let asked = self.batch_size.to_string();
        Err(Error::InvalidOption { what: "the batch size", asked, allowed: "from 1 to 2^31" })
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
