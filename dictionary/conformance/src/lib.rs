//! One test suite for all dictionaries: the guarantees of the traits, compared with a `BTreeMap`.
//!
//! The tests of a structure describe it by a [`Family`]. They run [`cases`] and, if the structure keeps its keys in
//! order, [`ordered_cases`]. The histories are the same for all structures.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod kernels;

#[cfg(not(target_arch = "nvptx64"))]
mod behaviour;
#[cfg(not(target_arch = "nvptx64"))]
mod copies;
#[cfg(not(target_arch = "nvptx64"))]
mod failures;
#[cfg(not(target_arch = "nvptx64"))]
mod files;
#[cfg(not(target_arch = "nvptx64"))]
mod fuzz;
#[cfg(not(target_arch = "nvptx64"))]
mod histories;
#[cfg(not(target_arch = "nvptx64"))]
mod keys;
#[cfg(not(target_arch = "nvptx64"))]
mod misuse;
#[cfg(not(target_arch = "nvptx64"))]
mod model;
#[cfg(not(target_arch = "nvptx64"))]
mod streams;
#[cfg(not(target_arch = "nvptx64"))]
mod suite;
#[cfg(not(target_arch = "nvptx64"))]
mod upserts;

#[cfg(not(target_arch = "nvptx64"))]
pub use behaviour::{a_join, a_kernel_of_ones_own};
#[cfg(not(target_arch = "nvptx64"))]
pub use failures::{Input, fail};
#[cfg(not(target_arch = "nvptx64"))]
pub use files::{Failing, refused, round_trip, saved};
#[cfg(not(target_arch = "nvptx64"))]
pub use fuzz::{Mutator, Round, fuzz_seeds, sections};
#[cfg(not(target_arch = "nvptx64"))]
pub use keys::{all_operations, upserts_of};
#[cfg(not(target_arch = "nvptx64"))]
pub use model::{Family, Modelled, OwnFolder, Questions, Random, Value, check_order, extremes, is_long, upload_values};
#[cfg(not(target_arch = "nvptx64"))]
pub use suite::{cases, combining_cases, composed, ordered_cases};
#[cfg(not(target_arch = "nvptx64"))]
pub use upserts::{Combining, Compose};
