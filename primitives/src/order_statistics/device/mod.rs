//! The kernels, and the functions that they call.

pub(crate) mod cuts;
pub(crate) mod instances;
pub(crate) mod kernel;
pub(crate) mod pick;
pub(crate) mod rows;
