//! What GPU dictionaries share: the traits, keys and values, results, files, and the sorted [levels] that the ordered
//! dictionaries are built from.
//!
//! Each dictionary is a crate of its own: gpu-lsm, gpu-sorted-array, gpu-cuckoo. They re-export what their callers
//! need. Depend on this crate to write code that works with any dictionary, or to build one.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
// Device functions are unsafe as a whole: each states its contract once, on the function.
#![allow(unsafe_op_in_unsafe_fn)]

mod key;
pub mod levels;
mod value;

#[cfg(not(target_arch = "nvptx64"))]
pub mod cast;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub mod column;
#[cfg(not(target_arch = "nvptx64"))]
mod contents;
#[cfg(not(target_arch = "nvptx64"))]
pub mod file;
#[cfg(not(target_arch = "nvptx64"))]
mod large;
#[cfg(not(target_arch = "nvptx64"))]
mod lookup;
#[cfg(not(target_arch = "nvptx64"))]
mod snapshot;
#[cfg(not(target_arch = "nvptx64"))]
mod traits;

pub use key::{Key, KeyCode, WordCode, WordKey};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use value::assert_carried;
#[doc(hidden)]
pub use value::{Bytes, HasCarrier};
pub use value::{Carrier, Value, values_for};

#[cfg(not(target_arch = "nvptx64"))]
pub use contents::{Contents, Stats};
#[cfg(not(target_arch = "nvptx64"))]
pub use large::LargeValues;
#[cfg(not(target_arch = "nvptx64"))]
pub use levels::{Neighbour, Ranges};
#[cfg(not(target_arch = "nvptx64"))]
pub use lookup::Lookup;
#[cfg(not(target_arch = "nvptx64"))]
pub use snapshot::Snapshot;
#[cfg(not(target_arch = "nvptx64"))]
pub use traits::{Dictionary, DictionaryOptions, Ordered, Updatable, Upsertable, Upsertion};
