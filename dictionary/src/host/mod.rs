//! What only the host compiles: the traits of dictionaries, their results and their files.

pub mod cast;
pub mod checkpoint;
#[doc(hidden)]
pub mod column;
#[doc(hidden)]
pub mod combine;
pub(crate) mod contents;
pub(crate) mod durable;
pub mod file;
mod forward;
pub(crate) mod large;
pub(crate) mod lookup;
mod sets;
pub(crate) mod snapshot;
pub(crate) mod traits;
