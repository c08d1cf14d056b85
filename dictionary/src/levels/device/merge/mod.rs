//! Kernels that append to a buffer, merge a batch into a level, combine operands, and tell levels apart.

pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod combine;
pub(crate) mod except;
