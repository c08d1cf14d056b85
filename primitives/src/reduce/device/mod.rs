//! The kernels, and the functions and operators that they call.

pub(crate) mod kernel;
pub(crate) mod passing;
pub(crate) mod segments;
