#!/usr/bin/env python3
"""PyTorch or CuPy as a peer of the primitives: `gpu-benches primitives --peer benches/peers/torch_cupy.py`.

Measures PyTorch if it is installed, else CuPy; PEER_LIBRARY=torch or cupy chooses. Speaks the line protocol of src/peers.rs.
Times as our own rows are timed (src/measure.rs): "call" is one call on an idle device between two events, "queued" one of
several calls in a row behind a wait on the device. PyTorch has signed integers, so its 32-bit keys are signed: the same work.
What a row computes is checked with a small input, on the host; the time of a large one is then taken on trust.
"""

import bisect
import collections
import itertools
import os
import random
import sys

WARM_UPS, RUNS, QUEUED_RUNS = 3, 15, 5
SMALL = 4096


class Torch:
    """PyTorch on the current GPU."""

    def __init__(self):
        import torch

        self.torch = torch
        if not torch.cuda.is_available():
            raise RuntimeError("torch finds no GPU")
        self.name = f"torch {torch.__version__}"
        self.device = "cuda"

    def array(self, numbers, kind):
        return self.torch.tensor(numbers, dtype=getattr(self.torch, kind), device=self.device)

    def random(self, n, kind, low, high):
        return self.torch.randint(low, high, (n,), dtype=getattr(self.torch, kind), device=self.device)

    def ascending(self, n, kind="int32"):
        return self.torch.arange(n, dtype=getattr(self.torch, kind), device=self.device)

    def empty(self, array):
        return self.torch.empty_like(array)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def record(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def is_done(self, event):
        return event.query()

    def milliseconds(self, start, end):
        end.synchronize()
        return start.elapsed_time(end)

    def block(self):
        self.torch.cuda._sleep(10_000_000)  # cycles

    def rows(self):
        torch = self.torch
        return {
            "copy": lambda data: lambda: data["out"].copy_(data["x"]),
            "fill": lambda data: lambda: data["out"].fill_(7),
            "reduce_sum_u32": lambda data: lambda: torch.sum(data["x"], dtype=torch.int32),
            "sort_keys_u32": lambda data: lambda: torch.sort(data["x"])[0],
            "sort_pairs_u32_u32": lambda data: lambda: torch.sort(data["x"], stable=True),
            "sort_keys_u64": lambda data: lambda: torch.sort(data["wide"])[0],
            "argsort_u32": lambda data: lambda: torch.argsort(data["x"], stable=True),
            "distinct_u32_65536": lambda data: lambda: torch.unique(data["few"]),
            "distinct_counts_hashed_u32_65536": lambda data: lambda: torch.unique(data["few"], return_counts=True),
            "min_max_u32": lambda data: lambda: torch.aminmax(data["x"]),
            "bits_positions_50pct": lambda data: lambda: torch.nonzero(data["flags"]).view(-1),
            "sort_rows_of_32768_f32": lambda data: lambda: torch.sort(rows_of(data["floats"], 32_768))[0],
            "sort_rows_of_131072_f32": lambda data: lambda: torch.sort(rows_of(data["floats"], 131_072))[0],
            "top_64_of_rows_of_32768_f32": lambda data: lambda: torch.topk(rows_of(data["floats"], 32_768), 64),
            "top_64_of_rows_of_131072_f32": lambda data: lambda: torch.topk(rows_of(data["floats"], 131_072), 64),
            "sum_rows_of_1024_u32": lambda data: lambda: torch.sum(rows_of(data["x"], 1024), 1, dtype=torch.int32),
            "sum_strided_rows_of_1000_u32": lambda data: lambda: torch.sum(
                rows_of(data["x"], 1024)[:, :1000], 1, dtype=torch.int32
            ),
            "running_sum_rows_of_1024_u32": lambda data: lambda: torch.cumsum(
                rows_of(data["x"], 1024), 1, dtype=torch.int32
            ),
            "top_k_100_u32": lambda data: lambda: torch.topk(data["x"], 100),
            "top_8_of_rows_of_1024": lambda data: lambda: torch.topk(data["x"].view(-1, 1024), 8),
            "kth_u32": lambda data: lambda: torch.kthvalue(data["x"], (len(data["x"]) - 1) // 2 + 1)[0],
            "select_flagged_50pct": lambda data: lambda: torch.masked_select(data["x"], data["flags"]),
            "gather_u32": lambda data: lambda: torch.index_select(data["x"], 0, data["positions"]),
            "lower_bound_random": lambda data: lambda: torch.searchsorted(data["sorted"], data["needles"], out_int32=True),
            "unique_u32_runs_of_8": lambda data: lambda: torch.unique_consecutive(data["runs"]),
            "run_length_encode_u32_runs_of_8": lambda data: lambda: torch.unique_consecutive(data["runs"], return_counts=True),
        }

    def sorted(self, array):
        return self.torch.sort(array)[0]

    def floats(self, array):
        return array.to(self.torch.float32)

    def divided(self, array, by):
        return self.torch.div(array, by, rounding_mode="floor")


class CuPy:
    """CuPy on the current GPU."""

    def __init__(self):
        import cupy

        self.cupy = cupy
        self.name = f"cupy {cupy.__version__}"
        wait = "extern \"C\" __global__ void wait(long long cycles) { long long start = clock64(); while (clock64() - start < cycles); }"
        self.wait = cupy.RawKernel(wait, "wait")

    def array(self, numbers, kind):
        return self.cupy.asarray(numbers, dtype=kind)

    def random(self, n, kind, low, high):
        return self.cupy.random.randint(low, high, n, dtype=kind)

    def ascending(self, n, kind="int32"):
        return self.cupy.arange(n, dtype=kind)

    def empty(self, array):
        return self.cupy.empty_like(array)

    def synchronize(self):
        self.cupy.cuda.Stream.null.synchronize()

    def record(self):
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def is_done(self, event):
        return event.done

    def milliseconds(self, start, end):
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end)

    def block(self):
        self.wait((1,), (1,), (10_000_000,))

    def rows(self):
        cupy = self.cupy

        def fill(data):
            return lambda: data["out"].fill(7) or data["out"]

        def copy(data):
            return lambda: cupy.copyto(data["out"], data["x"]) or data["out"]

        return {
            "copy": copy,
            "fill": fill,
            "reduce_sum_u32": lambda data: lambda: cupy.sum(data["x"], dtype="int32"),
            "sort_keys_u32": lambda data: lambda: cupy.sort(data["x"]),
            "sort_keys_u64": lambda data: lambda: cupy.sort(data["wide"]),
            "select_flagged_50pct": lambda data: lambda: data["x"][data["flags"]],
            "gather_u32": lambda data: lambda: cupy.take(data["x"], data["positions"]),
            "lower_bound_random": lambda data: lambda: cupy.searchsorted(data["sorted"], data["needles"]),
        }

    def sorted(self, array):
        return self.cupy.sort(array)

    def floats(self, array):
        return array.astype("float32")

    def divided(self, array, by):
        return array // by


def rows_of(array, length):
    """The array as rows of a length, or as one row if it is shorter."""
    return array.view(-1, min(length, len(array)))


def to_list(result):
    """The numbers of a result on the host; of several arrays, in a list of lists."""
    if isinstance(result, (tuple, list)):
        return [part.tolist() for part in result]
    return result.tolist()


def wrapped(number):
    """A sum as a signed number of 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def parts(numbers, length):
    """The rows of a length."""
    return [numbers[start : start + length] for start in range(0, len(numbers), length)]


def counts(numbers):
    """The different numbers in order, and how often each occurs."""
    found = sorted(collections.Counter(numbers).items())
    return [list(part) for part in zip(*found)]


def best(numbers, k):
    """The k largest, with their positions."""
    return sorted(((number, -place) for place, number in enumerate(numbers)), reverse=True)[:k]


# What a row finds in the small input, computed in plain Python. The positions of equal keys are not compared.
EXPECTED = {
    "copy": lambda host: host["x"],
    "fill": lambda host: [7] * len(host["x"]),
    "reduce_sum_u32": lambda host: wrapped(sum(host["x"])),
    "sort_keys_u32": lambda host: sorted(host["x"]),
    "sort_pairs_u32_u32": lambda host: [list(part) for part in zip(*sorted(zip(host["x"], range(len(host["x"])))))],
    "sort_keys_u64": lambda host: sorted(host["wide"]),
    "argsort_u32": lambda host: sorted(range(len(host["x"])), key=lambda place: host["x"][place]),
    "distinct_u32_65536": lambda host: sorted(set(host["few"])),
    "distinct_counts_hashed_u32_65536": lambda host: counts(host["few"]),
    "min_max_u32": lambda host: [min(host["x"]), max(host["x"])],
    "bits_positions_50pct": lambda host: [place for place, flag in enumerate(host["flags"]) if flag],
    "sort_rows_of_32768_f32": lambda host: [sorted(host["floats"])],
    "sort_rows_of_131072_f32": lambda host: [sorted(host["floats"])],
    "top_64_of_rows_of_32768_f32": lambda host: [[number for number, _ in best(host["floats"], 64)]],
    "top_64_of_rows_of_131072_f32": lambda host: [[number for number, _ in best(host["floats"], 64)]],
    "sum_rows_of_1024_u32": lambda host: [wrapped(sum(row)) for row in parts(host["x"], 1024)],
    "sum_strided_rows_of_1000_u32": lambda host: [wrapped(sum(row[:1000])) for row in parts(host["x"], 1024)],
    "running_sum_rows_of_1024_u32": lambda host: [
        [wrapped(total) for total in itertools.accumulate(row)] for row in parts(host["x"], 1024)
    ],
    "top_k_100_u32": lambda host: [number for number, _ in best(host["x"], 100)],
    "top_8_of_rows_of_1024": lambda host: [
        [number for number, _ in best(row, 8)] for row in parts(host["x"], 1024)
    ],
    "kth_u32": lambda host: sorted(host["x"])[(len(host["x"]) - 1) // 2],
    "select_flagged_50pct": lambda host: [number for number, flag in zip(host["x"], host["flags"]) if flag],
    "gather_u32": lambda host: [host["x"][position] for position in host["positions"]],
    "lower_bound_random": lambda host: [bisect.bisect_left(host["sorted"], needle) for needle in host["needles"]],
    "unique_u32_runs_of_8": lambda host: sorted(set(host["runs"])),
    "run_length_encode_u32_runs_of_8": lambda host: [sorted(set(host["runs"])), [8] * (len(host["runs"]) // 8)],
}
# Of these results only the keys are compared.
KEYS_ALONE = {
    "top_k_100_u32",
    "top_8_of_rows_of_1024",
    "top_64_of_rows_of_32768_f32",
    "top_64_of_rows_of_131072_f32",
}


def small(library):
    """The same small input on the host and on the device."""
    numbers = random.Random(7)
    host = {
        "x": [numbers.randrange(-(2**31), 2**31) for _ in range(SMALL)],
        "wide": [numbers.randrange(-(2**63), 2**63) for _ in range(SMALL)],
        "needles": [numbers.randrange(-(2**31), 2**31) for _ in range(SMALL)],
        "positions": [numbers.randrange(SMALL) for _ in range(SMALL)],
        "flags": [numbers.random() < 0.5 for _ in range(SMALL)],
        "runs": [index // 8 for index in range(SMALL)],
        "few": [numbers.randrange(100) * 65_521 for _ in range(SMALL)],
        "floats": [float(numbers.randrange(-(2**23), 2**23)) for _ in range(SMALL)],
    }
    host["sorted"] = sorted(host["x"])
    kinds = {"wide": "int64", "flags": "bool", "floats": "float32"}
    data = {name: library.array(values, kinds.get(name, "int32")) for name, values in host.items()}
    data["out"] = library.empty(data["x"])
    return host, data


def large(library, row, n):
    """The input of a row: only what it needs."""
    data = {}
    if row == "sort_keys_u64":
        data["wide"] = library.random(n, "int64", -(2**63), 2**63 - 1)
        return data
    if row.endswith("runs_of_8"):
        data["runs"] = library.divided(library.ascending(n), 8)
        return data
    if row.endswith("_f32"):
        data["floats"] = library.floats(library.random(n, "int32", -(2**23), 2**23))
        return data
    if row.endswith("_65536"):
        data["few"] = library.random(n, "int32", 0, 2**16) * 32_749
        return data
    data["x"] = library.random(n, "int32", -(2**31), 2**31 - 1)
    if row in ("copy", "fill"):
        data["out"] = library.empty(data["x"])
    if row in ("select_flagged_50pct", "bits_positions_50pct"):
        data["flags"] = data["x"] >= 0
    if row == "gather_u32":
        data["positions"] = library.random(n, "int32", 0, n)
    if row == "lower_bound_random":
        data["sorted"] = library.sorted(data["x"])
        data["needles"] = library.random(n, "int32", -(2**31), 2**31 - 1)
    return data


def check(library, row):
    host, data = small(library)
    found = to_list(library.rows()[row](data)())
    found = found[0] if row in KEYS_ALONE else found
    if found != EXPECTED[row](host):
        sys.exit(f"wrong result: {row}")


def median(times):
    return sorted(times)[len(times) // 2]


def time_call(library, operation):
    times = []
    for run in range(WARM_UPS + RUNS):
        library.synchronize()
        start = library.record()
        operation()
        end = library.record()
        time = library.milliseconds(start, end)
        if run >= WARM_UPS:
            times.append(time)
    return times


def time_queued(library, operation, call):
    calls = int(max(2, min(8, 20 / max(call, 1e-6))))
    times = []
    for _ in range(QUEUED_RUNS):
        library.block()
        operation()  # fills the caches
        start = library.record()
        for _ in range(calls):
            operation()
        end = library.record()
        # If the device has already begun, it has waited for the host, or the calls wait themselves.
        has_waited = not library.is_done(start)
        time = library.milliseconds(start, end) / calls
        if not has_waited:
            return None
        times.append(time)
    return median(times)


def measure(library, row, n):
    operation = library.rows()[row](large(library, row, n))
    times = [max(time, 1e-6) for time in time_call(library, operation)]
    fields = [row, "", str(n)] + [f"{time:.6f}" for time in (median(times), min(times), max(times))]
    queued = time_queued(library, operation, median(times))
    if queued is not None:
        fields.append(f"queued={max(queued, 1e-6):.6f}")
    print("\t".join(fields), flush=True)


def open_library():
    wanted = os.environ.get("PEER_LIBRARY")
    known = {"torch": Torch, "cupy": CuPy}
    if wanted and wanted not in known:
        sys.exit(f"PEER_LIBRARY={wanted}: use torch or cupy")
    problems = []
    for name in [wanted] if wanted else known:
        try:
            return known[name]()
        except (ImportError, RuntimeError) as problem:
            problems.append(f"{name}: {problem}")
    sys.exit("; ".join(problems))


def main():
    library = open_library()
    print(f"# name: {library.name}")
    if sys.argv[1:] == ["rows"]:
        print("\n".join(library.rows()))
        return
    checked = set()
    for line in sys.stdin:
        if line.startswith("#") or not line.strip():
            continue
        _, row, _, elements, _ = line.rstrip("\n").split("\t")
        n = int(elements)
        if row not in library.rows() or n < 1024 or n % 1024 or n >= 2**31:
            continue
        print(f"# measuring {row} of {n}", flush=True)
        if row not in checked:
            check(library, row)
            checked.add(row)
        measure(library, row, n)


if __name__ == "__main__":
    main()
