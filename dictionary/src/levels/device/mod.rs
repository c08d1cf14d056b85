//! The kernels of levels, and the functions that they call.

pub(crate) mod directory;
pub(crate) mod find;
pub(crate) mod intervals;
pub(crate) mod merge;
pub(crate) mod payload;
pub(crate) mod query;
pub(crate) mod search;
pub(crate) mod table;
pub(crate) mod tiles;
