//! Kernels that answer queries about intervals, where nothing must be merged.

pub(crate) mod copy;
pub(crate) mod gather;
pub(crate) mod windows;
