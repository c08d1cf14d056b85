//! What GPU dictionaries share: the traits, keys and values, results, files, and the sorted [levels] that the ordered
//! dictionaries are built from.
//!
//! Each dictionary is a crate of its own: gpu-lsm, gpu-sorted-array, gpu-cuckoo. They re-export what their callers
//! need. Depend on this crate to write code that works with any dictionary, or to build one.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
// Device functions are unsafe as a whole: each states its contract once, on the function.
#![allow(unsafe_op_in_unsafe_fn)]

pub mod filter;
#[cfg(not(target_arch = "nvptx64"))]
mod host;
mod key;
pub mod levels;
mod plain_key;
mod value;

pub use key::{Key, KeyCode, WordCode, WordKey};
pub use plain_key::PlainKey;
#[doc(hidden)]
pub use plain_key::{KeySize, Repeat};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use value::assert_carried;
#[doc(hidden)]
pub use value::{Bytes, HasCarrier};
pub use value::{Carrier, Value, values_for};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::cast;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::checkpoint;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use host::column;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use host::combine;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::contents::{Contents, Stats};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::durable::Durable;

/// What the macros name that write methods of dictionaries.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub mod __private {
    pub use gpu_primitives::kernel::View;
    pub use gpu_primitives::monoid::Monoid;
    pub use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, span};
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::file;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::large::LargeValues;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::lookup::Lookup;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::snapshot::Snapshot;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::traits::{Dictionary, DictionaryOptions, Ordered, Updatable, Upsertable, Upsertion};
#[cfg(not(target_arch = "nvptx64"))]
pub use levels::{Neighbour, Ranges};
