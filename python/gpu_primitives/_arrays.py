"""Whose array is it, on which stream does it work, and how is an array for a result made?

Each library is one class here. Nothing is imported that the caller has not imported: an array of torch means that torch is there.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from . import _core
from ._errors import ArgumentError, DeviceError, DTypeError

_streams: dict[tuple[int, int], _core.Stream] = {}
_own: dict[int, _core.Stream] = {}
#: The legacy default streams.
_default: set[_core.Stream] = set()


def cuda_stream(device: int, handle: int) -> _core.Stream:
    """The stream with this handle of the driver. It is kept: streams have memory of their own."""
    stream = _streams.get((device, handle))
    if stream is None:
        # Of two threads that come at once, both get the first one's.
        stream = _streams.setdefault((device, handle), _core.Stream.cuda(device, handle))
        if handle in (0, 1):
            _default.add(stream)
    return stream


def own_stream(device: int) -> _core.Stream:
    """A stream of this package."""
    if device < 0:
        return _core.Stream.cpu()
    stream = _own.get(device)
    return _own.setdefault(device, _core.Stream.own(device)) if stream is None else stream


class Library:
    """What calls ask of a library of arrays."""

    name = "?"
    #: Whether calls must wait before they return, because the library does not know the stream.
    waits = False

    def tensor(self, x: Any) -> _core.Tensor:
        """The elements, for reading. An array with gaps is copied."""
        raise NotImplementedError

    def target(self, x: Any) -> _core.Tensor:
        """The elements, for writing."""
        raise NotImplementedError

    def stream(self, device: int) -> _core.Stream:
        """The stream that work goes to."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> tuple[Any, _core.Tensor]:
        """A new array, and its elements."""
        raise NotImplementedError

    def finish(self, array: Any) -> Any:
        """What the caller gets for an array of `empty`."""
        return array

    def head(self, array: Any, count: int) -> Any:
        """The first elements; a copy if most of the memory would be kept for nothing."""
        return array[:count] if 2 * count >= len(array) else self.copy(array[:count])

    def copy(self, array: Any) -> Any:
        return array.copy()

    def cast(self, x: Any, dtype: str) -> Any:
        """A copy with elements of another dtype."""
        raise DTypeError(f"convert the array to {dtype} first: {type(x).__name__} cannot be asked to")

    def floats(self, numbers: list[float], dtype: str, device: int) -> Any:
        """A new array of these numbers."""
        raise DTypeError("an array of this library has no edges of bins; use bincount")

    def used(self, x: Any, stream: _core.Stream) -> None:
        """The call has put work that uses the array on this library's current stream, which is `stream`."""


def _no_gaps(what: str) -> ArgumentError:
    return ArgumentError(f"{what} has gaps or another order in memory; pass a contiguous array")


class NumPy(Library):
    name = "numpy"

    def __init__(self) -> None:
        self.np = sys.modules["numpy"]

    def _tensor(self, x: Any) -> _core.Tensor:
        if isinstance(x, self.np.ma.MaskedArray):
            raise DTypeError("masked arrays are not supported; fill in the values, or select those that are not masked")
        dtype = x.dtype
        if not dtype.isnative:
            raise DTypeError("the bytes of the elements are in the other order; convert with .astype(x.dtype.newbyteorder('='))")
        interface = x.__array_interface__
        address, read_only = interface["data"]
        return _core.Tensor.at(x, address, x.shape, dtype.name, -1, read_only)

    def tensor(self, x: Any) -> _core.Tensor:
        flags = x.flags
        if not (flags.c_contiguous and flags.aligned):
            x = x.copy(order="C")
        return self._tensor(x)

    def target(self, x: Any) -> _core.Tensor:
        if not x.flags.c_contiguous:
            raise _no_gaps("the array for the result")
        return self._tensor(x)

    def stream(self, device: int) -> _core.Stream:
        return _core.Stream.cpu()

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> tuple[Any, _core.Tensor]:
        # Zeros: memory that nobody has written may not be read, and some results leave gaps.
        array = self.np.zeros(shape, dtype)
        return array, self._tensor(array)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def floats(self, numbers: list[float], dtype: str, device: int) -> Any:
        return self.np.array(numbers, dtype)


class Torch(Library):
    name = "torch"

    def __init__(self) -> None:
        self.torch = torch = sys.modules["torch"]
        names = (
            "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
        ).split()
        self.dtypes = {name: getattr(torch, name) for name in names if hasattr(torch, name)}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}
        self.raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.written = getattr(torch.autograd.graph, "increment_version", None)

    def _tensor(self, x: Any) -> _core.Tensor:
        if x.requires_grad:
            raise DTypeError("the tensor requires a gradient, which does not pass through this call; pass x.detach()")
        device = x.device
        kind = device.type
        if kind != "cpu" and kind != "cuda":
            raise ArgumentError(f"the tensor is on {device}; move it with .cpu() or .cuda()")
        dtype = self.names.get(x.dtype)
        if dtype is None:
            raise DTypeError(f"the dtype {x.dtype} is not supported; convert to a number of 8 to 64 bits")
        return _core.Tensor.at(x, x.data_ptr(), x.shape, dtype, device.index if kind == "cuda" else -1)

    def tensor(self, x: Any) -> _core.Tensor:
        if x.layout is not self.torch.strided:
            raise ArgumentError(f"the tensor has the layout {x.layout}; pass x.to_dense()")
        if x.is_neg():
            x = x.resolve_neg()
        if not x.is_contiguous():
            x = x.contiguous()
        return self._tensor(x)

    def target(self, x: Any) -> _core.Tensor:
        if x.layout is not self.torch.strided or x.is_neg() or not x.is_contiguous():
            raise _no_gaps("the tensor for the result")
        tensor = self._tensor(x)
        if self.written and not x.is_inference():
            self.written(x)  # so that a gradient that needs the old elements is an error
        return tensor

    def stream(self, device: int) -> _core.Stream:
        if device < 0:
            return _core.Stream.cpu()
        cuda = self.torch.cuda
        if cuda.is_current_stream_capturing():
            raise DeviceError("calls cannot be recorded in a CUDA graph of torch")
        handle = self.raw_stream(device) if self.raw_stream else cuda.current_stream(device).cuda_stream
        return cuda_stream(device, handle)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> tuple[Any, _core.Tensor]:
        if device < 0:
            array = self.torch.zeros(shape, dtype=self.dtypes[dtype])
        else:
            array = self.torch.empty(shape, dtype=self.dtypes[dtype], device=f"cuda:{device}")
        return array, _core.Tensor.at(array, array.data_ptr(), shape, dtype, device)

    def copy(self, array: Any) -> Any:
        return array.clone()

    def cast(self, x: Any, dtype: str) -> Any:
        return x.to(self.dtypes[dtype])

    def floats(self, numbers: list[float], dtype: str, device: int) -> Any:
        place = "cpu" if device < 0 else f"cuda:{device}"
        return self.torch.tensor(numbers, dtype=self.dtypes[dtype], device=place)

    def used(self, x: Any, stream: _core.Stream) -> None:
        # On a side stream, the allocator must not hand the memory to others before the work is done.
        if stream.device >= 0 and stream not in _default:
            x.record_stream(self.torch.cuda.current_stream(stream.device))


class CuPy(Library):
    name = "cupy"

    def __init__(self) -> None:
        self.cupy = sys.modules["cupy"]
        #: Streams of CuPy end with their objects.
        self.kept: dict[int, Any] = {}

    def _tensor(self, x: Any) -> _core.Tensor:
        return _core.Tensor.at(x, x.data.ptr, x.shape, x.dtype.name, x.device.id)

    def tensor(self, x: Any) -> _core.Tensor:
        return self._tensor(x if x.flags.c_contiguous else self.cupy.ascontiguousarray(x))

    def target(self, x: Any) -> _core.Tensor:
        if not x.flags.c_contiguous:
            raise _no_gaps("the array for the result")
        return self._tensor(x)

    def stream(self, device: int) -> _core.Stream:
        if device < 0:
            raise ArgumentError("arrays of CuPy are on a GPU, and the dictionary is on the CPU; pass an array of NumPy")
        stream = self.cupy.cuda.get_current_stream()
        if stream.is_capturing():
            raise DeviceError("calls cannot be recorded in a CUDA graph of CuPy")
        self.kept.setdefault(stream.ptr, stream)
        return cuda_stream(device, stream.ptr)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> tuple[Any, _core.Tensor]:
        with self.cupy.cuda.Device(device):
            array = self.cupy.empty(shape, dtype)
        return array, self._tensor(array)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def floats(self, numbers: list[float], dtype: str, device: int) -> Any:
        with self.cupy.cuda.Device(device):
            return self.cupy.array(numbers, dtype)


class Other(Library):
    """A library that only speaks DLPack, or `__cuda_array_interface__`. On a GPU, calls wait until their work is done."""

    waits = True

    def __init__(self, module: str) -> None:
        self.module = module

    def tensor(self, x: Any) -> _core.Tensor:
        if hasattr(x, "__dlpack__"):
            return self._dlpack(x)
        return self._interface(x)

    def target(self, x: Any) -> _core.Tensor:
        if self.module == "jax":  # old capsules do not say so
            raise ArgumentError("arrays of jax are never written; leave out `out`")
        return self.tensor(x)

    def _dlpack(self, x: Any) -> _core.Tensor:
        try:
            kind, device = x.__dlpack_device__()
            kind, device = int(kind), int(device)
        except (AttributeError, TypeError, ValueError) as error:
            raise DTypeError(f"{type(x).__name__} has no valid __dlpack_device__: {error}") from error
        arguments: dict[str, Any] = {}
        if kind in (2, 13):  # memory of a GPU, or managed memory
            arguments["stream"] = own_stream(device).handle
        try:
            try:
                capsule = x.__dlpack__(max_version=(1, 0), **arguments)
            except TypeError:
                capsule = x.__dlpack__(**arguments)  # of the time before versions
        except BufferError as error:
            raise ArgumentError(f"{type(x).__name__} does not hand out its memory: {error}") from error
        return _core.Tensor.of_capsule(capsule)

    def _interface(self, x: Any) -> _core.Tensor:
        interface = x.__cuda_array_interface__
        try:
            address, read_only = interface["data"]
            address, read_only, code = int(address), bool(read_only), str(interface["typestr"])
            shape = tuple(int(n) for n in interface["shape"])
            strides, stream = interface.get("strides"), interface.get("stream")
            strides = None if strides is None else [int(n) for n in strides]
            stream = None if stream is None else int(stream)
            if not all(0 <= n < 1 << 63 for n in (*shape, address, stream or 0)):
                raise ValueError("a number is negative or too large")
        except (KeyError, TypeError, ValueError) as error:
            raise DTypeError(f"the __cuda_array_interface__ of {type(x).__name__} is not valid: {error!r}") from error
        kinds = {"b": "bool", "i": "int", "u": "uint", "f": "float"}
        if len(code) != 3 or code[0] not in "<|" or code[1] not in kinds or not code[2].isdigit():
            raise DTypeError(f"elements of the type {code!r} are not supported; convert to a number of 8 to 64 bits")
        dtype = "bool" if code[1] == "b" else f"{kinds[code[1]]}{8 * int(code[2])}"
        if interface.get("mask") is not None:
            raise DTypeError("arrays with a mask are not supported")
        if strides is not None:
            expected = int(code[2])
            if len(strides) != len(shape):
                raise DTypeError(f"the __cuda_array_interface__ of {type(x).__name__} has {len(strides)} strides")
            for length, stride in zip(reversed(shape), reversed(strides)):
                if length > 1 and stride != expected:
                    raise _no_gaps("the array")
                expected *= length
        tensor = _core.Tensor.of_interface(x, address, shape, dtype, read_only)
        if stream is not None:  # the elements are ready when this stream is
            cuda_stream(tensor.device, stream).synchronize()
        return tensor

    def stream(self, device: int) -> _core.Stream:
        return own_stream(device)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> tuple[Any, _core.Tensor]:
        array = _core.Array(own_stream(device), list(shape), dtype)
        return array, _core.Tensor.at(array, array.address, list(shape), dtype, device)

    def finish(self, array: Any) -> Any:
        if not isinstance(array, _core.Array):
            return array
        module = sys.modules.get(self.module)
        take = getattr(module, "from_dlpack", None)
        if take is None and self.module == "jax":
            take = sys.modules["jax"].dlpack.from_dlpack
        if take is None and array.__dlpack_device__()[0] == 1:
            take = getattr(sys.modules.get("numpy"), "from_dlpack", None)
        return array if take is None else take(array)

    def head(self, array: Any, count: int) -> Any:
        device = own_stream(-1 if array.__dlpack_device__()[0] == 1 else array.__dlpack_device__()[1])
        whole = _core.Tensor.at(array, array.address, array.shape, array.dtype, device.device)
        shorter, to = self.empty((count,), array.dtype, device.device)
        _core.copy_head(device, whole, to)
        return shorter


_libraries: dict[type, Library] = {}
_made: dict[Any, Library] = {}


def the(make: Callable[..., Library], *arguments: str) -> Library:
    """The only object of a library's class: whether two arrays are of one library is a comparison of objects."""
    known = (make, *arguments)
    found = _made.get(known)
    return _made.setdefault(known, make(*arguments)) if found is None else found


def library(x: Any) -> Library:
    """The library of an array."""
    found = _libraries.get(type(x))
    if found is None:
        found = _libraries[type(x)] = _find(type(x))
    return found


def _find(kind: type) -> Library:
    for base in kind.__mro__:
        known = _KNOWN.get((base.__module__.split(".")[0], base.__name__))
        if known is not None:
            return the(known)
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"):
        return the(Other, "jax" if kind.__module__.startswith("jax") else kind.__module__.split(".")[0])
    raise DTypeError(f"expected an array of torch, CuPy, NumPy, or any with __dlpack__; found {kind.__name__}")


_KNOWN = {("numpy", "ndarray"): NumPy, ("torch", "Tensor"): Torch, ("torch", "Parameter"): Torch, ("cupy", "ndarray"): CuPy}
