//! The kernels, and the functions and operators that they call.

pub(crate) mod edges;
pub(crate) mod heads;
pub(crate) mod since;
