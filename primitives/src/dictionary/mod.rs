//! What the dictionaries share: keys, results, and the sorted levels that the ordered ones are made of.
//!
//! The dictionaries themselves are crates of their own: gpu-lsm, gpu-sorted-array, gpu-cuckoo.

mod key;
pub mod levels;

#[cfg(not(target_arch = "nvptx64"))]
mod lookup;

pub use key::{Key, KeyCode};
#[cfg(not(target_arch = "nvptx64"))]
pub use lookup::Lookup;
