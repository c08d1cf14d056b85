//! The cases of the suite, and the model that they compare with.

pub(crate) mod behaviour;
pub(crate) mod copies;
pub(crate) mod disk;
pub(crate) mod durable;
pub(crate) mod failures;
pub(crate) mod files;
pub(crate) mod fuzz;
pub(crate) mod histories;
pub(crate) mod keys;
pub(crate) mod misuse;
pub(crate) mod model;
pub(crate) mod streams;
pub(crate) mod suite;
pub(crate) mod upserts;
