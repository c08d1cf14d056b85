//! Functions from keys to buckets: those of the user, and what the kernels that distribute items make of them.

mod bucket;
mod purity;

use crate::block::radix::RADIX;
use crate::form::Param;

pub(crate) use bucket::HoleBuckets;
pub use bucket::{Bucket, Shift};
pub use purity::Purity;

/// Assigns keys to buckets, pass by pass.
///
/// # Contract
/// The same key in the same pass always has the same bucket. An implementation that breaks this, or that returns
/// buckets beyond the last one, yields some order, and may lose some items and repeat others.
pub trait Buckets<K>: Param {
    /// The maximum number of passes.
    const MAX_PASSES: usize;
    /// Whether the kernels can rely on the contract.
    const PURITY: Purity = Purity::UNKNOWN;
    /// Whether computing a bucket takes so many registers that fewer blocks should share a multiprocessor.
    const IS_COSTLY: bool = false;
    /// Returns the bucket of a key: at most [`last`](Self::last).
    fn bucket(&self, key: K, pass: u32) -> u32;
    /// Returns the last bucket: at most 255.
    fn last(&self, pass: u32) -> u32;

    /// Returns whether keys of one bucket may come in any order after this pass, which is faster. Keys with values always
    /// keep their order. The answer depends on the pass alone: a block's threads must agree.
    #[inline(always)]
    fn is_any_order(&self, _pass: u32) -> bool {
        false
    }

    /// Writes the buckets of keys.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    fn buckets(&self, keys: &[K], pass: u32, buckets: &mut [u32])
    where
        K: Copy,
    {
        buckets.iter_mut().zip(keys).for_each(|(bucket, &key)| *bucket = self.bucket(key, pass));
    }
}

/// Returns the last bucket, clamped to [`RADIX`] unless the function is known to be pure.
#[inline(always)]
pub(crate) fn last_bucket<K, B: Buckets<K>>(buckets: &B, pass: u32) -> u32 {
    let last = buckets.last(pass);
    if B::PURITY.is_promised() { last } else { last.min(RADIX as u32 - 1) }
}

/// Returns the bucket of a key, clamped to the last one unless the function is known to be pure.
#[inline(always)]
pub(crate) fn bucket_of<K, B: Buckets<K>>(buckets: &B, key: K, pass: u32, last: u32) -> u32 {
    let bucket = buckets.bucket(key, pass);
    if B::PURITY.is_promised() { bucket } else { bucket.min(last) }
}

/// Writes the buckets of keys as [`bucket_of`] returns them.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) fn buckets_of<K: Copy, B: Buckets<K>>(function: &B, keys: &[K], pass: u32, last: u32, buckets: &mut [u32]) {
    function.buckets(keys, pass, buckets);
    if !B::PURITY.is_promised() {
        buckets.iter_mut().for_each(|bucket| *bucket = (*bucket).min(last));
    }
}
