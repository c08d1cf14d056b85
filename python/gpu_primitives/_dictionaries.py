"""The dictionaries: `gpu_primitives.Lsm` and so on."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Iterator, Union

from . import _core
from ._arrays import Library, NumPy, Torch, library, the
from ._errors import ArgumentError, DTypeError
from ._functions import _also, _done, _vector

PathLike = Union[str, "os.PathLike[str]"]


def _dtype(dtype: Any) -> str:
    """The name of a dtype: a string, or a dtype of NumPy or torch."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).removeprefix("torch.")


def _device(device: Any) -> int:
    name = str(device)
    if name == "cpu":
        return -1
    found = re.fullmatch(r"cuda(?::(\d+))?", name)
    if found is None:
        raise ArgumentError(f'the device {name!r} is unknown; pass "cpu", "cuda" or "cuda:1"')
    return int(found.group(1) or 0)


def _default_device() -> int:
    asked = os.environ.get("GPU_PRIMITIVES_DEVICE", "")
    if asked:
        return -1 if asked.startswith("cpu") else _device(asked)
    return 0 if _core.cuda_count() else -1


class _Dictionary:
    """What all dictionaries have. Calls may come from several threads: queries run at the same time, updates alone.

    A dictionary keeps the streams that it was used on. An external stream (`torch.cuda.ExternalStream`) must not be destroyed as
    long as the dictionary lives.
    """

    _kind = ""
    __slots__ = ("_core", "_lib")

    def __init__(
        self,
        key_dtype: Any = "int64",
        value_dtype: Any = None,
        *,
        row: int = 0,
        device: Any = None,
        batch_size: int | None = None,
    ) -> None:
        index = _default_device() if device is None else _device(device)
        value = None if value_dtype is None else _dtype(value_dtype)
        if row < 0 or (row > 0 and value is None):
            raise ArgumentError("row is the number of numbers in each value, and needs a value_dtype")
        if batch_size is not None and batch_size < 1:
            raise ArgumentError(f"batch_size is {batch_size}; it must be 1 at least")
        self._core = _core.Dictionary(self._kind, _dtype(key_dtype), value, row, index, batch_size)
        self._lib: Library | None = None

    @classmethod
    def _of(cls, core: _core.Dictionary, lib: Library | None = None) -> Any:
        kind = core.types[0]
        if kind != cls._kind:
            raise ArgumentError(f"this is a dictionary of the class {kind}, not {cls._kind}; call {kind}")
        made = cls.__new__(cls)
        made._core, made._lib = core, lib
        return made

    # Facts

    @property
    def key_dtype(self) -> str:
        """The name of the dtype of the keys."""
        return self._core.types[1]

    @property
    def value_dtype(self) -> str | None:
        """The name of the dtype of the values; None for a set."""
        return self._core.types[2]

    @property
    def row(self) -> int:
        """How many numbers a value has, if values are rows; 0 if they are numbers."""
        return self._core.types[3]

    @property
    def device(self) -> str:
        """Where the dictionary is: "cpu" or "cuda:0"."""
        return "cpu" if self._core.device < 0 else f"cuda:{self._core.device}"

    @property
    def nbytes(self) -> int:
        """The device memory in bytes."""
        return self._core.bytes()

    def __len__(self) -> int:
        return self._core.len()

    def __repr__(self) -> str:
        _, key, value, row = self._core.types
        values = "" if value is None else f", {value}" + (f", row={row}" if row else "")
        return f"<{self._kind}({key}{values}) of {len(self)} keys on {self.device}>"

    def __bool__(self) -> bool:
        return len(self) > 0

    # Arrays

    def _keys(self, x: Any) -> tuple[Library, _core.Tensor, _core.Stream]:
        lib = library(x)
        tensor = _vector(lib.tensor(x), "the array of keys")
        self._lib = lib
        return lib, tensor, lib.stream(tensor.device)

    def _values(self, lib: Library, stream: _core.Stream, x: Any, keys: _core.Tensor) -> _core.Tensor:
        tensor = _also(lib, stream, x)
        row, shape = self.row, list(tensor.shape)
        expected = [keys.shape[0], row] if row else [keys.shape[0]]
        if shape != expected:
            raise ArgumentError(f"the array of values has the shape {tuple(shape)}; it must be {tuple(expected)}")
        return tensor

    def _results(self, lib: Library, stream: _core.Stream, columns: list[Any], values: int | None) -> list[Any]:
        """The columns as arrays; the one of the values may have rows."""
        results = []
        for i, column in enumerate(columns):
            shape: tuple[int, ...] = (len(column),)
            if i == values and self.row:
                shape = (len(column) // self.row, self.row)
            array, to = lib.empty(shape, column.dtype, stream.device)
            column.copy_to(stream, to)
            results.append(lib.finish(array))
        return results

    # Changes

    def insert(self, keys: Any, values: Any = None) -> None:
        """Inserts pairs; in a set, keys. Replaces the values of keys that are present. The last of equal keys counts."""
        lib, tensor, stream = self._keys(keys)
        if values is None:
            self._core.insert(stream, tensor, None)
        else:
            self._core.insert(stream, tensor, self._values(lib, stream, values, tensor))
        _done(lib, stream, keys, *([] if values is None else [values]))

    def delete(self, keys: Any) -> None:
        """Deletes keys. Ignores absent ones."""
        lib, tensor, stream = self._keys(keys)
        self._core.delete(stream, tensor)
        _done(lib, stream, keys)

    def clear(self) -> None:
        """Removes everything."""
        self._core.clear()

    # Questions

    def contains(self, keys: Any) -> Any:
        """Returns for each key whether it is present."""
        lib, tensor, stream = self._keys(keys)
        (found,) = self._results(lib, stream, self._core.contains(stream, tensor), None)
        _done(lib, stream, keys)
        return found

    def _one(self, key: Any) -> tuple[_core.Tensor, _core.Stream]:
        """An array of one key, on the dictionary's device."""
        import struct

        dtype = self.key_dtype
        code = {"int32": "<i", "uint32": "<I", "int64": "<q", "uint64": "<Q", "float32": "<f", "float64": "<d"}[dtype]
        if hasattr(key, "item"):
            key = key.item()
        if not isinstance(key, (int, float)):
            raise DTypeError(f"a key is a number, not {type(key).__name__}; for arrays there is contains()")
        if not dtype.startswith("float"):
            if isinstance(key, float) and not key.is_integer():
                raise KeyError(key)
            key = int(key)
        try:
            data = struct.pack(code, key)
        except (struct.error, OverflowError):
            raise KeyError(key) from None
        if isinstance(key, int) and struct.unpack(code, data)[0] != key:
            raise KeyError(key)  # no float of this dtype is this integer
        stream = self._core.stream
        return _core.key(stream, data, dtype), stream

    def __contains__(self, key: Any) -> bool:
        try:
            tensor, stream = self._one(key)
        except KeyError:
            return False
        (found,) = self._core.contains(stream, tensor)
        return bool(found.to_list(stream)[0])

    def items(self, like: Any = None) -> Any:
        """Returns all keys in order and their values, as two arrays of the library of `like`, or of the one used last.

        Of a set, only the keys.
        """
        lib = library(like) if like is not None else self._lib or self._some_library()
        stream = lib.stream(self._core.device)
        results = self._results(lib, stream, self._core.export(stream), 1)
        return results[0] if len(results) == 1 else tuple(results)

    def _some_library(self) -> Library:
        if self._core.device < 0 and "numpy" in sys.modules:
            return the(NumPy)
        if "torch" in sys.modules:
            return the(Torch)
        raise ArgumentError("which library shall the arrays be of? Pass one of its arrays as `like`")

    def __iter__(self) -> Iterator[Any]:
        """The keys in order, as Python numbers. Copies all keys to the host first; for many, use :meth:`items`."""
        stream = self._core.stream
        return iter(self._core.export(stream)[0].to_list(stream))

    # Files

    def save(self, path: PathLike) -> None:
        """Writes the dictionary to a file. A file that exists is replaced when all is on the disk."""
        self._core.save(os.fspath(path))

    @classmethod
    def load(cls, path: PathLike, *, device: Any = None) -> Any:
        """Reads a file of :meth:`save`, on any device."""
        return cls._of(_core.Dictionary.load(os.fspath(path), _default_device() if device is None else _device(device)))

    def checkpoint(self, folder: PathLike) -> None:
        """Writes to a folder what has changed since the last checkpoint there. A crash leaves the last one.

        A dictionary with rows is written as a whole.
        """
        self._core.checkpoint(os.fspath(folder))

    @classmethod
    def recover(cls, folder: PathLike, *, device: Any = None) -> Any:
        """Reads the last checkpoint of a folder, on any device."""
        return cls._of(_core.Dictionary.recover(os.fspath(folder), _default_device() if device is None else _device(device)))

    def __reduce__(self) -> Any:
        raise DTypeError(f"a {self._kind} cannot be pickled: its data is on a device. Use save() and {self._kind}.load()")

    def __copy__(self) -> Any:
        return self.snapshot()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.snapshot()

    def snapshot(self) -> Any:
        """Returns the dictionary as it is now. It can be changed independently."""
        return self._of(self._core.snapshot(), self._lib)


class _Lookups(_Dictionary):
    """Dictionaries with one value per key."""

    __slots__ = ()

    def upsert(self, keys: Any, values: Any, op: str = "sum") -> None:
        """Combines values with those that are present by "sum", "max" or "min". Absent keys get the new value.

        Equal keys of a call are combined in order.
        """
        lib, tensor, stream = self._keys(keys)
        self._core.upsert(stream, tensor, self._values(lib, stream, values, tensor), op)
        _done(lib, stream, keys, values)

    def lookup(self, keys: Any) -> tuple[Any, Any]:
        """Returns the values of keys, 0 for absent ones, and for each key whether it is present. In a set, the values are None."""
        lib, tensor, stream = self._keys(keys)
        found, *values = self._results(lib, stream, self._core.lookup(stream, tensor), 1)
        _done(lib, stream, keys)
        return (values[0] if values else None), found

    def __getitem__(self, key: Any) -> Any:
        """The value of one key, as a Python number, or a list of the numbers of a row."""
        tensor, stream = self._one(key)
        found, *values = self._core.lookup(stream, tensor)
        if not found.to_list(stream)[0]:
            raise KeyError(key)
        if not values:
            return None
        numbers = values[0].to_list(stream)
        return numbers if self.row else numbers[0]


class _Ordered(_Dictionary):
    """Dictionaries with an order. Floats are ordered with -0 before 0, and NaN at the end."""

    __slots__ = ()

    def _interval(self, low: Any, high: Any) -> tuple[Library, _core.Tensor, _core.Tensor, _core.Stream]:
        lib, first, stream = self._keys(low)
        last = _vector(_also(lib, stream, high), "the array of upper bounds")
        if last.shape != first.shape:
            raise ArgumentError(f"there are {first.shape[0]} lower bounds and {last.shape[0]} upper bounds")
        return lib, first, last, stream

    def count(self, low: Any, high: Any) -> Any:
        """Counts the keys in each interval from `low` to `high`, both inclusive."""
        lib, first, last, stream = self._interval(low, high)
        (counts,) = self._results(lib, stream, self._core.count(stream, first, last), None)
        _done(lib, stream, low, high)
        return counts

    def range(self, low: Any, high: Any) -> tuple[Any, Any, Any]:
        """Returns the pairs in each interval from `low` to `high`, both inclusive, in order.

        The result is the offsets of the intervals, one more than there are, and all keys and values. In a set, values are None.
        """
        lib, first, last, stream = self._interval(low, high)
        offsets, keys, *values = self._results(lib, stream, self._core.range(stream, first, last), 2)
        _done(lib, stream, low, high)
        return offsets, keys, values[0] if values else None

    def _neighbour(self, keys: Any, following: bool) -> tuple[Any, Any, Any]:
        lib, tensor, stream = self._keys(keys)
        found, others, *values = self._results(lib, stream, self._core.neighbour(stream, tensor, following), 2)
        _done(lib, stream, keys)
        return others, (values[0] if values else None), found

    def successor(self, keys: Any) -> tuple[Any, Any, Any]:
        """Returns for each key the smallest key greater than it, its value, and whether there is one."""
        return self._neighbour(keys, True)

    def predecessor(self, keys: Any) -> tuple[Any, Any, Any]:
        """Returns for each key the largest key less than it, its value, and whether there is one."""
        return self._neighbour(keys, False)


class Lsm(_Lookups, _Ordered):
    """An ordered dictionary for a stream of updates, with queries in between: a log-structured merge tree.

    `key_dtype` and `value_dtype` are int32, uint32, int64, uint64, float32 or float64; without a `value_dtype` it is a set. With
    `row`, each value is a row of that many numbers of any dtype. `device` is that of `GPU_PRIMITIVES_DEVICE`, or the first GPU, or
    the CPU.

    >>> import numpy as np
    >>> prices = Lsm("int64", "float32", device="cpu")
    >>> prices.insert(np.array([3, 1, 2]), np.array([0.5, 1.5, 2.5], "float32"))
    >>> prices.lookup(np.array([1, 7]))
    (array([1.5, 0. ], dtype=float32), array([ True, False]))
    >>> prices.upsert(np.array([1]), np.array([1.0], "float32"), op="sum")
    >>> prices[1], 7 in prices, list(prices)
    (2.5, False, [1, 2, 3])
    """

    _kind = "Lsm"
    __slots__ = ()


class SortedArray(_Lookups, _Ordered):
    """An ordered dictionary for data that rarely changes: the fastest ordered queries; each update rewrites the array.

    >>> import numpy as np
    >>> words = SortedArray("int64", device="cpu")  # a set
    >>> words.insert(np.array([30, 10, 20]))
    >>> words.count(np.array([10]), np.array([25]))
    array([2])
    """

    _kind = "SortedArray"
    __slots__ = ()


class HashMap(_Lookups):
    """A hash table: the fastest lookups, and no order. Iteration sorts the keys.

    >>> import numpy as np
    >>> counts = HashMap("uint32", "int64", device="cpu")
    >>> counts.upsert(np.array([5, 5, 9], "uint32"), np.array([1, 1, 1]), op="sum")
    >>> counts[5], len(counts)
    (2, 2)
    """

    _kind = "HashMap"
    __slots__ = ()


class Multimap(_Ordered):
    """An ordered dictionary that keeps all values of a key.

    >>> import numpy as np
    >>> edges = Multimap("int64", "int64", device="cpu")
    >>> edges.insert(np.array([1, 1, 2]), np.array([10, 11, 20]))
    >>> edges.get(np.array([1, 2]))
    (array([0, 2, 3]), array([10, 11, 20]))
    """

    _kind = "Multimap"
    __slots__ = ()

    def get(self, keys: Any) -> tuple[Any, Any]:
        """Returns where the values of each key begin, one offset more than keys, and the values, the oldest of a key first."""
        lib, tensor, stream = self._keys(keys)
        offsets, *values = self._results(lib, stream, self._core.get(stream, tensor), 1)
        _done(lib, stream, keys)
        return offsets, values[0] if values else None

    def count_values(self, keys: Any) -> Any:
        """Counts the values of each key."""
        lib, tensor, stream = self._keys(keys)
        (counts,) = self._results(lib, stream, self._core.count_values(stream, tensor), None)
        _done(lib, stream, keys)
        return counts

    def delete_pairs(self, keys: Any, values: Any) -> None:
        """Deletes pairs of a key and a value. Ignores absent ones."""
        lib, tensor, stream = self._keys(keys)
        self._core.delete_pairs(stream, tensor, self._values(lib, stream, values, tensor))
        _done(lib, stream, keys, values)
