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

/// Instantiates the kernels that search a key type on a GPU: see [`crate::instances`].
///
/// The key is followed by one line for each order and position type. The last name of a line may be omitted; then the
/// searches for sorted needles are not available. Those searches also need [`merge_instances`](crate::merge_instances)
/// with the same key and order. The index name may be omitted for a key that already has an index, such as `u32`.
///
/// ```ignore
/// gpu_primitives::search_instances! {
///     in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     Version, version_index;
///     Newest, u32: version_few, version_many, version_sorted;
///     Newest, u64: version_few_wide, version_many_wide;
/// }
/// ```
#[macro_export]
macro_rules! search_instances {
    (
        in $dir:expr; $key:ty $(, $index:ident)?;
        $($compare:ty, $position:ty: $directly:ident, $indexed:ident $(, $sorted:ident)?;)*
    ) => {
        $crate::instances! {
            in $dir;
            $($index: $crate::search::BuildIndex<$key>;)?
            $(
                $directly: $crate::search::SearchDirectly<$key, $compare, $position>;
                $indexed: $crate::search::SearchIndexed<
                    $key, $compare, $position, { $crate::search::vector::<$key>() }
                >;
                $($sorted: $crate::search::SearchSorted<
                    $key, $compare, $position, { $crate::search::sorted_items::<$key>() }
                >;)?
            )*
        }
    };
}
