"""What the tests share: libraries of arrays, and examples from hypothesis, or from a generator where it is not installed."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import random
import unittest
import warnings

import numpy as np

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
#: Lengths at the edges of blocks and tiles.
LENGTHS = [0, 1, 2, 31, 33, 255, 1000, 2049]


class NumPy:
    name = "numpy"

    def array(self, x):
        return x

    def numpy(self, x):
        assert isinstance(x, np.ndarray), type(x)
        return x

    def can(self, dtype):
        return True

    def stream(self):
        return contextlib.nullcontext()


class Torch:
    def __init__(self, device):
        import torch

        self.torch, self.device, self.name = torch, device, f"torch-{device}"
        if device == "cuda":
            torch.cuda.init()  # an error without a GPU
        self.side = torch.cuda.Stream() if device == "cuda" else None

    def array(self, x):
        tensor = self.torch.from_numpy(np.ascontiguousarray(x)).reshape(x.shape)
        # Without this, the tests would also see the memory of NumPy.
        return tensor.clone() if self.device == "cpu" else tensor.to(self.device)

    def numpy(self, x):
        assert isinstance(x, self.torch.Tensor) and x.device.type == self.device, x
        return x.cpu().numpy()

    def can(self, dtype):
        return hasattr(self.torch, dtype)

    def stream(self):
        return self.torch.cuda.stream(self.side) if self.side else contextlib.nullcontext()


class CuPy:
    name = "cupy"

    def __init__(self):
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        self.cupy, self.side = cupy, cupy.cuda.Stream(non_blocking=True)

    def array(self, x):
        return self.cupy.asarray(x)

    def numpy(self, x):
        assert isinstance(x, self.cupy.ndarray), type(x)
        return self.cupy.asnumpy(x)

    def can(self, dtype):
        return dtype != "bfloat16"

    def stream(self):
        return self.side


@functools.lru_cache(None)
def libraries():
    """The libraries that are installed. Says why one is not used."""
    found = [NumPy()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pytest turns them into errors, and torch and CuPy warn while they are imported
        for name, kind, *device in (("torch", Torch, "cpu"), ("torch", Torch, "cuda"), ("cupy", CuPy)):
            if importlib.util.find_spec(name) is None:
                continue
            try:
                found.append(kind(*device))
            except Exception as error:  # noqa: BLE001
                print(f"{name} is not used {' '.join(device)}: {error!r}", flush=True)
    return found


def need(*names):
    """The libraries of these names. Skips the test if one is missing."""
    known = {xp.name: xp for xp in libraries()}
    missing = [name for name in names if name not in known]
    if missing:
        raise unittest.SkipTest(f"needs {', '.join(missing)}")
    return [known[name] for name in names]


class Random:
    """Examples without hypothesis."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def choice(self, values):
        return self.random.choice(list(values))

    def integer(self, low, high):
        return self.random.randint(low, high)

    def seed(self):
        return self.random.randrange(1 << 32)


class Drawn:
    """Examples of hypothesis, which shrinks them."""

    def __init__(self, data):
        self.data = data

    def choice(self, values):
        from hypothesis import strategies

        return self.data.draw(strategies.sampled_from(list(values)))

    def integer(self, low, high):
        from hypothesis import strategies

        return self.data.draw(strategies.integers(low, high))

    def seed(self):
        return self.integer(0, (1 << 32) - 1)


def examples(count):
    """Calls a test with `count` sources of examples, after the library."""

    def decorate(test):
        try:
            from hypothesis import HealthCheck, given, settings, strategies
        except ImportError:

            @functools.wraps(test)
            def run(xp):
                for seed in range(count):
                    test(xp, Random(seed))

            run.__signature__ = inspect.Signature([inspect.Parameter("xp", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
            return run

        @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(data=strategies.data())
        def run(xp, data):
            test(xp, Drawn(data))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def some(pick, dtype, length=None):
    """An array with many equal elements, or with all values that the dtype has; floats without NaN and -0."""
    length = pick.choice(LENGTHS) if length is None else length
    rng = np.random.default_rng(pick.seed())
    if dtype == "bool":
        return rng.integers(0, 2, length).astype(bool)
    if pick.choice([True, False]):
        low = 0 if dtype.startswith("u") else -5
        return rng.integers(low, 6, length).astype(dtype) + np.zeros(1, dtype)
    if dtype.startswith(("i", "u")):
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, length, dtype, endpoint=True)
    return (rng.standard_normal(length) * 1000).astype(dtype)


def same(found, expected):
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
