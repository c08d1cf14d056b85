//! Which shapes the searches use: part of the kernels' types, so known when instances are named.

/// Keys per access of the search in an index: accesses of 16 bytes.
#[must_use]
pub const fn vector<K>() -> usize {
    match size_of::<K>() {
        0..=2 => 8,
        3..=4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Items per thread of the search for sorted needles.
#[must_use]
pub const fn sorted_items<K>() -> usize {
    match size_of::<K>() {
        0..=4 => 15,
        5..=8 => 9,
        _ => 5,
    }
}

/// Names the kernels that search for a type of keys on a GPU: see [`crate::instances`]. After the key a line for each order
/// and type of positions; its last name may be left out, and then needles that are known to be sorted are not searched for.
/// For those [`merge_instances`](crate::merge_instances) must name the same key and order, too. The index may be left out
/// for a key whose index is there already, such as `u32`.
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
