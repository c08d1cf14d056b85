//! The options of a sorted array.

use gpu_dictionary::DictionaryOptions;

/// How an array is indexed.
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_sorted_array::{GpuSortedArray, Options};
///
/// let stream = Device::default()?.stream()?;
/// let fast = GpuSortedArray::<u32, u32>::new(&stream, Options::new().keys_per_bucket(4))?;
/// # assert!(fast.is_empty(&stream)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) bucket: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Returns the defaults: 16 keys per bucket of the directory, which thus takes half a byte per key.
    #[must_use]
    pub const fn new() -> Self {
        Self { bucket: 16 }
    }

    /// Sets the number of keys per 8-byte bucket of the directory that queries use: at least one. Fewer keys per bucket
    /// make lookups faster and take more memory.
    #[must_use]
    pub const fn keys_per_bucket(self, keys: usize) -> Self {
        Self { bucket: keys }
    }
}

impl DictionaryOptions for Options {
    /// Has no effect: every update allocates the new array.
    fn expected_keys(self, _: usize) -> Self {
        self
    }

    /// Has no effect: every update rewrites the array.
    fn expected_operations(self, _: usize) -> Self {
        self
    }
}
