//! The tile shapes of the merges. They are part of the kernel types, so they are known when kernels are instantiated.

/// The threads per block that merges two sequences.
pub const THREADS: u32 = 256;

/// The threads per block that merges many runs.
pub const RUNS_THREADS: u32 = 160;

/// Returns the items per thread of a two-way merge: about 15 KiB of keys and as much of values; odd, to avoid bank
/// conflicts.
#[must_use]
pub const fn items<K, V>() -> usize {
    match larger::<K, V>() {
        0..=4 => 15,
        5..=8 => 9,
        _ => 5,
    }
}

/// Returns the items per thread of a merge of many runs: five blocks share a multiprocessor; odd, to avoid bank
/// conflicts.
#[must_use]
pub const fn runs_items<K, V>() -> usize {
    match size_of::<K>() + size_of::<V>() {
        0..=8 => 17,
        9..=12 => 11,
        13..=16 => 9,
        _ => 5,
    }
}

const fn larger<K, V>() -> usize {
    if size_of::<K>() > size_of::<V>() { size_of::<K>() } else { size_of::<V>() }
}
