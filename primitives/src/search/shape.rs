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

/// Instantiates the kernels that search on a GPU: see [`crate::instances`].
///
/// - `index` lists the keys that get an index. Omit keys that already have one, such as `u32`.
/// - `unsorted` instantiates the searches for needles in any order.
/// - `sorted` instantiates the searches for sorted needles. They also need
///   [`merge_instances`](crate::merge_instances) with the same keys and orders.
///
/// Each line stands for all combinations of its types. There may be any number of each kind, in this order.
///
/// ```ignore
/// gpu_primitives::search_instances! {
///     in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     index: keys [Version];
///     unsorted: keys [Version], orders [Newest], positions [u32, u64];
///     sorted: keys [Version], orders [Newest], positions [u32];
/// }
/// ```
#[macro_export]
macro_rules! search_instances {
    (
        in $dir:expr;
        $(index: keys [$($index:ty),+];)*
        $(unsorted: keys [$($key:ty),+], orders [$($order:ty),+], positions [$($position:ty),+];)*
        $(sorted: keys [$($sorted:ty),+], orders [$($sorted_order:ty),+], positions [$($sorted_position:ty),+];)*
    ) => {
        $crate::instances! {
            in $dir;
            $(for K in [$($index),+]: $crate::search::BuildIndex<K>;)*
            $(
                for K in [$($key),+], C in [$($order),+], I in [$($position),+]:
                    $crate::search::SearchDirectly<K, C, I>;
                for K in [$($key),+], C in [$($order),+], I in [$($position),+]:
                    $crate::search::SearchIndexed<K, C, I, { $crate::search::vector::<K>() }>;
            )*
            $(
                for K in [$($sorted),+], C in [$($sorted_order),+], I in [$($sorted_position),+]:
                    $crate::search::SearchSorted<K, C, I, { $crate::search::sorted_items::<K>() }>;
            )*
        }
    };
}
