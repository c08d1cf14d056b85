//! The code blocks of the book, compiled and run as documentation tests. The blocks of the README and of the guide are
//! those of `gpu-primitives`. A test of `xtask` checks that every page with code is named here.

/// Names the pages whose code blocks are compiled.
macro_rules! pages {
    ($($name:ident $page:literal)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!($page)]
        mod $name {}
    )*};
}

pages! {
    choosing "choosing.md"
    cuckoo "cuckoo.md"
    filter "filter.md"
    histogram "histogram.md"
    kernels "kernels.md"
    keys "keys.md"
    larger_than_the_gpu "larger-than-the-gpu.md"
    lsm "lsm.md"
    merge "merge.md"
    merge_sort "merge-sort.md"
    multisplit "multisplit.md"
    operators "operators.md"
    performance "performance.md"
    order_statistics "order-statistics.md"
    permute "permute.md"
    primitives "primitives.md"
    row_sort "row-sort.md"
    quick_start "quick-start.md"
    reduce "reduce.md"
    runs "runs.md"
    scan "scan.md"
    search "search.md"
    segmented "segmented.md"
    segmented_sort "segmented-sort.md"
    bits "bits.md"
    select "select.md"
    sets "sets.md"
    sharded "sharded.md"
    sharded_primitives "sharded-primitives.md"
    tables "tables.md"
    sort "sort.md"
    sorted_array "sorted-array.md"
    sources "sources.md"
    threads "threads.md"
    top_k "top-k.md"
    transform "transform.md"
    troubleshooting "troubleshooting.md"
    writing_a_kernel "writing-a-kernel.md"
}
