"""Measures this package beside torch and CuPy, through the calls from Python, on the first GPU. Prints a table.

    python bench.py            # all rows
    python bench.py topk       # those whose name has this text
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

# The installed package, not the sources beside this file: these have no compiled part.
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]

import torch

import gpu_primitives as gp

try:
    import cupy
except ImportError:
    cupy = None

GENERATOR = torch.Generator(device="cuda").manual_seed(1)


def numbers(count, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.rand(count, generator=GENERATOR, device="cuda", dtype=dtype)
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, (count,), generator=GENERATOR, device="cuda", dtype=dtype)


def seconds(call, budget=0.5):
    """The median of up to 15 calls, each with the wait for its work."""
    call()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + budget
    while len(times) < 15 and (len(times) < 3 or time.perf_counter() < end):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if times[-1] > budget:
            break
    return statistics.median(times)


def host_seconds(call, count=300):
    """The time until a call returns, while the GPU has little to do."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
        torch.cuda.synchronize()
    return statistics.median(times)


def of_cupy(x):
    return cupy.from_dlpack(x) if cupy else None


def rows():
    """Name, elements (0: the time itself), the measure, calls of ours, torch, and CuPy, and the bar."""
    sizes = (20, 24, 27)
    for size in sizes:
        x = numbers(1 << size)
        yield f"topk(100), 2^{size} float32", 1 << size, seconds, lambda: gp.topk(x, 100), lambda: torch.topk(x, 100), None, 5
    x = numbers(64 * 131072).reshape(64, 131072)
    yield "topk(64) of 64 x 131,072", 0, seconds, lambda: gp.topk(x, 64), lambda: torch.topk(x, 64), None, 182 / 30
    x = numbers(1 << 27)
    yield "kthvalue, 2^27 float32", 0, seconds, lambda: gp.kthvalue(x, 1 << 26), lambda: torch.kthvalue(x, 1 << 26), None, 883
    for size in sizes:
        x = numbers(1 << size, torch.int32)
        c = of_cupy(x)
        yield f"argsort, 2^{size} int32", 1 << size, seconds, lambda: gp.argsort(x), lambda: torch.argsort(x, stable=True), (
            lambda: cupy.argsort(c)
        ), 1.5
    x = numbers(1 << 27, torch.int32)
    c = of_cupy(x)
    yield "unique, 2^27 int32", 1 << 27, seconds, lambda: gp.unique(x), lambda: torch.unique(x), lambda: cupy.unique(c), 1.1
    mask = numbers(1 << 27) < 0.5
    d = of_cupy(mask.view(torch.uint8))
    yield "masked_select, 2^27 int32, half", 1 << 27, seconds, lambda: gp.select(x, mask), lambda: torch.masked_select(x, mask), (
        lambda: c[d.view(cupy.bool_)]
    ), 3
    yield "nonzero, 2^27 bool, half", 1 << 27, seconds, lambda: gp.nonzero(mask), lambda: torch.nonzero(mask), (
        lambda: cupy.flatnonzero(d)
    ), 2
    del mask, d
    for size, bar in ((24, 2), (27, 4)):
        sorted_keys, keys = torch.sort(numbers(1 << size, torch.int32)).values, numbers(1 << size, torch.int32)
        a, b = of_cupy(sorted_keys), of_cupy(keys)
        yield f"searchsorted, random, 2^{size} int32", 1 << size, seconds, lambda: gp.searchsorted(sorted_keys, keys), (
            lambda: torch.searchsorted(sorted_keys, keys)
        ), lambda: cupy.searchsorted(a, b), bar
    small = numbers(1000)
    yield "host time of sort, 1000 float32", 0, host_seconds, lambda: gp.sort(small), lambda: torch.sort(small), None, 0.5
    yield "host time of topk(10), 1000 float32", 0, host_seconds, lambda: gp.topk(small, 10), lambda: torch.topk(small, 10), None, 0.5
    keys = torch.unique(numbers(1 << 24, torch.int32))
    values = torch.arange(len(keys), device="cuda", dtype=torch.int32)
    asked = numbers(1 << 24, torch.int32)
    lsm = gp.Lsm("int32", "int32", device="cuda")
    lsm.insert(keys, values)

    def with_torch():
        at = torch.searchsorted(keys, asked).clamp_(max=len(keys) - 1)
        found = keys[at] == asked
        return torch.where(found, values[at], 0), found

    yield "Lsm.lookup of 2^24 int32 in 2^24", 1 << 24, seconds, lambda: lsm.lookup(asked), with_torch, None, 2


def shown(elements, time_of):
    if time_of is None:
        return "-"
    return f"{elements / time_of / 1e9:.1f} G/s" if elements else f"{time_of * 1e6:,.1f} us"


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CuPy {cupy.__version__ if cupy else 'missing'}\n")
    print("| call | gpu_primitives | torch | CuPy | to torch | bar |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name, elements, measure, ours, torchs, cupys, bar in rows():
        if wanted not in name:
            continue
        try:
            times = [measure(ours), measure(torchs), measure(cupys) if cupys and cupy else None]
            cells = [shown(elements, each) for each in times]
            print(f"| {name} | {cells[0]} | {cells[1]} | {cells[2]} | {times[1] / times[0]:.2f} | {bar:.2f} |", flush=True)
        except Exception as error:  # noqa: BLE001 - the other rows count
            print(f"| {name} | {type(error).__name__}: {error} | | | | |", flush=True)
    print("\n\"to torch\" is torch's time by ours; the bar is what it must be at least.")


if __name__ == "__main__":
    main()
