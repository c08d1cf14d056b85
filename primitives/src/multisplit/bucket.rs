//! Bucket functions.

use crate::kernel::Param;
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

/// Instantiates the kernels that split a key type by a bucket function on a GPU, without values (value `()`) or with
/// values: see [`crate::instances`].
#[macro_export]
macro_rules! multisplit_instances {
    (in $dir:expr; $key:ty, $bucket:ty, $histogram:ident; $($value:ty: $large:ident, $small:ident;)*) => {
        $crate::instances! {
            in $dir;
            $histogram: $crate::sort::BucketHistogram<$key, $crate::multisplit::Clamped<$bucket>>;
            $(
                $large: $crate::sort::LargePass<
                    $key, $value, $crate::multisplit::Clamped<$bucket>, { $crate::sort::items::<$key, $value>() }
                >;
                $small: $crate::sort::SmallPass<$key, $value, $crate::multisplit::Clamped<$bucket>>;
            )*
        }
    };
}

crate::multisplit_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Shift, split_histogram_32;
    (): split_pass_32, split_small_32;
    u32: split_pass_32_32, split_small_32_32;
    u64: split_pass_32_64, split_small_32_64;
}
crate::multisplit_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, Shift, split_histogram_64;
    (): split_pass_64, split_small_64;
    u32: split_pass_64_32, split_small_64_32;
    u64: split_pass_64_64, split_small_64_64;
}
