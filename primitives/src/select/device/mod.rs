//! The kernels, and the functions and operators that they call.

pub(crate) mod kernel;
pub(crate) mod predicate;
pub(crate) mod segments;
pub(crate) mod source;
pub(crate) mod tile;
