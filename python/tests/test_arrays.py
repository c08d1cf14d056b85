"""Arrays that are unusual, wrong, or used from several threads; and who keeps the memory."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import types
import weakref

import numpy as np
from raises import raises
from support import same

import gpu_primitives as gp


def test_strides_work(xp):
    x = np.random.default_rng(0).integers(0, 100, (20, 30))
    a = xp.array(x)
    for part, expected in ((a[:, 3], x[:, 3]), (a[2, ::2], x[2, ::2])):
        same(xp.numpy(gp.sort(part)), np.sort(expected))
    same(xp.numpy(gp.sort(a.T)), np.sort(x.T))
    if "torch" not in xp.name:  # torch has no negative strides
        same(xp.numpy(gp.argsort(a[3, ::-1])), np.argsort(x[3, ::-1], kind="stable"))


def test_shapes(xp):
    for wrong in (np.array(3), np.zeros((2, 2, 2))):
        with raises(gp.ArgumentError, "dimensions"):
            gp.sort(xp.array(wrong))
    with raises(gp.ArgumentError, "reshape"):
        gp.unique(xp.array(np.zeros((2, 2))))
    with raises(gp.ArgumentError, "axis"):
        gp.sort(xp.array(np.zeros((2, 2))), axis=0)


def test_dtypes_that_are_not_supported(xp):
    with raises(gp.DTypeError, "complex64"):
        gp.sort(xp.array(np.zeros(2, "complex64")))
    for pair in ((np.arange(3), np.arange(3.0)), (np.arange(3, dtype="int32"), np.arange(3))):
        with raises(gp.DTypeError, "must be"):
            gp.merge(*map(xp.array, pair))
    with raises(gp.DTypeError, "must be bool"):
        gp.select(xp.array(np.arange(3)), xp.array(np.arange(3)))
    for wrong in (None, [1, 2], 3, "text", b"bytes", object()):
        with raises(gp.DTypeError, "expected an array"):
            gp.sort(wrong)


def test_errors_are_those_of_python():
    assert issubclass(gp.ArgumentError, ValueError) and issubclass(gp.DTypeError, TypeError)
    assert issubclass(gp.OutOfMemoryError, MemoryError) and issubclass(gp.FileError, OSError)
    assert all(issubclass(each, gp.Error) for each in (gp.ArgumentError, gp.DTypeError, gp.FileError, gp.DeviceError))


def test_overlaps_are_errors(xp):
    a = xp.array(np.arange(10))
    for out in (a, a[:], a[0:10]):
        with raises(gp.ArgumentError, "shares memory"):
            gp.sort(a, out=out)
    with raises(gp.ArgumentError, "shares memory"):
        gp.sort(a[:6], out=a[4:])
    out = xp.array(np.zeros(4, "int64"))
    with raises(gp.ArgumentError, "shares memory"):
        gp.topk(a, 4, out=(out, out))
    same(xp.numpy(gp.sort(a[:5], out=a[5:])), np.arange(5))  # neighbours do not overlap


def test_out_with_gaps_or_read_only():
    x = np.arange(4)
    with raises(gp.ArgumentError, "contiguous"):
        gp.sort(x, out=np.zeros((4, 2), "int64")[:, 0])
    out = np.zeros(4, "int64")
    out.flags.writeable = False
    with raises(gp.ArgumentError, "read-only"):
        gp.sort(x, out=out)
    x.flags.writeable = False
    same(gp.sort(x), np.arange(4))


def test_numpy_oddities():
    same(gp.sort(np.arange(4, dtype=">i4").astype("<i4")), np.arange(4, dtype="int32"))
    with raises(gp.DTypeError, "other order"):
        gp.sort(np.arange(4, dtype=">i4"))
    with raises(gp.DTypeError, "masked"):
        gp.sort(np.ma.array([1, 2]))
    odd = np.zeros(17, "uint8")[1:].view("int32")
    odd[:] = [4, 2, 3, 1]
    same(gp.sort(odd), np.array([1, 2, 3, 4], "int32"))
    for wrong in (np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], "datetime64[D]")):
        with raises(gp.DTypeError):
            gp.sort(wrong)


def test_gradients_do_not_pass(xp):
    if "torch" in xp.name:
        tensor = xp.array(np.arange(3.0)).requires_grad_()
        with raises(gp.DTypeError, "detach"):
            gp.sort(tensor)
        same(xp.numpy(gp.sort(tensor.detach())), np.arange(3.0))


def test_autograd_notices_out(xp):
    if "torch" in xp.name and hasattr(xp.torch.autograd.graph, "increment_version"):
        x, kept = (xp.array(np.ones(3)) for _ in range(2))
        product = (x.requires_grad_() * kept).sum()
        gp.sort(xp.array(np.array([3.0, 1.0, 2.0])), out=kept)
        with raises(RuntimeError, "modified by an inplace operation"):
            product.backward()


def test_bfloat16(xp):
    if "torch" in xp.name:
        torch = xp.torch
        tensor = torch.randn(1000, dtype=torch.bfloat16, device=xp.device)
        assert torch.equal(gp.sort(tensor), torch.sort(tensor).values)
        assert torch.equal(gp.topk(tensor, 5)[0], torch.topk(tensor, 5).values)


def test_mixed_devices(xp):
    if xp.name in ("torch-cuda", "cupy"):
        with raises(gp.ArgumentError, "move"):
            gp.merge(xp.array(np.arange(3)), np.arange(3))
        found = gp.Lsm("int64", device="cpu")
        with raises(gp.ArgumentError, "move"):
            found.insert(xp.array(np.arange(3)))


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# What capsules point to.
KEPT = []


class Producer:
    """An array of no known library, whose facts can be wrong."""

    def __init__(self, x, versioned=True, **wrong):
        self.x, self.versioned, self.wrong = x, versioned, wrong
        self.deleted = 0

    def __dlpack_device__(self):
        return self.wrong.get("device", (1, 0))

    def __dlpack__(self, *, max_version=None, **rest):
        if not self.versioned and max_version is not None:
            raise TypeError("no max_version")
        if "raises" in self.wrong:
            raise self.wrong["raises"]
        if "returns" in self.wrong:
            return self.wrong["returns"]
        x, wrong = self.x, self.wrong
        shape = wrong.get("shape", x.shape)
        lengths = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        strides = wrong.get("strides")
        strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        code = {"i": 0, "u": 1, "f": 2, "c": 5}[x.dtype.kind]
        tensor = Tensor(
            wrong.get("data", x.ctypes.data), wrong.get("device", (1, 0))[0], 0, wrong.get("ndim", len(shape)), wrong.get("code", code),
            wrong.get("bits", 8 * x.itemsize), wrong.get("lanes", 1), lengths, strides or None, wrong.get("offset", 0),
        )

        def delete(_):
            self.deleted += 1

        deleter = DELETER(delete)
        if self.versioned:
            managed = Versioned(wrong.get("major", 1), 0, None, deleter, wrong.get("flags", 0), tensor)
        else:
            managed = Legacy(tensor, None, deleter)
        name = wrong.get("name", b"dltensor_versioned" if self.versioned else b"dltensor")
        # A tensor lives until its deleter has run, which may be after the garbage collector has taken this object.
        KEPT.append((x, lengths, strides, deleter, managed, name))
        return new_capsule(ctypes.addressof(managed), name, None)


def test_capsules_of_both_versions_are_given_back():
    for versioned in (True, False):
        made = Producer(np.array([3, 1, 2]), versioned)
        same(np.asarray(gp.sort(made)), np.array([1, 2, 3]))
        gc.collect()
        assert made.deleted == 1
        flat = Producer(np.array([0, 5, 0]), versioned)
        same(np.asarray(gp.nonzero(flat)), np.array([1]))
        same(np.asarray(gp.unique(Producer(np.array([7, 7]), versioned))), np.array([7]))
        out = Producer(np.zeros(3, "int64"), versioned)
        assert gp.sort(np.array([3, 1, 2]), out=out) is out and out.x.tolist() == [1, 2, 3]


def test_capsules_that_lie():
    x = np.arange(6)
    used = new_capsule(1, b"used_dltensor_versioned", None)
    for wrong, match in (
        ({"returns": used}, "used before"),
        ({"returns": None}, "no DLPack capsule"),
        ({"returns": 5}, "no DLPack capsule"),
        ({"name": b"other"}, "no DLPack capsule"),
        ({"major": 2}, "version 2"),
        ({"shape": (-1,)}, "negative"),
        ({"shape": (1 << 62, 1 << 62)}, "counted"),
        ({"ndim": -1}, "dimensions"),
        ({"ndim": 1000}, "dimensions"),
        ({"data": 0}, "address 0"),
        ({"data": 0, "offset": 64}, "address 0"),
        ({"data": 1}, "multiple"),
        ({"offset": (1 << 64) - 8}, "address"),
        ({"strides": (2,)}, "gaps"),
        ({"strides": (-1,)}, "gaps"),
        ({"raises": BufferError("no")}, "hand out"),
        ({"device": (7, 0)}, "DLPack type 7"),
        ({"device": (2, -1)}, ""),
    ):
        with raises(gp.Error if match else Exception, match):
            gp.sort(Producer(x, **wrong))
    for wrong in ({"code": 5}, {"bits": 4}, {"bits": 128}, {"lanes": 2}, {"code": 77}):
        with raises(gp.DTypeError, "not supported"):
            gp.sort(Producer(x, **wrong))
    with raises(ZeroDivisionError):
        gp.sort(Producer(x, raises=ZeroDivisionError()))
    with raises(gp.ArgumentError, "read-only"):
        gp.sort(x, out=Producer(np.zeros(6, "int64"), flags=1))
    with raises(gp.ArgumentError, "shares memory"):
        gp.sort(x, out=Producer(x))


def test_a_capsule_that_was_cached_is_used_once():
    made = Producer(np.arange(3))
    capsule = made.__dlpack__()
    made.wrong["returns"] = capsule
    same(np.asarray(gp.sort(made)), np.arange(3))
    with raises(gp.ArgumentError, "used before"):
        gp.sort(made)
    with raises(gp.ArgumentError, "used before"):
        gp.merge(made, made)
    assert made.deleted == 1


def test_interfaces_that_lie():
    class Lie:
        def __init__(self, interface):
            self.__cuda_array_interface__ = interface

    Lie.__cuda_array_interface__ = None
    good = {"shape": (4,), "typestr": "<i4", "data": (4096, False), "version": 3}
    for change in (
        {"typestr": ">i4"}, {"typestr": "<c8"}, {"typestr": 4}, {"data": None}, {"data": (-8, False)}, {"data": (1 << 64, False)},
        {"shape": (-4,)}, {"shape": (1 << 64,)}, {"shape": 4}, {"strides": (8,)}, {"strides": (4, 4)}, {"strides": 4}, {"stream": -1}, {},
    ):
        wrong = {**good, **change}
        with raises(gp.Error):
            gp.sort(Lie(wrong))
    for wrong in ({}, 5):
        with raises(gp.DTypeError, "not valid"):
            gp.sort(Lie(wrong))


def test_one_object_per_library():
    class Matrix(np.ndarray):
        pass

    known = gp._arrays.library
    assert known(np.zeros(1)) is known(np.zeros(1).view(Matrix)) is gp._arrays.the(gp._arrays.NumPy)
    assert known(Producer(np.zeros(1))) is known(Exporter(np.zeros(1))) is not known(np.zeros(1))


class Exporter(Producer):
    """Says which arguments it got."""

    def __dlpack__(self, **arguments):
        self.arguments = arguments
        raise BufferError("no")


class Busy:
    """A stream of a GPU."""

    device, handle = 0, 7

    def __init__(self):
        self.waits = 0

    def synchronize(self):
        self.waits += 1


def test_arrays_of_two_libraries_are_waited_for():
    stream, one, other = Busy(), np.zeros(1), Producer(np.zeros(1))
    lib = gp._arrays.library(one)
    gp._functions._done(lib, stream, one, None, one)
    assert stream.waits == 0
    gp._functions._done(lib, stream, one, other)
    assert stream.waits == 1
    gp._functions._done(gp._arrays.library(other), stream, one)
    assert stream.waits == 2

    class Elsewhere(gp._arrays.Library):
        stream_of = Busy()

        def target(self, x):
            return types.SimpleNamespace(shape=[1], dtype="float64", device=0)

        def stream(self, device):
            return self.stream_of

    class Foreign:
        pass

    gp._arrays._libraries[Foreign] = Elsewhere()
    try:
        gp._functions._out(lib, Foreign(), (1,), "float64", 0)
        assert Elsewhere.stream_of.waits == 1
        gp._functions._out(gp._arrays._libraries[Foreign], Foreign(), (1,), "float64", 0)
        assert Elsewhere.stream_of.waits == 1
    finally:
        del gp._arrays._libraries[Foreign]


def test_memory_of_gpus_is_asked_for_on_a_stream():
    own, gp._arrays.own_stream = gp._arrays.own_stream, lambda device: Busy()
    try:
        for kind in (2, 13):
            made = Exporter(np.zeros(1), device=(kind, 0))
            with raises(gp.ArgumentError, "hand out"):
                gp.sort(made)
            assert made.arguments["stream"] == 7
    finally:
        gp._arrays.own_stream = own


def test_threads_get_the_same_stream():
    def make(device):
        time.sleep(0.05)
        return Busy()

    arrays = gp._arrays
    streams = types.SimpleNamespace(own=make, cuda=lambda device, handle: make(device))
    core, arrays._core = arrays._core, types.SimpleNamespace(Stream=streams)
    found = []
    try:
        for ask in (lambda: arrays.own_stream(99), lambda: arrays.cuda_stream(99, 5)):
            threads = [threading.Thread(target=lambda: found.append(ask())) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 4 and all(each is found[0] for each in found)
            found.clear()
    finally:
        arrays._core = core
        arrays._own.pop(99, None)
        arrays._streams.pop((99, 5), None)


def test_cupy_is_not_captured_and_not_on_the_cpu():
    cupy = gp._arrays.CuPy.__new__(gp._arrays.CuPy)
    capturing = types.SimpleNamespace(is_capturing=lambda: True, ptr=0)
    cupy.cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=lambda: capturing))
    with raises(gp.DeviceError, "graph"):
        cupy.stream(0)
    with raises(gp.ArgumentError, "NumPy"):
        cupy.stream(-1)


def test_arrays_of_jax_are_not_written():
    class Jax(Producer):
        pass

    Jax.__module__ = "jaxlib.xla_extension"
    out = Jax(np.zeros(3, "int64"), versioned=False)
    with raises(gp.ArgumentError, "jax"):
        gp.sort(np.array([3, 1, 2]), out=out)
    assert not out.x.any()


def run(code):
    """Runs Python code in another process, on the CPU."""
    environment = {**os.environ, "GPU_PRIMITIVES_DEVICE": "cpu"}
    return subprocess.run([sys.executable, "-c", code], env=environment, timeout=120, check=True)


def test_children_of_a_fork_work():
    if hasattr(os, "fork"):
        run(
            """if True:
            import os, signal, warnings
            import numpy as np, gpu_primitives as gp
            warnings.simplefilter("ignore")
            x = np.random.default_rng(0).standard_normal(1 << 20)
            expected = np.sort(x)
            assert (gp.sort(x) == expected).all()
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if (gp.sort(x) == expected).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert (gp.sort(x) == expected).all()
            """
        )


def test_a_consumer_may_delete_after_the_end_of_python():
    if sys.platform == "linux":
        run(
            """if True:
            import ctypes, gpu_primitives as gp
            array = gp.Array(gp._core.Stream.cpu(), [8], "float32")
            capsule = array.__dlpack__(max_version=(1, 0))
            call = ctypes.pythonapi
            call.PyCapsule_GetPointer.restype = ctypes.c_void_p
            call.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
            call.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
            managed = call.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
            used = b"used_dltensor_versioned"
            call.PyCapsule_SetName(capsule, used)
            deleter = ctypes.cast(managed, ctypes.POINTER(ctypes.c_void_p))[2]
            at_exit = ctypes.CDLL(None).__cxa_atexit
            at_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
            assert at_exit(deleter, managed, None) == 0
            """
        )


def test_memory_is_let_go():
    x = np.arange(1000)
    before = sys.getrefcount(x)
    for _ in range(10):
        y = gp.sort(x)
        gp.unique(x, return_counts=True)
        gp.Lsm("int64", device="cpu").insert(x)
    assert sys.getrefcount(x) == before
    watched = weakref.ref(y)
    del y
    gc.collect()
    assert watched() is None


def test_arrays_of_this_package_stay_as_long_as_their_consumers():
    array = gp.Array(gp._core.Stream.cpu(), [2, 3], "float32")
    assert (array.shape, array.dtype, array.__dlpack_device__()) == ([2, 3], "float32", (1, 0))
    watched, view = sys.getrefcount(array), np.from_dlpack(array)
    assert view.shape == (2, 3) and sys.getrefcount(array) == watched + 1
    for version in (None, (1, 0)):
        capsule = array.__dlpack__(max_version=version)
        assert sys.getrefcount(array) == watched + 2
        del capsule  # nobody has used it
        assert sys.getrefcount(array) == watched + 1
    del array
    gc.collect()
    same(np.array(view), np.zeros((2, 3), "float32"))
    result = gp.sort(Producer(np.array([3, 1, 2])))
    gc.collect()
    same(np.array(result), np.array([1, 2, 3]))


def test_numpy_cannot_resize_an_array_in_use():
    x = np.arange(10)
    used = gp._arrays.library(x).tensor(x)
    with raises(ValueError, "referenced"):
        x.resize(5)
    del used
    x.resize(5)


def test_threads(xp):
    errors = []

    def work(seed):
        try:
            with xp.stream():
                x = np.random.default_rng(seed).integers(0, 1000, 3000)
                for _ in range(10):
                    same(xp.numpy(gp.sort(xp.array(x))), np.sort(x))
                    same(xp.numpy(gp.unique(xp.array(x))), np.unique(x))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_other_threads_run_while_a_call_waits():
    x = np.random.default_rng(0).standard_normal(1 << 20)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = ticks[0]
    gp.sort(x)
    after = ticks[0]
    gp.sort_by_columns([x])
    last = ticks[0]
    stop.set()
    thread.join()
    assert last > after > before


def test_empty_arrays(xp):
    empty = xp.array(np.zeros(0, "int64"))
    assert len(gp.sort(empty)) == len(gp.unique(empty)) == len(gp.nonzero(empty)) == len(gp.cumsum(empty)) == 0
    for wrong in (lambda: gp.median(empty), lambda: gp.kthvalue(empty, 1), lambda: gp.quantile(empty, 0.5), lambda: gp.topk(empty, 1)):
        with raises(gp.ArgumentError):
            wrong()
