//! Levels on the host: how they are made, merged, and asked.

pub(crate) mod all_values;
pub(crate) mod buffer;
pub(crate) mod far;
pub(crate) mod file;
pub(crate) mod full_merge;
pub(crate) mod intervals;
mod kinds;
pub(crate) mod level;
mod methods;
pub(crate) mod operation;
pub(crate) mod query;
pub(crate) mod stack;
pub(crate) mod typed;
pub(crate) mod types;
pub(crate) mod view;
