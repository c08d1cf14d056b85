//! The shapes of the searches. They are part of the kernel types, so they are known when kernels are instantiated.

/// Returns the keys per access of a search in an index, for accesses of 16 bytes.
#[must_use]
pub const fn vector<K>() -> usize {
    match size_of::<K>() {
        0..=2 => 8,
        3..=4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Returns the items per thread of the search for sorted needles.
#[must_use]
pub const fn sorted_items<K>() -> usize {
    match size_of::<K>() {
        0..=4 => 15,
        5..=8 => 9,
        _ => 5,
    }
}
