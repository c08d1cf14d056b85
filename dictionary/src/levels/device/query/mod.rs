//! Kernels that answer queries about single keys.

pub(crate) mod lookup;
pub(crate) mod neighbour;
pub(crate) mod small;
