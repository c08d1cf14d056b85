//! Atomic accesses to keys and counters. All of them are relaxed: the end of a launch orders everything else.

use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::GlobalMut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Calls a method of the atomic that a key is.
macro_rules! atomic {
    ($at:expr, $method:ident $(, $key:expr)*) => {
        if size_of::<C>() == 4 {
            // SAFETY: guaranteed by the caller. A key of 4 bytes is as aligned as the atomic.
            let word = unsafe { AtomicU32::from_ptr($at.cast()) };
            C::from_u64(u64::from(word.$method($($key.to_u64() as u32,)* Relaxed)))
        } else {
            // SAFETY: the same for 8 bytes.
            let word = unsafe { AtomicU64::from_ptr($at.cast()) };
            C::from_u64(word.$method($($key.to_u64(),)* Relaxed))
        }
    };
}

/// Reads a key.
///
/// # Safety
/// The key exists. Meanwhile it is used only by the functions of this module.
#[inline(always)]
pub unsafe fn load<C: KeyCode>(at: *mut C) -> C {
    atomic!(at, load)
}

/// Replaces a key. Returns the old one.
///
/// # Safety
/// The requirements of [`load`].
#[inline(always)]
pub unsafe fn swap<C: KeyCode>(at: *mut C, key: C) -> C {
    atomic!(at, swap, key)
}

/// Replaces a key if it is `current`. Returns what was there.
///
/// # Safety
/// The requirements of [`load`].
#[inline(always)]
pub unsafe fn compare_exchange<C: KeyCode>(at: *mut C, current: C, new: C) -> C {
    let (current, new) = (current.to_u64(), new.to_u64());
    if size_of::<C>() == 4 {
        // SAFETY: guaranteed by the caller. A key of 4 bytes is as aligned as the atomic.
        let word = unsafe { AtomicU32::from_ptr(at.cast()) };
        let (Ok(seen) | Err(seen)) = word.compare_exchange(current as u32, new as u32, Relaxed, Relaxed);
        C::from_u64(u64::from(seen))
    } else {
        // SAFETY: the same for 8 bytes.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        let (Ok(seen) | Err(seen)) = word.compare_exchange(current, new, Relaxed, Relaxed);
        C::from_u64(seen)
    }
}

/// Returns words that several threads use.
///
/// # Safety
/// While the result is used, the memory is used only atomically.
#[inline(always)]
pub unsafe fn words<'a>(words: GlobalMut<u32>) -> &'a [AtomicU32] {
    if words.is_empty() {
        return &[];
    }
    // SAFETY: guaranteed by the caller. An atomic has the layout of its number.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) }
}

/// Returns a counter.
///
/// # Panics
/// If the counter does not exist.
///
/// # Safety
/// While the result is used, the counter is used only atomically.
pub unsafe fn counter<'a>(counters: GlobalMut<u64>, index: usize) -> &'a AtomicU64 {
    assert!(index < counters.len(), "there is counter {index}");
    // SAFETY: the counter exists. The caller guarantees the rest.
    unsafe { AtomicU64::from_ptr(counters.as_mut_ptr().add(index)) }
}

/// Adds to a counter, unless the number is zero.
pub fn add(counter: &AtomicU64, number: u64) {
    if number != 0 {
        counter.fetch_add(number, Relaxed);
    }
}
