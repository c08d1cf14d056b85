//! The queries.

use crate::{GpuSortedArray, SortedArrayView};

gpu_dictionary::queries_of_levels! {
    gpu_sorted_array::GpuSortedArray, "sorted_array";

    lookup;

    /// Does not wait.
    count;

    /// There must be room for the pairs in the intervals.
    range_into;

    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    view -> SortedArrayView;
}
