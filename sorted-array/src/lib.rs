//! A sorted array as a GPU dictionary: the fastest ordered queries, and updates that rewrite the array. Composed from
//! [`gpu_primitives`].
//!
//! The structure is not here yet.
