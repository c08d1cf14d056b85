//! The tile shapes of the merges. They are part of the kernel types, so they are known when kernels are instantiated.

use super::{MergeTiles, RunsTiles};

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

/// The merge of two sequences.
pub type ShapedTiles<K, V, C, const ITEMS: usize> = MergeTiles<K, V, C, THREADS, ITEMS>;
/// The merge of many runs.
pub type ShapedRuns<K, V, C, const ITEMS: usize> = RunsTiles<K, V, C, RUNS_THREADS, ITEMS>;

/// Instantiates the kernels that merge two sequences of a key type by an order on a GPU, without values (value `()`) or
/// with values: see [`crate::instances`].
///
/// ```ignore
/// gpu_primitives::merge_instances! {
///     in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     Version, Newest, version_partition;
///     (): version_merge;
///     u32: version_merge_32;
/// }
/// ```
#[macro_export]
macro_rules! merge_instances {
    (in $dir:expr; $key:ty, $compare:ty, $partition:ident; $($value:ty: $tiles:ident;)*) => {
        $crate::instances! {
            in $dir;
            $partition: $crate::merge::MergePartition<$key, $compare>;
            $($tiles: $crate::merge::ShapedTiles<
                $key, $value, $compare, { $crate::merge::items::<$key, $value>() }
            >;)*
        }
    };
}

/// Instantiates the kernels that merge up to 32 runs at once. Merging exactly two runs also needs
/// [`merge_instances`](crate::merge_instances), which has the same form.
#[macro_export]
macro_rules! merge_runs_instances {
    (in $dir:expr; $key:ty, $compare:ty, $partition:ident; $($value:ty: $tiles:ident;)*) => {
        $crate::instances! {
            in $dir;
            $partition: $crate::merge::RunsPartition<$key, $compare>;
            $($tiles: $crate::merge::ShapedRuns<
                $key, $value, $compare, { $crate::merge::runs_items::<$key, $value>() }
            >;)*
        }
    };
}
