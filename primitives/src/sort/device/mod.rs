//! The kernels, and the functions and operators that they call.

pub(crate) mod block;
pub(crate) mod digits;
pub(crate) mod instances;
pub(crate) mod kernel;
pub(crate) mod pack;
pub(crate) mod rows;
pub(crate) mod shape;
mod tile;
