//! One test suite for all dictionaries: the guarantees of the traits, compared with a `BTreeMap`.
//!
//! The tests of a structure describe it by a [`Family`]. They run [`cases`] and, if the structure keeps its keys in
//! order, [`ordered_cases`]. The histories are the same for all structures.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

#[cfg(not(target_arch = "nvptx64"))]
mod host;
pub mod kernels;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::behaviour::{a_join, a_kernel_of_ones_own};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::disk::{Failure, Machine};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::durable::{checkpoint_crashes, checkpoint_damage, checkpoint_history};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::failures::{Input, fail};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::files::{Failing, refused, round_trip, saved};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::fuzz::{Mutator, Round, fuzz_seeds, sections};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::keys::{all_operations, upserts_of};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::model::{
    Family, Modelled, OwnFolder, Questions, Random, Value, check_order, extremes, is_long, upload_values,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::suite::{cases, combining_cases, composed, ordered_cases};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::upserts::{Combining, Compose};
