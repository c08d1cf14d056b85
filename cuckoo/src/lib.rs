//! A cuckoo hash table as a GPU dictionary: the fastest lookups, no order, built in bulk. Composed from
//! [`gpu_primitives`].
//!
//! The structure is not here yet.
