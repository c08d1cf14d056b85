//! The kernels, and the functions and operators that they call.

pub(crate) mod chunk;
pub(crate) mod crossing;
pub(crate) mod cut;
pub(crate) mod heads;
pub(crate) mod instances;
pub(crate) mod items;
pub(crate) mod merge;
pub(crate) mod number;
pub(crate) mod pass;
pub(crate) mod shape;
pub(crate) mod tile;
