//! The native part of the Python package `gpu-primitives`: `gpu_primitives._core`. The public functions and classes are in
//! `gpu_primitives/*.py`; they find out whose arrays they get, and make those for results.

mod column;
mod dictionary;
mod dlpack;
mod dtype;
mod error;
mod functions;
mod stream;
mod tensor;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
#[pyo3(name = "_core")]
mod core_module {
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::dictionary::PyDictionary;
    #[pymodule_export]
    use crate::functions::{
        argsort, bincount, copy_head, cumsum, histogram_levels, is_in_sorted, merge_sorted, min_max, multisplit_by,
        nonzero, partition, quantiles, quantiles_rows, reduce_by_key, searchsorted, segmented_sort, segmented_sum,
        select_flagged, select_kth, select_kth_rows, set_operation, sort_by_columns, sort_keys, sort_rows, topk,
        topk_rows, unique,
    };
    #[pymodule_export]
    use crate::stream::{PyStream, cuda_count};
    #[pymodule_export]
    use crate::tensor::{Array, Tensor, key};
}
