//! How keys find their buckets.

use crate::kernel::Param;
use crate::sort::{Buckets, Purity};
use bytemuck::{Pod, Zeroable};

/// A bucket number for every key. It may carry state, which travels to the GPU as a kernel argument.
///
/// # Contract
/// The same key always has the same bucket; otherwise items may be lost and others repeated. A number beyond the last bucket
/// counts as the last one.
pub trait Bucket<K>: Param {
    /// Whether the contract can be relied on.
    const PURITY: Purity = Purity::UNKNOWN;
    /// The bucket of a key.
    fn bucket(&self, key: K) -> u32;
}

/// The upper bits of a number: `key >> bits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Shift {
    bits: u32,
}

impl Shift {
    /// Buckets of `2^bits` numbers.
    #[must_use]
    pub const fn by(bits: u32) -> Self {
        Self { bits }
    }
}

impl Bucket<u32> for Shift {
    // SAFETY: the bucket follows from the key and the number of bits.
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

/// A bucket function as the kernels take it: one pass, and no bucket beyond the last.
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

/// Names the kernels that split a type of keys by a bucket function on a GPU, alone (value `()`) or with values: see
/// [`crate::instances`].
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
