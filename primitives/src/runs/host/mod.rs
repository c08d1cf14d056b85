//! Host functions of runs.

#![deny(unsafe_op_in_unsafe_fn)]

mod codec;
mod compact;
mod difference;
mod distinct;
mod hashed;
mod reduce;

#[cfg(feature = "testing")]
pub use codec::run_length_encode_shaped;
pub use codec::{Length, run_length_decode, run_length_encode};
pub use compact::{Which, unique, unique_by_key, unique_last};
pub use difference::{adjacent_difference, adjacent_difference_in_place};
pub use distinct::{distinct, distinct_counts, distinct_inverse};
pub use hashed::distinct_counts_hashed;
pub use reduce::reduce_by_key;
#[cfg(feature = "testing")]
pub use reduce::reduce_by_key_shaped;
