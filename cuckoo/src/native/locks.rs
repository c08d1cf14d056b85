//! Locks of buckets: one bit each.

use gpu_primitives::GlobalMut;
use std::sync::atomic::{AtomicU32, Ordering};

/// The bits, all zero while no bucket is locked.
#[derive(Clone, Copy)]
pub struct Locks<'a>(&'a [AtomicU32]);

impl Locks<'_> {
    /// Makes locks of these words.
    ///
    /// # Safety
    /// While the result is used, the words are used only by it.
    pub unsafe fn new(words: GlobalMut<u32>) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { super::atomics::words(words) })
    }

    /// Locks a bucket. Waits until no other thread holds the lock.
    ///
    /// # Panics
    /// If the bucket has no bit.
    #[inline(always)]
    pub fn lock(self, bucket: u32) {
        /// After so many failures the holder is taken to be suspended.
        const SPINS: u32 = 100;
        let (word, bit) = (&self.0[bucket as usize / 32], 1 << (bucket % 32));
        let mut failures = 0;
        while word.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            failures += 1;
            if failures < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Unlocks a bucket that the caller has locked.
    #[inline(always)]
    pub fn unlock(self, bucket: u32) {
        self.0[bucket as usize / 32].fetch_and(!(1 << (bucket % 32)), Ordering::Release);
    }
}
