//! The kernels, and the functions and operators that they call.

pub(crate) mod kernel;
pub(crate) mod place;
pub(crate) mod runs;
pub(crate) mod shape;
pub(crate) mod tile;
