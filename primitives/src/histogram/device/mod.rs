//! The kernels, and the functions and operators that they call.

pub(crate) mod bins;
pub(crate) mod kernel;
pub(crate) mod sample;
pub(crate) mod totals;
