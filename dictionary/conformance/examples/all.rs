//! All crates in one, for the programs of the test `messages`: whoever names this crate `gpu_primitives` has the others, too.

pub use bytemuck;
pub use gpu_cuckoo;
pub use gpu_dictionary;
pub use gpu_lsm;
pub use gpu_primitives::*;
pub use gpu_sorted_array;
