//! The kernels, and the functions and operators that they call.

pub(crate) mod compact;
pub(crate) mod expand;
pub(crate) mod hashed;
pub(crate) mod neighbours;
pub(crate) mod open;
pub(crate) mod reduce;
pub(crate) mod run_outputs;
