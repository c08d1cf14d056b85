"""As much of PyTorch's interface as `peers/torch_cupy.py` calls, on lists: for a test of the program without a GPU."""

import functools
import itertools
import operator
import time

__version__ = "stub"
int32, int64, float32, bool = "int32", "int64", "float32", "bool"


class Tensor:
    def __init__(self, numbers):
        self.numbers = list(numbers) if isinstance(numbers, (list, range)) else numbers

    def tolist(self):
        return self.numbers

    def __len__(self):
        return len(self.numbers)

    def __ge__(self, other):
        return Tensor([number >= other for number in self.numbers])

    def copy_(self, other):
        self.numbers = list(other.numbers)
        return self

    def fill_(self, number):
        self.numbers = [number] * len(self.numbers)
        return self

    def __mul__(self, factor):
        return Tensor([number * factor for number in self.numbers])

    def __getitem__(self, places):
        rows, columns = places
        return Tensor([row[columns] for row in self.numbers[rows]])

    def to(self, kind):
        return Tensor([float(number) for number in self.numbers])

    def view(self, _, columns=None):
        if columns is None:
            return Tensor([number for row in self.numbers for number in row])
        return Tensor([self.numbers[start : start + columns] for start in range(0, len(self.numbers), columns)])


def tensor(numbers, dtype, device):
    return Tensor(numbers)


def randint(low, high, shape, dtype, device):
    return Tensor([low + index * 2654435761 % (high - low) for index in range(shape[0])])


def arange(n, dtype, device):
    return Tensor(range(n))


def empty_like(other):
    return Tensor(other.numbers)


def wrapped(number):
    return (number + 2**31) % 2**32 - 2**31


def cumsum(x, dim, dtype):
    return Tensor([[wrapped(total) for total in itertools.accumulate(row)] for row in x.numbers])


def sum(x, dim=0, dtype=int32):
    if dim == 1:
        return Tensor([row[-1] for row in cumsum(x, dim, dtype).numbers])
    return Tensor(wrapped(functools.reduce(operator.add, x.numbers)))


def aminmax(x):
    return Tensor(min(x.numbers)), Tensor(max(x.numbers))


def nonzero(x):
    return Tensor([[place] for place, number in enumerate(x.numbers) if number])


def unique(x, return_counts=False):
    return unique_consecutive(sort(x)[0], return_counts)


def argsort(x, stable):
    return sort(x, stable)[1]


def sort(x, stable=False):
    if isinstance(x.numbers[0], list):
        rows = [sort(Tensor(row), stable) for row in x.numbers]
        return Tensor([keys.numbers for keys, _ in rows]), Tensor([places.numbers for _, places in rows])
    order = sorted(range(len(x)), key=x.numbers.__getitem__)
    return Tensor([x.numbers[place] for place in order]), Tensor(order)


def topk(x, k):
    if isinstance(x.numbers[0], list):
        rows = [topk(Tensor(row), k) for row in x.numbers]
        return Tensor([keys.numbers for keys, _ in rows]), Tensor([places.numbers for _, places in rows])
    keys, order = sort(x)
    return Tensor(keys.numbers[: -k - 1 : -1]), Tensor(order.numbers[: -k - 1 : -1])


def kthvalue(x, k):
    keys, order = sort(x)
    return Tensor(keys.numbers[k - 1]), Tensor(order.numbers[k - 1])


def masked_select(x, flags):
    return Tensor(list(itertools.compress(x.numbers, flags.numbers)))


def index_select(x, _, positions):
    return Tensor([x.numbers[position] for position in positions.numbers])


def searchsorted(hay, needles, out_int32):
    from bisect import bisect_left

    return Tensor([bisect_left(hay.numbers, needle) for needle in needles.numbers])


def unique_consecutive(x, return_counts=False):
    runs = [(key, len(list(run))) for key, run in itertools.groupby(x.numbers)]
    keys = Tensor([key for key, _ in runs])
    return (keys, Tensor([count for _, count in runs])) if return_counts else keys


def div(x, by, rounding_mode):
    return Tensor([number // by for number in x.numbers])


class cuda:
    is_queueing = False

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def synchronize():
        cuda.is_queueing = False

    @staticmethod
    def _sleep(_):
        cuda.is_queueing = True

    class Event:
        def __init__(self, enable_timing):
            self.time = None

        def record(self):
            self.time = time.perf_counter()

        def query(self):
            return not cuda.is_queueing

        def synchronize(self):
            cuda.is_queueing = False

        def elapsed_time(self, end):
            return (end.time - self.time) * 1e3
