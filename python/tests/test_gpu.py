"""What only a GPU shows: work that is still queued while memory is read, written, or given back.

A long kernel goes before each step that others must wait for. The tests are skipped without torch or CuPy on a GPU.
"""

import unittest

import numpy as np
from raises import raises
from support import need, same

import gpu_primitives as gp

COUNT = 1 << 20
#: Cycles that a stream is busy: some hundredths of a second.
LONG = 50_000_000


def busy(torch):
    torch.cuda._sleep(LONG)


def late(xp, x):
    """An array whose elements are written after a long time, on the current stream of its library."""
    if xp.name == "cupy":
        array, source = xp.cupy.zeros(x.shape, x.dtype), xp.cupy.asarray(x)
        xp.cupy.RawKernel(
            'extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }', "spin"
        )((1,), (1,), (np.int64(LONG),))
        array[...] = source
    else:
        array = xp.torch.zeros(x.shape, dtype=getattr(xp.torch, x.dtype.name), device=xp.device)
        source = xp.torch.from_numpy(x).to(xp.device)
        busy(xp.torch)
        array.copy_(source)
    return array


def overwrite(xp, x):
    """Takes the memory that has just been given back, and overwrites it."""
    if xp.name == "cupy":
        return [xp.cupy.full(x.shape, -1, x.dtype) for _ in range(4)]
    return [xp.torch.full(x.shape, -1, dtype=getattr(xp.torch, x.dtype.name), device=xp.device) for _ in range(4)]


class Wrapped:
    """An array of no known library: what it says is that of an array of a known one."""

    def __init__(self, array, stream=None):
        interface = {key: value for key, value in array.__cuda_array_interface__.items() if key != "stream"}
        self.array, self.__cuda_array_interface__ = array, {**interface, "version": 3, "stream": stream}

    __cuda_array_interface__ = None


class Exported:
    """An array of no known library, by DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)


def pairs():
    torch, cupy = need("torch-cuda", "cupy")
    return [(torch, cupy), (cupy, torch)]


def test_two_libraries_in_one_call():
    a, b = np.arange(0, 2 * COUNT, 2), np.arange(1, 2 * COUNT, 2)
    for one, other in pairs():
        with one.stream(), other.stream():
            first, second = late(one, a), late(other, b)
            merged = gp.merge(first, second)
            del second  # the memory goes back to a library that does not know the stream
            overwrite(other, b)
            same(one.numpy(merged), np.arange(2 * COUNT))


def test_out_of_another_library():
    x = np.random.default_rng(0).integers(0, 1 << 40, COUNT)
    for one, other in pairs():
        with one.stream(), other.stream():
            out = late(other, np.zeros_like(x))  # what is queued there comes first
            assert gp.sort(late(one, x), out=out) is out
            same(other.numpy(out), np.sort(x))


def test_inputs_may_be_deleted_right_after_a_call(xp):
    if xp.name not in ("torch-cuda", "cupy"):
        raise unittest.SkipTest("needs arrays on a GPU")
    x = np.random.default_rng(1).integers(0, 1 << 40, COUNT)
    for _ in range(3):
        array = late(xp, x)
        found, order = gp.sort(array), gp.argsort(array)
        del array
        overwrite(xp, x)
        same(xp.numpy(found), np.sort(x))
        same(xp.numpy(order), np.argsort(x, kind="stable"))


def test_exported_inputs_may_be_deleted_right_after_a_call():
    (torch,) = need("torch-cuda")
    a, b = np.arange(0, 2 * COUNT, 2), np.arange(1, 2 * COUNT, 2)
    with torch.stream():
        other = Exported(late(torch, b))
        merged = gp.merge(late(torch, a), other)
        del other
        overwrite(torch, b)
        same(torch.numpy(merged), np.arange(2 * COUNT))


def test_interfaces_of_arrays_on_a_gpu():
    (torch,) = need("torch-cuda")
    x = np.random.default_rng(2).integers(0, 1000, (3, COUNT)).astype("float32")
    with torch.stream():
        array = late(torch, x)
        stream = torch.torch.cuda.current_stream().cuda_stream
        for row in range(3):
            result = gp.sort(Wrapped(array[row], stream))
            assert isinstance(result, gp.Array) and result.__dlpack_device__() == (2, 0)
            same(torch.numpy(torch.torch.from_dlpack(result)), np.sort(x[row]))
        with raises(gp.ArgumentError, "gaps"):
            gp.sort(Wrapped(array[:, 0], stream))
        with raises(gp.Error):
            gp.sort(Wrapped(array[0], 2))  # the stream that is another one on each thread
        with raises(gp.ArgumentError, "one quantile"):
            gp.quantile(Wrapped(array, stream), [0.0, 1.0])
        merged = gp.merge(torch.torch.sort(array[0]).values, Wrapped(torch.torch.sort(array[1]).values, stream))
        same(torch.numpy(merged), np.sort(x[:2].reshape(-1)))


def test_a_consumer_outlives_an_array_of_this_package():
    (torch,) = need("torch-cuda")
    x = np.random.default_rng(3).integers(0, 1 << 40, COUNT)
    with torch.stream():
        for _ in range(3):
            array = gp.sort(Exported(torch.array(x)))
            tensor = torch.torch.from_dlpack(array)
            del array
            busy(torch.torch)
            more = tensor + 1
            del tensor  # the addition has not begun
            others = [gp.sort(Exported(torch.array(-x))) for _ in range(3)]
            same(torch.numpy(more), np.sort(x) + 1)
            del others


def test_two_streams_use_one_dictionary():
    (torch,) = need("torch-cuda")
    streams = [torch.torch.cuda.Stream() for _ in range(2)]
    keys = np.arange(100_000)
    for kind in (gp.Lsm, gp.SortedArray, gp.HashMap):
        found = kind("int64", "int64", device="cuda")
        for step in range(6):
            with torch.torch.cuda.stream(streams[step % 2]):
                found.insert(late(torch, keys), late(torch, keys + step))
            with torch.torch.cuda.stream(streams[(step + 1) % 2]):
                values, mask = found.lookup(torch.array(keys))
                assert torch.numpy(mask).all()
                same(torch.numpy(values), keys + step)


def test_a_dictionary_takes_arrays_of_two_libraries():
    keys = np.arange(1000)
    for one, other in pairs():
        with one.stream(), other.stream():
            found = gp.Lsm("int64", "int64", device="cuda")
            found.insert(late(one, keys), late(other, keys * 3))
            values, _ = found.lookup(late(other, keys))
            same(other.numpy(values), keys * 3)


def test_more_than_2_to_the_32_elements():
    (torch,) = need("torch-cuda")
    if torch.torch.cuda.mem_get_info()[0] < 40 << 30:
        raise unittest.SkipTest("needs 40 GiB of memory")
    length = (1 << 32) + 8
    x = torch.torch.zeros(length, dtype=torch.torch.float32, device="cuda")
    x[-8:] = torch.torch.arange(8)
    offsets = torch.array(np.array([length - 8, length - 4, length, length + 5]))
    same(torch.numpy(gp.segmented_sum(x, offsets)), np.array([6, 22, 0], "float32"))
    del x
    torch.torch.cuda.empty_cache()


def test_calls_cannot_be_captured_by_torch():
    (torch,) = need("torch-cuda")
    x = torch.array(np.arange(10))
    torch.torch.cuda.synchronize()
    with torch.torch.cuda.graph(torch.torch.cuda.CUDAGraph()):
        x + 1  # an empty graph is a warning
        with raises(gp.DeviceError, "graph"):
            gp.sort(x)
    same(torch.numpy(gp.sort(x)), np.arange(10))


def test_calls_cannot_be_captured_by_cupy():
    (cupy,) = need("cupy")
    x = cupy.array(np.arange(10))
    with cupy.stream():
        cupy.side.synchronize()
        cupy.side.begin_capture()
        try:
            with raises(gp.DeviceError, "graph"):
                gp.sort(x)
        finally:
            cupy.side.end_capture()
        same(cupy.numpy(gp.sort(x)), np.arange(10))


def test_items_of_a_dictionary_on_the_cpu_are_not_of_cupy():
    (cupy,) = need("cupy")
    found = gp.Lsm("int64", device="cpu")
    with raises(gp.ArgumentError, "NumPy"):
        found.items(like=cupy.array(np.arange(3)))
