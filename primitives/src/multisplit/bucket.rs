//! Bucket functions.

use crate::form::Param;
use crate::sort::{Buckets, Purity};
use bytemuck::{Pod, Zeroable};

/// A function from keys to bucket numbers. It may carry state, which is passed to the GPU as a kernel argument.
///
/// # Contract
/// The same key always has the same bucket; otherwise some items may be lost and others repeated. Numbers beyond the
/// last bucket count as the last bucket.
pub trait Bucket<K>: Param {
    /// Whether the kernels can rely on the contract.
    const PURITY: Purity = Purity::UNKNOWN;
    /// Returns the bucket of a key.
    fn bucket(&self, key: K) -> u32;
}

/// Buckets by the upper bits of a number: `key >> bits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Shift {
    bits: u32,
}

impl Shift {
    /// Buckets of `2^bits` consecutive numbers.
    #[must_use]
    pub const fn by(bits: u32) -> Self {
        Self { bits }
    }
}

impl Bucket<u32> for Shift {
    // SAFETY: the bucket depends only on the key and the number of bits.
    const PURITY: Purity = unsafe { Purity::promised() };

    #[inline(always)]
    fn bucket(&self, key: u32) -> u32 {
        key.checked_shr(self.bits).unwrap_or(0)
    }
}

impl Bucket<u64> for Shift {
    // SAFETY: as above.
    const PURITY: Purity = unsafe { Purity::promised() };

    #[inline(always)]
    fn bucket(&self, key: u64) -> u32 {
        key.checked_shr(self.bits).unwrap_or(0).min(0xFFFF_FFFF) as u32
    }
}

/// A bucket function in the form that the kernels take: one pass, and no bucket beyond the last.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Clamped<B> {
    pub(super) function: B,
    pub(super) last: u32,
}

// SAFETY: `repr(C)`, and both fields are parameters themselves.
unsafe impl<B: Param> Param for Clamped<B> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, crate::kernel::Buffer)) {
        self.function.buffers(name, visit);
    }
}

impl<K, B: Bucket<K>> Buckets<K> for Clamped<B> {
    const MAX_PASSES: usize = 1;
    const PURITY: Purity = B::PURITY;

    #[inline(always)]
    fn bucket(&self, key: K, _: u32) -> u32 {
        self.function.bucket(key).min(self.last)
    }

    #[inline(always)]
    fn last(&self, _: u32) -> u32 {
        self.last
    }
}

/// Instantiates the kernels that split on a GPU, for all combinations of the keys, values and bucket functions. The
/// value `()` stands for keys alone. See [`crate::instances`].
///
/// ```ignore
/// gpu_primitives::multisplit_instances! {
///     in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     keys [Version], values [(), u32], buckets [ByAuthor];
/// }
/// ```
#[macro_export]
macro_rules! multisplit_instances {
    (in $dir:expr; $(keys [$($key:ty),+], values [$($value:ty),+], buckets [$($bucket:ty),+];)+) => {
        $crate::instances! {
            in $dir;
            $(
                for K in [$($key),+], B in [$($bucket),+]:
                    $crate::sort::BucketHistogram<K, $crate::multisplit::Clamped<B>>;
                for K in [$($key),+], V in [$($value),+], B in [$($bucket),+]:
                    $crate::sort::LargePass<K, V, $crate::multisplit::Clamped<B>, { $crate::sort::items::<K, V>() }>;
                for K in [$($key),+], V in [$($value),+], B in [$($bucket),+]:
                    $crate::sort::SmallPass<K, V, $crate::multisplit::Clamped<B>>;
            )+
        }
    };
}

crate::multisplit_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    keys [u32, u64], values [(), u32, u64], buckets [Shift];
}
