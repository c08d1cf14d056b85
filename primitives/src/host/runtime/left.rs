//! What a kernel on the CPU drops: an operator may own vectors and streams, in a static for example.
//!
//! Freeing memory and ending a stream need locks that whoever runs the kernel holds. So they happen later, when the host waits
//! for a stream or makes one.

use super::device::lock;
use crate::host::executor::context::in_kernel;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

static LEFT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
/// Whether there is something, so that a look costs no lock.
static IS_ANY: AtomicBool = AtomicBool::new(false);

/// Inside a kernel, keeps what `take` returns for [`drop_left`], and returns `true`.
pub(super) fn leave<T: Any + Send>(take: impl FnOnce() -> T) -> bool {
    if !in_kernel() {
        return false;
    }
    lock(&LEFT).push(Box::new(take()));
    IS_ANY.store(true, Ordering::Release);
    true
}

/// Drops what kernels have left. The caller holds no lock.
pub(super) fn drop_left() {
    if IS_ANY.load(Ordering::Acquire) && !in_kernel() {
        IS_ANY.store(false, Ordering::Release);
        let left = core::mem::take(&mut *lock(&LEFT));
        drop(left); // without the lock
    }
}
