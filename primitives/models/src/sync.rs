//! What the library's `runtime/sync.rs` gives, with types that `loom` checks.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
pub(crate) use loom::thread::ThreadId;
pub(crate) use std::sync::PoisonError;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn current_thread() -> ThreadId {
    loom::thread::current().id()
}
