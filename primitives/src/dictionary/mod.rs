//! The parts that all dictionaries share: traits, keys, results, files, and the sorted levels that the ordered
//! dictionaries are built from.
//!
//! Each dictionary is a crate of its own: gpu-lsm, gpu-sorted-array, gpu-cuckoo.

mod key;
pub mod levels;

#[cfg(not(target_arch = "nvptx64"))]
mod contents;
#[cfg(not(target_arch = "nvptx64"))]
pub mod file;
#[cfg(not(target_arch = "nvptx64"))]
mod lookup;
#[cfg(not(target_arch = "nvptx64"))]
mod traits;

pub use key::{Key, KeyCode};

#[cfg(not(target_arch = "nvptx64"))]
pub use contents::{Contents, Stats};
#[cfg(not(target_arch = "nvptx64"))]
pub use lookup::Lookup;
#[cfg(not(target_arch = "nvptx64"))]
pub use traits::{Dictionary, Ordered, Updatable};
