"""GPU primitives and dictionaries for tensors of torch, CuPy, NumPy, and any library with DLPack.

Arrays come in without a copy, and results are arrays of the same library. Arrays of CUDA are worked on where they are, on the current
stream of torch or CuPy; others on the CPU. What all functions have in common:

- **stable**: equal elements keep their order; **deterministic**: the same input gives the same bytes.
- Floats are ordered with -0 before 0, and NaN at the end (one with a sign at the beginning).
- An array with gaps is copied first. `out=` must have none.
- Errors are found before anything is written, and are a :class:`Error`.
"""

from . import _core
from ._core import Array
from ._dictionaries import HashMap, Lsm, Multimap, SortedArray
from ._errors import ArgumentError, DeviceError, DTypeError, Error, FileError, OutOfMemoryError
from ._functions import (
    argsort,
    bincount,
    cumsum,
    histogram,
    intersect1d,
    isin,
    kthvalue,
    masked_select,
    median,
    merge,
    merge_k,
    multisplit,
    nonzero,
    partition,
    quantile,
    reduce_by_key,
    searchsorted,
    segmented_sort,
    segmented_sum,
    select,
    setdiff1d,
    sort,
    sort_by_columns,
    topk,
    union1d,
    unique,
)

__version__ = "0.1.0"

__all__ = [
    "ArgumentError", "Array", "DTypeError", "DeviceError", "Error", "FileError", "HashMap", "Lsm", "Multimap", "OutOfMemoryError",
    "SortedArray", "argsort", "bincount", "cuda_count", "cumsum", "histogram", "intersect1d", "isin", "kthvalue", "masked_select",
    "median", "merge", "merge_k", "multisplit", "nonzero", "partition", "quantile", "reduce_by_key", "searchsorted", "segmented_sort",
    "segmented_sum", "select", "setdiff1d", "sort", "sort_by_columns", "topk", "union1d", "unique",
]


def cuda_count() -> int:
    """Returns the number of GPUs; 0 without a usable driver."""
    return _core.cuda_count()
