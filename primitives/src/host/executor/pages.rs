//! Large allocations: pages of the system, which are zero, and take memory only once they are used.
//!
//! A page fault takes longer than to fill a page. So they are huge pages, if the system has some.

/// The size of a huge page.
const HUGE: usize = 2 << 20;

/// Returns whether so many bytes are pages of their own.
pub const fn are_pages(bytes: usize) -> bool {
    HAS_PAGES && bytes >= HUGE
}

/// Whether the constants below are those of the system. An interpreter has no pages.
const HAS_PAGES: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

#[cfg(unix)]
mod system {
    use core::ffi::{c_int, c_long, c_void};

    pub const READ_AND_WRITE: c_int = 1 | 2;
    pub const PRIVATE_AND_ANONYMOUS: c_int = 2 | 0x20;
    pub const USE_HUGE_PAGES: c_int = 14;

    unsafe extern "C" {
        pub fn mmap(
            at: *mut c_void,
            bytes: usize,
            access: c_int,
            kind: c_int,
            file: c_int,
            offset: c_long,
        ) -> *mut c_void;
        pub fn munmap(at: *mut c_void, bytes: usize) -> c_int;
        pub fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
}

/// Returns zero bytes at a multiple of [`HUGE`], or null.
#[cfg(unix)]
pub fn allocate(bytes: usize) -> *mut u8 {
    use system::{PRIVATE_AND_ANONYMOUS, READ_AND_WRITE, USE_HUGE_PAGES, madvise, mmap, munmap};
    let Some(bytes) = bytes.checked_next_multiple_of(HUGE).filter(|bytes| bytes.checked_add(HUGE).is_some()) else {
        return core::ptr::null_mut();
    };
    // SAFETY: a new mapping of anonymous memory. What is given back lies within it, and nothing uses it.
    unsafe {
        let all = mmap(core::ptr::null_mut(), bytes + HUGE, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
        if all.addr() == usize::MAX {
            return core::ptr::null_mut();
        }
        let before = all.addr().next_multiple_of(HUGE) - all.addr();
        let start = all.byte_add(before);
        if before > 0 {
            munmap(all, before);
        }
        munmap(start.byte_add(bytes), HUGE - before);
        // Without huge pages, it is only slower.
        madvise(start, bytes, USE_HUGE_PAGES);
        start.cast()
    }
}

/// Gives back what [`allocate`] has returned for so many bytes.
///
/// # Safety
/// Nothing uses the memory any more.
#[cfg(unix)]
pub unsafe fn free(pointer: *mut u8, bytes: usize) {
    // SAFETY: the mapping that `allocate` has left.
    unsafe { system::munmap(pointer.cast(), bytes.next_multiple_of(HUGE)) };
}

#[cfg(not(unix))]
pub fn allocate(_: usize) -> *mut u8 {
    unreachable!("no bytes are pages here")
}

/// # Safety
/// There is none to call it.
#[cfg(not(unix))]
pub unsafe fn free(_: *mut u8, _: usize) {
    unreachable!("no bytes are pages here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_and_aligned() {
        for bytes in [HUGE, HUGE + 1, 3 * HUGE - 1].into_iter().filter(|&bytes| are_pages(bytes)) {
            let pointer = allocate(bytes);
            assert!(!pointer.is_null() && pointer.addr().is_multiple_of(HUGE));
            // SAFETY: all bytes are within the allocation.
            unsafe {
                assert_eq!([0, bytes / 2, bytes - 1].map(|at| pointer.add(at).read()), [0; 3]);
                pointer.add(bytes - 1).write(1);
                free(pointer, bytes);
            }
        }
        assert!(!are_pages(HUGE - 1) && (!HAS_PAGES || allocate(usize::MAX).is_null()));
    }
}
