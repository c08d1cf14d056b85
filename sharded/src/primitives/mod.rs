//! Primitives on many GPUs: of elements that are spread over the ranks of a [`World`](crate::World) and their shards.
//!
//! | module | calls | what is exchanged |
//! | --- | --- | --- |
//! | [`sort`] | `keys`, `pairs` | every pair once |
//! | [`reduce`] | `reduce`, `sum` | one element per shard |
//! | [`scan`] | `inclusive`, `exclusive` | one element per shard |
//! | [`runs`] | `unique`, `reduce_by_key` | the ends of each shard |
//! | [`top_k`] | `largest`, `smallest` | `k` keys per shard |
//! | [`histogram`] | `even`, `by` | the bins, once per rank |
//! | [`join`] | `inner` | every pair of both sides once |
//!
//! All ranks make the same calls in the same order, each with its own elements: a [`Spread`], or memory on the device of the stream
//! ([`Parts`]). Elements are in the order of the ranks, and on a rank in the order of its shards. Results are a `Spread` again, or the same on
//! all ranks.
//!
//! # Failures
//! No call changes memory of the caller. If a rank fails, or the ranks do not make the same call, all get an error. If a rank dies or
//! does not answer in time, all others get [`DictionaryLost`](gpu_primitives::Error), now or from their next call on.
//!
//! Operators, and their state, must be the same on all ranks. The ranks compare types, not states.

mod call;
pub mod histogram;
pub mod join;
pub mod reduce;
mod routes;
pub mod runs;
pub mod scan;
pub mod sort;
mod splitters;
mod spread;
pub mod top_k;

pub use spread::{Parts, Spread};
