//! What only the host compiles: the runtime, the CPU executor, and the sources of primitives.

#[deny(unsafe_op_in_unsafe_fn)]
pub(crate) mod computed;
pub(crate) mod device_kind;
pub(crate) mod error;
pub(crate) mod executor;
pub mod host_sort;
pub(crate) mod instance;
pub(crate) mod load;
pub(crate) mod preload;
pub mod ranges;
pub(crate) mod recorded;
pub(crate) mod repr;
#[deny(unsafe_op_in_unsafe_fn)]
pub(crate) mod runtime;
pub mod source;
#[cfg(feature = "testing")]
pub mod testing;
