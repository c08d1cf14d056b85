//! Marks of slots: see [`Marks`].

use super::atomics;
use super::table::prefetch;
use crate::device::{MARKS, Marks};
use std::sync::atomic::Ordering::Relaxed;

impl Marks {
    /// Requests the word of a bucket.
    #[inline(always)]
    pub fn prefetch(self, bucket: u32) {
        prefetch(self.words.as_mut_ptr().wrapping_add(bucket as usize));
    }

    /// Does what [`mark`](Self::mark) does.
    ///
    /// # Panics
    /// If the bucket has no word.
    ///
    /// # Safety
    /// Meanwhile the marks are used only by this function.
    #[inline(always)]
    pub unsafe fn mark_natively(self, bucket: u32, slot: u32) -> bool {
        // SAFETY: guaranteed by the caller.
        let word = unsafe { &atomics::words(self.words)[bucket as usize] };
        let bit = 1 << slot;
        let mut seen = word.load(Relaxed);
        loop {
            let marked = if seen >> MARKS == self.batch { seen } else { self.batch << MARKS };
            if marked & bit != 0 {
                return false;
            }
            match word.compare_exchange_weak(seen, marked | bit, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    /// Does what [`mark`](Self::mark) does, for the only thread that uses this word.
    ///
    /// # Panics
    /// If the bucket has no word.
    ///
    /// # Safety
    /// Meanwhile nothing else uses the word of the bucket.
    #[inline(always)]
    pub unsafe fn mark_alone(self, bucket: u32, slot: u32) -> bool {
        // SAFETY: guaranteed by the caller.
        let word = unsafe { &atomics::words(self.words)[bucket as usize] };
        let (bit, seen) = (1 << slot, word.load(Relaxed));
        let marked = if seen >> MARKS == self.batch { seen } else { self.batch << MARKS };
        word.store(marked | bit, Relaxed);
        marked & bit == 0
    }

    /// Returns what [`marked`](Self::marked) returns.
    ///
    /// # Panics
    /// If the bucket has no word.
    ///
    /// # Safety
    /// Nothing marks slots meanwhile.
    #[inline(always)]
    pub unsafe fn marked_natively(self, bucket: u32) -> u32 {
        // SAFETY: guaranteed by the caller.
        let word = unsafe { self.words.as_const().as_slice() }[bucket as usize];
        if word >> MARKS == self.batch { word & ((1 << MARKS) - 1) } else { 0 }
    }
}
