//! A dynamic dictionary on the GPU: the log-structured merge tree of *GPU LSM: A Dynamic Dictionary Data Structure for
//! the GPU* (Ashkiani et al.), composed from [`gpu_primitives`].
//!
//! Batches of insertions and deletions, lookups, counts and ranges. The structure is not here yet.
