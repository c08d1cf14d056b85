//! The kernels, and the functions and operators that they call.

mod best;
pub(crate) mod best_of_rows;
pub(crate) mod code;
pub(crate) mod histogram;
pub(crate) mod instances;
pub(crate) mod kernel;
pub(crate) mod layout;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod rows;
pub(crate) mod sample_rows;
pub(crate) mod sift;
pub(crate) mod tile;
