//! What threads share: one place, so that the models in `primitives/models` can put checked types in their place.

pub(super) use super::device::lock;
pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Mutex, PoisonError};
pub(super) use std::thread::ThreadId;

pub(super) fn current_thread() -> ThreadId {
    std::thread::current().id()
}
