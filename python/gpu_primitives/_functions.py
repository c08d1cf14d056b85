"""The functions: `gpu_primitives.sort` and so on. What all have in common is in the documentation of the package."""

from __future__ import annotations

import builtins
import struct
from typing import Any, Sequence

from . import _core
from ._arrays import Library, library
from ._errors import ArgumentError, DTypeError

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _vector(tensor: _core.Tensor, what: str = "the array") -> _core.Tensor:
    if len(tensor.shape) != 1:
        raise ArgumentError(f"{what} has {len(tensor.shape)} dimensions and needs one; pass x.reshape(-1)")
    return tensor


def _matrix(tensor: _core.Tensor, axis: int) -> _core.Tensor:
    dimensions = len(tensor.shape)
    if dimensions not in (1, 2):
        raise ArgumentError(f"the array has {dimensions} dimensions and needs one or two; pass x.reshape(-1, x.shape[-1])")
    if axis not in (-1, dimensions - 1):
        raise ArgumentError(f"the axis {axis} is not the last one; pass a transposed array")
    return tensor


def _also(lib: Library, stream: _core.Stream, x: Any) -> _core.Tensor:
    """Another array of a call, which may be of another library."""
    other = library(x)
    tensor = other.tensor(x)
    if other is not lib and stream.device >= 0 and tensor.device == stream.device:
        other.stream(tensor.device).synchronize()
    return tensor


def _out(
    lib: Library, out: Any, shape: Sequence[int], dtype: str, device: int, also: tuple[str, ...] = ()
) -> tuple[Any, _core.Tensor]:
    """The array for a result, and its elements: `out`, or a new one. `out` may be of another library."""
    if out is None:
        return lib.empty(tuple(shape), dtype, device)
    other = library(out)
    tensor = other.target(out)
    if list(tensor.shape) != list(shape):
        raise ArgumentError(f"out has the shape {tuple(tensor.shape)}; it must be {tuple(shape)}")
    if tensor.dtype != dtype and tensor.dtype not in also:
        raise DTypeError(f"out has the dtype {tensor.dtype}; it must be {' or '.join((dtype, *also))}")
    if other is not lib and device >= 0 and tensor.device == device:
        other.stream(device).synchronize()
    return out, tensor


def _pair(out: Any) -> tuple[Any, Any]:
    if out is None:
        return None, None
    try:
        first, second = out
    except (TypeError, ValueError):
        raise ArgumentError("out must be two arrays, one for each result") from None
    return first, second


def _done(lib: Library, stream: _core.Stream, *arrays: Any) -> None:
    """The work has been put on the stream. The arrays are those that it uses, `out` included.

    An array of another library can only be let go when the work is done: that library does not know the stream.
    """
    if stream.device < 0:
        return
    used = [x for x in arrays if x is not None]
    if lib.waits or any(library(x) is not lib for x in used):
        stream.synchronize()
    else:
        for x in used:
            lib.used(x, stream)


def sort(x: Any, *, axis: int = -1, descending: bool = False, out: Any = None) -> Any:
    """Returns the elements in order. Rows of a matrix are sorted one by one. Equal elements keep their order.

    >>> import numpy as np
    >>> sort(np.array([3, 1, 2]))
    array([1, 2, 3])
    >>> sort(np.array([[3, 1], [1, 2]]), descending=True)
    array([[3, 1],
           [2, 1]])
    """
    lib = library(x)
    tensor = _matrix(lib.tensor(x), axis)
    shape = tensor.shape
    stream = lib.stream(tensor.device)
    result, to = _out(lib, out, shape, tensor.dtype, tensor.device)
    if len(shape) == 1:
        _core.sort_keys(stream, tensor, to, descending)
    else:
        _core.sort_rows(stream, tensor, shape[1], to, descending)
    _done(lib, stream, x, out)
    return lib.finish(result)


def argsort(x: Any, *, descending: bool = False, out: Any = None) -> Any:
    """Returns the positions that sort the elements. Equal elements keep their order, also from the largest on.

    `out` may have the dtype int32, which is faster.

    >>> import numpy as np
    >>> argsort(np.array([30, 10, 20]))
    array([1, 2, 0])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    result, to = _out(lib, out, tensor.shape, "int64", tensor.device, ("int32", "uint32", "uint64"))
    _core.argsort(stream, tensor, to, descending)
    _done(lib, stream, x, out)
    return lib.finish(result)


def segmented_sort(x: Any, offsets: Any, *, descending: bool = False, out: Any = None) -> Any:
    """Sorts segments: segment `i` is `x[offsets[i]:offsets[i + 1]]`. Elements of no segment stay where they are.

    >>> import numpy as np
    >>> segmented_sort(np.array([3, 1, 2, 5, 4]), np.array([0, 3, 5]))
    array([1, 2, 3, 4, 5])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    at = _vector(_also(lib, stream, offsets), "the array of offsets")
    if at.shape[0] == 0:
        raise ArgumentError("offsets are empty; there is one more than segments")
    result, to = _out(lib, out, tensor.shape, tensor.dtype, tensor.device)
    _core.segmented_sort(stream, tensor, at, to, descending)
    _done(lib, stream, x, offsets, out)
    return lib.finish(result)


def topk(x: Any, k: int, axis: int = -1, largest: bool = True, *, out: Any = None) -> tuple[Any, Any]:
    """Returns the `k` largest elements of an array or of each row, the largest first, and their positions.

    Of equal elements, the first ones are taken. `out` is a pair of arrays.

    >>> import numpy as np
    >>> topk(np.array([1, 5, 3]), 2)
    (array([5, 3]), array([1, 2]))
    """
    lib = library(x)
    tensor = _matrix(lib.tensor(x), axis)
    shape, device = tensor.shape, tensor.device
    length = shape[-1]
    if not 0 <= k <= length:
        raise ArgumentError(f"k is {k}; it must be from 0 to {length}, the number of elements")
    stream = lib.stream(device)
    first, second = _pair(out)
    rows = len(shape) == 2
    to = (shape[0], k) if rows else (k,)
    values, to_values = _out(lib, first, to, tensor.dtype, device)
    positions, to_positions = _out(lib, second, to, "int64", device)
    if k > 0 and to[0] > 0:
        if rows:
            _core.topk_rows(stream, tensor, length, k, (to_values, to_positions), largest)
        else:
            _core.topk(stream, tensor, to_values, to_positions, largest)
        _done(lib, stream, x, first, second)
    return lib.finish(values), lib.finish(positions)


def kthvalue(x: Any, k: int, axis: int = -1, *, out: Any = None) -> tuple[Any, Any]:
    """Returns the `k`-th smallest element of an array or of each row, and its position. As in torch, `k` counts from 1.

    >>> import numpy as np
    >>> value, position = kthvalue(np.array([30, 10, 20]), 2)
    >>> int(value), int(position)
    (20, 2)
    """
    lib = library(x)
    tensor = _matrix(lib.tensor(x), axis)
    shape, device = tensor.shape, tensor.device
    if not 1 <= k <= shape[-1]:
        raise ArgumentError(f"k is {k}; it must be from 1 to {shape[-1]}, the number of elements")
    stream = lib.stream(device)
    first, second = _pair(out)
    values, to_values = _out(lib, first, shape[:-1], tensor.dtype, device)
    positions, to_positions = _out(lib, second, shape[:-1], "int64", device)
    if len(shape) == 1:
        _core.select_kth(stream, tensor, [k - 1], to_values, to_positions)
    elif shape[0] > 0:
        _core.select_kth_rows(stream, tensor, shape[1], k - 1, (to_values, to_positions))
    _done(lib, stream, x, first, second)
    return lib.finish(values), lib.finish(positions)


def median(x: Any, axis: int = -1, *, out: Any = None) -> Any:
    """Returns the median of an array or of each row. As in torch, that of an even number is the lower one of the two in the middle.

    >>> import numpy as np
    >>> int(median(np.array([4, 1, 3, 2])))
    2
    """
    lib = library(x)
    shape = _matrix(lib.tensor(x), axis).shape
    if shape[-1] == 0:
        raise ArgumentError("there is no median of no elements")
    lib_out = None if out is None else (out, lib.empty(tuple(shape[:-1]), "int64", lib.tensor(x).device)[0])
    return kthvalue(x, (shape[-1] + 1) // 2, axis, out=lib_out)[0]


def quantile(x: Any, q: float | Sequence[float], axis: int = -1, interpolation: str = "lower", *, out: Any = None) -> Any:
    """Returns the quantiles `q`, from 0 to 1, of an array or of each row. Each is an element: nothing is interpolated.

    For several quantiles of rows, the result has a row for each quantile, as in NumPy.

    >>> import numpy as np
    >>> quantile(np.array([10, 20, 30, 40, 50]), [0.0, 0.5, 1.0])
    array([10, 30, 50])
    """
    if interpolation != "lower":
        raise ArgumentError(f'the interpolation {interpolation!r} is not supported; quantiles are elements: "lower"')
    try:
        fractions, alone = [float(part) for part in q], False  # type: ignore[union-attr]
    except TypeError:
        fractions, alone = [float(q)], True  # type: ignore[arg-type]
    if not all(0 <= part <= 1 for part in fractions):
        raise ArgumentError("quantiles are from 0 to 1")
    lib = library(x)
    tensor = _matrix(lib.tensor(x), axis)
    shape, device = tensor.shape, tensor.device
    if shape[-1] == 0:
        raise ArgumentError("there are no quantiles of no elements")
    stream = lib.stream(device)
    if len(shape) == 1:
        result, to = _out(lib, out, () if alone else (len(fractions),), tensor.dtype, device)
        if fractions:
            _core.quantiles(stream, tensor, fractions, to)
        _done(lib, stream, x, out)
        return lib.finish(result)
    if not alone and out is not None:
        raise ArgumentError("several quantiles of rows cannot go to out")
    result, to = _out(lib, out, shape[:1] if alone else (shape[0], len(fractions)), tensor.dtype, device)
    if fractions and shape[0] > 0:
        _core.quantiles_rows(stream, tensor, shape[1], fractions, to)
    _done(lib, stream, x, out)
    result = lib.finish(result)
    if not alone and not hasattr(result, "T"):
        raise ArgumentError("several quantiles of rows need a library with from_dlpack; ask for one quantile at a time")
    return result if alone else result.T


def unique(x: Any, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Returns the distinct elements in ascending order; then, if asked, the index of each element among them, and their counts.

    >>> import numpy as np
    >>> unique(np.array([3, 1, 3]), return_counts=True)
    (array([1, 3]), array([1, 2]))
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream, device, shape = lib.stream(tensor.device), tensor.device, tuple(tensor.shape)
    values, to = lib.empty(shape, tensor.dtype, device)
    inverse, to_inverse = lib.empty(shape, "int64", device) if return_inverse else (None, None)
    counts, to_counts = lib.empty(shape, "int64", device) if return_counts else (None, None)
    count = _core.unique(stream, tensor, to, to_counts, to_inverse) if shape[0] else 0
    results = [lib.finish(lib.head(values, count))]
    if return_inverse:
        results.append(lib.finish(inverse))
    if return_counts:
        results.append(lib.finish(lib.head(counts, count)))
    return results[0] if len(results) == 1 else tuple(results)


def searchsorted(sorted_sequence: Any, v: Any, side: str = "left", *, out: Any = None) -> Any:
    """Returns where each element of `v` belongs in a sorted array: before equal ones, or after them with `side="right"`.

    `out` may have the dtype int32.

    >>> import numpy as np
    >>> searchsorted(np.array([10, 20, 20, 30]), np.array([20, 5]))
    array([1, 0])
    """
    if side not in ("left", "right"):
        raise ArgumentError(f'side is {side!r}; it must be "left" or "right"')
    lib = library(v)
    keys = lib.tensor(v)
    stream = lib.stream(keys.device)
    haystack = _vector(_also(lib, stream, sorted_sequence), "the sorted array")
    result, to = _out(lib, out, keys.shape, "int64", keys.device, ("int32", "uint32", "uint64"))
    _core.searchsorted(stream, haystack, keys, to, side == "right")
    _done(lib, stream, v, sorted_sequence, out)
    return lib.finish(result)


def merge(a: Any, b: Any, *, out: Any = None) -> Any:
    """Merges two sorted arrays.

    >>> import numpy as np
    >>> merge(np.array([1, 4]), np.array([2, 3]))
    array([1, 2, 3, 4])
    """
    return merge_k([a, b], out=out)


def merge_k(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """Merges up to 32 sorted arrays in one pass.

    >>> import numpy as np
    >>> merge_k([np.array([1, 4]), np.array([2]), np.array([0, 3])])
    array([0, 1, 2, 3, 4])
    """
    if not 1 <= len(arrays) <= 32:
        raise ArgumentError(f"there are {len(arrays)} arrays; merge from 1 to 32 at a time")
    lib = library(arrays[0])
    first = _vector(lib.tensor(arrays[0]))
    stream = lib.stream(first.device)
    parts = [first, *(_vector(_also(lib, stream, other)) for other in arrays[1:])]
    result, to = _out(lib, out, (sum(part.shape[0] for part in parts),), first.dtype, first.device)
    _core.merge_sorted(stream, parts, to)
    _done(lib, stream, *arrays, out)
    return lib.finish(result)


def _wide(dtype: str) -> str:
    """The dtype that sums have: that of NumPy and torch. Short floats are added as float32."""
    if dtype in ("float16", "bfloat16"):
        return "float32"
    if dtype in _FLOATS or dtype.endswith("64"):
        return dtype
    return "uint64" if dtype.startswith("u") else "int64"


def cumsum(x: Any, *, out: Any = None) -> Any:
    """Returns the running sums. Those of integers have 64 bits; those of short floats are computed in float32.

    >>> import numpy as np
    >>> cumsum(np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    dtype = _wide(tensor.dtype)
    short = tensor.dtype if dtype == "float32" and tensor.dtype != dtype else None
    if tensor.dtype != dtype:
        tensor = lib.tensor(lib.cast(x, dtype))
    stream = lib.stream(tensor.device)
    if short is not None and out is not None:
        raise DTypeError("sums of short floats cannot go to out")
    result, to = _out(lib, out, tensor.shape, dtype, tensor.device)
    _core.cumsum(stream, tensor, to)
    _done(lib, stream, x, out)
    return lib.finish(result) if short is None else lib.cast(result, short)


def segmented_sum(x: Any, offsets: Any, *, out: Any = None) -> Any:
    """Returns the sum of each segment: segment `i` is `x[offsets[i]:offsets[i + 1]]`. The dtype is that of :func:`cumsum`.

    Offsets beyond the array count as its end. Negative ones are an error.

    >>> import numpy as np
    >>> segmented_sum(np.array([1, 2, 3, 4]), np.array([0, 3, 3, 4]))
    array([6, 0, 4])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    dtype = _wide(tensor.dtype)
    short = tensor.dtype if dtype == "float32" and tensor.dtype != dtype else None
    if tensor.dtype != dtype:
        tensor = lib.tensor(lib.cast(x, dtype))
    stream = lib.stream(tensor.device)
    at = _vector(_also(lib, stream, offsets), "the array of offsets")
    if at.shape[0] == 0:
        raise ArgumentError("offsets are empty; there is one more than segments")
    if short is not None and out is not None:
        raise DTypeError("sums of short floats cannot go to out")
    result, to = _out(lib, out, (at.shape[0] - 1,), dtype, tensor.device)
    if at.shape[0] > 1:
        _core.segmented_sum(stream, tensor, at, to)
    _done(lib, stream, x, offsets, out)
    return lib.finish(result) if short is None else lib.cast(result, short)


def reduce_by_key(keys: Any, values: Any, op: str = "sum") -> tuple[Any, Any]:
    """Combines the values of neighbours with equal keys by "sum", "max" or "min". Returns the keys and the combined values.

    Keys and values have 4 or 8 bytes. The values keep their dtype.

    >>> import numpy as np
    >>> reduce_by_key(np.array([7, 7, 2]), np.array([1, 2, 5]))
    (array([7, 2]), array([3, 5]))
    """
    lib = library(keys)
    tensor = _vector(lib.tensor(keys))
    stream = lib.stream(tensor.device)
    others = _vector(_also(lib, stream, values), "the array of values")
    to_keys, keys_out = lib.empty(tuple(tensor.shape), tensor.dtype, tensor.device)
    to_values, values_out = lib.empty(tuple(others.shape), others.dtype, tensor.device)
    count = _core.reduce_by_key(stream, (tensor, others), (keys_out, values_out), op)
    return lib.finish(lib.head(to_keys, count)), lib.finish(lib.head(to_values, count))


def histogram(x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Counts elements in bins of equal width, from the smallest to the largest element or in `range`. Returns counts and edges.

    The last bin includes its upper edge. The edges are those of NumPy; for float32 and shorter floats, rounded to
    float32. -0 is 0.

    >>> import numpy as np
    >>> histogram(np.array([0.0, 0.4, 2.0]), bins=2)
    (array([2, 1]), array([0., 1., 2.]))
    """
    if bins < 1:
        raise ArgumentError(f"there are {bins} bins; there must be one at least")
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    dtype = "float32" if tensor.dtype in ("float16", "bfloat16", "float32") else "float64"
    if tensor.dtype != dtype:
        x = lib.cast(x, dtype)
        tensor = lib.tensor(x)
    stream = lib.stream(tensor.device)
    if range is not None:
        low, high = float(range[0]), float(range[1])
    elif tensor.shape[0] == 0:
        low, high = 0.0, 1.0
    else:
        low, high = _core.min_max(stream, tensor)
    if not (low <= high and high - low < float("inf")):
        raise ArgumentError(f"the range from {low} to {high} is none; pass finite numbers, the smaller one first")
    if low == high:
        low, high = low - 0.5, high + 0.5
    levels = _edges(low, high, bins, dtype)
    edges = lib.floats(levels, dtype, tensor.device)
    counts, to = lib.empty((bins,), "int64", tensor.device)
    # -0 comes before 0, and belongs into the same bin.
    levels = [level if level else -0.0 for level in levels[:-1]] + [_after(levels[-1], dtype)]
    _core.histogram_levels(stream, tensor, to, levels)
    _done(lib, stream, x)
    return lib.finish(counts), edges


def _edges(low: float, high: float, bins: int, dtype: str) -> list[float]:
    """The edges of bins of equal width, computed as NumPy does it, so that both put every element into the same bin."""
    step = (high - low) / bins
    inner = (i * step if step else i / bins * (high - low) for i in builtins.range(bins))
    edges = [*(part + low for part in inner), high]
    if dtype == "float32":
        try:
            edges = list(struct.unpack(f"<{bins + 1}f", struct.pack(f"<{bins + 1}f", *edges)))
        except OverflowError:
            raise ArgumentError(f"the range from {low} to {high} does not fit in float32; convert the array to float64") from None
    if any(edge >= following for edge, following in zip(edges, edges[1:])):
        raise ArgumentError(f"there are too many bins for the range from {low} to {high}: no {dtype} is between some edges")
    return edges


def _after(x: float, dtype: str) -> float:
    """The next float: the last bin includes the end of the range."""
    short = dtype == "float32"
    bits = struct.unpack("<i" if short else "<q", struct.pack("<f" if short else "<d", x))[0]
    if x == 0:
        bits = 1
    else:
        bits += 1 if x > 0 else -1
    return float(struct.unpack("<f" if short else "<d", struct.pack("<i" if short else "<q", bits))[0])


def bincount(x: Any, minlength: int = 0) -> Any:
    """Counts each of the integers 0, 1, 2 and so on.

    >>> import numpy as np
    >>> bincount(np.array([1, 3, 1]))
    array([0, 2, 0, 1])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    if tensor.dtype in _FLOATS:
        raise DTypeError(f"bincount counts integers; the array has the dtype {tensor.dtype}")
    if minlength < 0:
        raise ArgumentError("minlength is negative")
    stream = lib.stream(tensor.device)
    low, high = _core.min_max(stream, tensor) if tensor.shape[0] else (0, -1)
    if low < 0:
        raise ArgumentError(f"bincount counts integers from 0 on; one is {low}")
    length = max(int(high) + 1, minlength)
    if length >= 1 << 32:
        raise ArgumentError(f"the largest integer is {high}; there can be 2^32 - 2 bins. Count with unique(x, return_counts=True)")
    counts, to = lib.empty((length,), "int64", tensor.device)
    if length:
        _core.bincount(stream, tensor, to)
    _done(lib, stream, x)
    return lib.finish(counts)


def select(x: Any, mask: Any) -> Any:
    """Returns the elements whose flag is true, in order: `x[mask]`.

    >>> import numpy as np
    >>> select(np.array([1, 2, 3]), np.array([True, False, True]))
    array([1, 3])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    flags = _mask(lib, stream, mask, tensor)
    result, to = lib.empty(tuple(tensor.shape), tensor.dtype, tensor.device)
    return lib.finish(lib.head(result, _core.select_flagged(stream, tensor, flags, to)))


masked_select = select


def _mask(lib: Library, stream: _core.Stream, mask: Any, of: _core.Tensor) -> _core.Tensor:
    flags = _vector(_also(lib, stream, mask), "the mask")
    if flags.dtype != "bool":
        raise DTypeError(f"the mask has the dtype {flags.dtype}; it must be bool")
    if flags.shape != of.shape:
        raise ArgumentError(f"the mask has {flags.shape[0]} elements, and the array {of.shape[0]}; they must be as many")
    return flags


def nonzero(x: Any) -> Any:
    """Returns the positions of the elements that are not 0, in one array.

    >>> import numpy as np
    >>> nonzero(np.array([0, 5, 0, 7]))
    array([1, 3])
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    result, to = lib.empty(tuple(tensor.shape), "int64", tensor.device)
    return lib.finish(lib.head(result, _core.nonzero(stream, tensor, to)))


def partition(x: Any, mask: Any, *, out: Any = None) -> tuple[Any, int]:
    """Returns the elements whose flag is true and then the others, both in their order, and how many are true.

    >>> import numpy as np
    >>> partition(np.array([1, 2, 3]), np.array([False, True, False]))
    (array([2, 1, 3]), 1)
    """
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    flags = _mask(lib, stream, mask, tensor)
    result, to = _out(lib, out, tensor.shape, tensor.dtype, tensor.device)
    count = _core.partition(stream, tensor, flags, to)
    return lib.finish(result), count


def multisplit(x: Any, buckets: Any, num_buckets: int, *, out: Any = None) -> tuple[Any, Any]:
    """Groups elements by their bucket, a number below `num_buckets` (at most 256), in their order within each.

    Returns the elements, and where each bucket begins: one offset more than buckets. Larger numbers of buckets count as the last.

    >>> import numpy as np
    >>> multisplit(np.array([10, 11, 12]), np.array([1, 0, 1]), 2)
    (array([11, 10, 12]), array([0, 1, 3]))
    """
    if not 1 <= num_buckets <= 256:
        raise ArgumentError(f"there are {num_buckets} buckets; there can be from 1 to 256")
    lib = library(x)
    tensor = _vector(lib.tensor(x))
    stream = lib.stream(tensor.device)
    ids = _vector(_also(lib, stream, buckets), "the array of buckets")
    if ids.shape != tensor.shape:
        raise ArgumentError(f"there are {ids.shape[0]} numbers of buckets for {tensor.shape[0]} elements")
    result, to = _out(lib, out, tensor.shape, tensor.dtype, tensor.device)
    offsets, to_offsets = lib.empty((num_buckets + 1,), "int64", tensor.device)
    _core.multisplit_by(stream, tensor, ids, num_buckets, (to, to_offsets))
    _done(lib, stream, x, buckets, out)
    return lib.finish(result), lib.finish(offsets)


def _distinct(lib: Library, stream: _core.Stream, x: Any, assume_unique: bool) -> tuple[Any, _core.Tensor]:
    """The distinct elements in order, as an array that lives long enough."""
    tensor = _vector(_also(lib, stream, x))
    array, to = lib.empty(tuple(tensor.shape), tensor.dtype, tensor.device)
    if assume_unique:
        _core.sort_keys(stream, tensor, to, False)
        return array, to
    count = _core.unique(stream, tensor, to, None, None) if tensor.shape[0] else 0
    array = lib.head(array, count)
    return array, _tensor_of(lib, array)


def _tensor_of(lib: Library, array: Any) -> _core.Tensor:
    if isinstance(array, _core.Array):
        kind, device = array.__dlpack_device__()
        return _core.Tensor.at(array, array.address, array.shape, array.dtype, -1 if kind == 1 else device)
    return lib.tensor(array)


def _set_operation(a: Any, b: Any, op: str, assume_unique: bool) -> Any:
    lib = library(a)
    device = lib.tensor(a).device
    stream = lib.stream(device)
    left, first = _distinct(lib, stream, a, assume_unique)
    right, second = _distinct(lib, stream, b, assume_unique)
    lengths = first.shape[0], second.shape[0]
    room = {"union": sum(lengths), "intersection": min(lengths), "difference": lengths[0]}[op]
    result, to = lib.empty((room,), first.dtype, device)
    count = _core.set_operation(stream, first, second, to, op)
    del left, right
    return lib.finish(lib.head(result, count))


def intersect1d(a: Any, b: Any, assume_unique: bool = False) -> Any:
    """Returns the elements that are in both arrays, once each, in order.

    >>> import numpy as np
    >>> intersect1d(np.array([3, 1, 2]), np.array([2, 3, 3]))
    array([2, 3])
    """
    return _set_operation(a, b, "intersection", assume_unique)


def union1d(a: Any, b: Any) -> Any:
    """Returns the elements that are in one of the arrays, once each, in order.

    >>> import numpy as np
    >>> union1d(np.array([3, 1]), np.array([2, 3]))
    array([1, 2, 3])
    """
    return _set_operation(a, b, "union", False)


def setdiff1d(a: Any, b: Any, assume_unique: bool = False) -> Any:
    """Returns the elements of the first array that are not in the second one, once each, in order.

    >>> import numpy as np
    >>> setdiff1d(np.array([3, 1, 2]), np.array([2]))
    array([1, 3])
    """
    return _set_operation(a, b, "difference", assume_unique)


def isin(elements: Any, test_elements: Any, *, invert: bool = False, out: Any = None) -> Any:
    """Returns for each element whether it is one of `test_elements`.

    >>> import numpy as np
    >>> isin(np.array([1, 2, 3]), np.array([3, 1]))
    array([ True, False,  True])
    """
    lib = library(elements)
    tensor = lib.tensor(elements)
    stream = lib.stream(tensor.device)
    test = _vector(_also(lib, stream, test_elements), "the array of test elements")
    kept, to = lib.empty(tuple(test.shape), test.dtype, tensor.device)
    _core.sort_keys(stream, test, to, False)
    result, flags = _out(lib, out, tensor.shape, "bool", tensor.device)
    _core.is_in_sorted(stream, to, tensor, flags, invert)
    _done(lib, stream, elements, test_elements, out)
    del kept
    return lib.finish(result)


def sort_by_columns(columns: Sequence[Any], descending: bool | Sequence[bool] = False, *, out: Any = None) -> Any:
    """Returns the positions that sort rows by their first column, those with equal elements by the second one, and so on.

    `descending` is for all columns, or one for each. This is `numpy.lexsort` with the first column first.

    >>> import numpy as np
    >>> sort_by_columns([np.array([1, 0, 1]), np.array([5.0, 6.0, 4.0])])
    array([1, 2, 0])
    """
    if len(columns) == 0:
        raise ArgumentError("there are no columns")
    orders = [descending] * len(columns) if isinstance(descending, bool) else list(descending)
    if len(orders) != len(columns):
        raise ArgumentError(f"there are {len(orders)} orders for {len(columns)} columns")
    lib = library(columns[0])
    first = _vector(lib.tensor(columns[0]))
    stream = lib.stream(first.device)
    tensors = [first, *(_vector(_also(lib, stream, column)) for column in columns[1:])]
    result, to = _out(lib, out, first.shape, "int64", first.device, ("int32", "uint32", "uint64"))
    _core.sort_by_columns(stream, tensors, orders, to)
    _done(lib, stream, *columns, out)
    return lib.finish(result)
