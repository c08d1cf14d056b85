//! Host functions of runs.

#![deny(unsafe_op_in_unsafe_fn)]

mod codec;
mod compact;
mod difference;
mod distinct;
mod reduce;

pub use codec::{Length, run_length_decode, run_length_encode, run_length_encode_shaped};
pub use compact::{Which, unique, unique_by_key, unique_last};
pub use difference::{adjacent_difference, adjacent_difference_in_place};
pub use distinct::{distinct, distinct_counts, distinct_inverse};
pub use reduce::{reduce_by_key, reduce_by_key_shaped};

/// A tile shape for tests that need many tiles of few elements.
#[doc(hidden)]
pub struct Shape<const THREADS: u32, const VEC: usize, const ROWS: usize>;
