"""Every function against NumPy."""

import numpy as np
from raises import raises
from support import DTYPES, LENGTHS, examples, same, some

import gpu_primitives as gp


def usable(xp, pick, dtypes=DTYPES):
    return pick.choice([dtype for dtype in dtypes if xp.can(dtype)])


@examples(25)
def test_sort_and_argsort(xp, pick):
    x = some(pick, usable(xp, pick))
    descending = pick.choice([False, True])
    order = np.argsort(x, kind="stable")
    if descending:  # equal elements keep their order
        order = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    a = xp.array(x)
    same(xp.numpy(gp.argsort(a, descending=descending)), order)
    same(xp.numpy(gp.sort(a, descending=descending)), x[order])
    same(xp.numpy(a), x)


def test_results_go_to_out(xp):
    x = np.array([3, 1, 2])
    a, out = xp.array(x), xp.array(np.zeros(3, "int64"))
    assert gp.sort(a, out=out) is out
    same(xp.numpy(out), np.array([1, 2, 3]))
    short = xp.array(np.zeros(3, "int32"))
    gp.argsort(a, out=short)
    same(xp.numpy(short), np.array([1, 2, 0], "int32"))
    values, positions = xp.array(np.zeros(2, "int64")), xp.array(np.zeros(2, "int64"))
    assert gp.topk(a, 2, out=(values, positions))[0] is values
    same(xp.numpy(values), np.array([3, 2]))
    with raises(gp.DTypeError, "out has the dtype int32"):
        gp.sort(a, out=short)
    with raises(gp.ArgumentError, "out has the shape"):
        gp.sort(a, out=values)


@examples(10)
def test_sort_of_rows(xp, pick):
    rows, length = pick.choice([0, 1, 5]), pick.choice([0, 1, 40])
    x = some(pick, usable(xp, pick), rows * length).reshape(rows, length)
    same(xp.numpy(gp.sort(xp.array(x))), np.sort(x))


@examples(10)
def test_segmented_sort(xp, pick):
    x = some(pick, usable(xp, pick))
    cuts = np.unique(np.array([0, len(x) // 3, len(x) // 2, len(x)]))
    cuts = cuts.astype(pick.choice(["int32", "int64"]))
    expected = x.copy()
    for start, end in zip(cuts, cuts[1:]):
        expected[start:end] = np.sort(x[start:end])
    same(xp.numpy(gp.segmented_sort(xp.array(x), xp.array(cuts))), expected)


def test_offsets_are_checked(xp):
    x = xp.array(np.arange(5))
    for offsets in ([0, 6], [3, 1], [0, 1 << 40], [-1, 5]):
        out = xp.array(np.full(5, 7))
        with raises(gp.ArgumentError, "offset"):
            gp.segmented_sort(x, xp.array(np.array(offsets)), out=out)
        same(xp.numpy(out), np.full(5, 7))
    for dtype in ("int32", "int64"):
        for call in (gp.segmented_sort, gp.segmented_sum):
            with raises(gp.ArgumentError, "an offset is -1"):
                call(x, xp.array(np.array([-1, 5], dtype)))


def test_elements_of_no_segment_stay(xp):
    x = np.arange(10, 0, -1)
    for offsets, expected in (([2, 5], [10, 9, 6, 7, 8, 5, 4, 3, 2, 1]), ([4], x), ([10, 10], x), ([0, 0], x)):
        same(xp.numpy(gp.segmented_sort(xp.array(x), xp.array(np.array(offsets)))), np.array(expected))


def test_offsets_beyond_the_array_count_as_its_end(xp):
    x = xp.array(np.arange(5))
    for offsets in ([0, 3, 5], [0, 3, 1 << 40]):
        same(xp.numpy(gp.segmented_sum(x, xp.array(np.array(offsets)))), np.array([3, 7]))


def test_positions_that_do_not_fit_in_int32():
    x = np.zeros((1 << 31) + 8, "int8")
    with raises(gp.ArgumentError, "int32"):
        gp.searchsorted(x, np.array([0], "int8"), out=np.zeros(1, "int32"))


@examples(20)
def test_topk(xp, pick):
    x = some(pick, usable(xp, pick))
    k = pick.integer(0, min(len(x), 50))
    largest = pick.choice([True, False])
    order = np.argsort(x, kind="stable")
    if largest:
        order = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    values, positions = gp.topk(xp.array(x), k, largest=largest)
    same(xp.numpy(positions), order[:k])
    same(xp.numpy(values), x[order[:k]])


@examples(8)
def test_topk_of_rows(xp, pick):
    rows, length = pick.integer(0, 4), pick.choice([1, 7, 300])
    x = some(pick, usable(xp, pick), rows * length).reshape(rows, length)
    k = pick.integer(0, min(length, 9))
    values, positions = (xp.numpy(result) for result in gp.topk(xp.array(x), k))
    assert values.shape == positions.shape == (rows, k)
    same(values, np.sort(x)[:, ::-1][:, :k])
    same(np.take_along_axis(x, positions, 1), values)


@examples(15)
def test_order_statistics(xp, pick):
    x = some(pick, usable(xp, pick), pick.choice([1, 2, 33, 1000]))
    k = pick.integer(1, len(x))
    value, position = gp.kthvalue(xp.array(x), k)
    assert xp.numpy(value) == np.sort(x)[k - 1] and xp.numpy(position) == np.argsort(x, kind="stable")[k - 1]
    assert xp.numpy(gp.median(xp.array(x))) == np.sort(x)[(len(x) - 1) // 2]
    fractions = [0.0, 0.25, 0.5, 1.0]
    expected = np.sort(x)[[int(part * (len(x) - 1)) for part in fractions]]
    same(xp.numpy(gp.quantile(xp.array(x), fractions)), expected)
    for q in (0.25, np.float32(0.25), np.array(0.25)):
        assert xp.numpy(gp.quantile(xp.array(x), q)) == expected[1]


def test_order_statistics_of_rows(xp):
    x = np.random.default_rng(0).integers(-9, 9, (3, 10)).astype("int32")
    ordered = np.sort(x)
    same(xp.numpy(gp.kthvalue(xp.array(x), 4)[0]), ordered[:, 3])
    same(xp.numpy(gp.median(xp.array(x))), ordered[:, 4])
    same(np.ascontiguousarray(xp.numpy(gp.quantile(xp.array(x), [0.0, 1.0]))), np.ascontiguousarray(ordered[:, [0, 9]].T))


@examples(15)
def test_unique(xp, pick):
    x = some(pick, usable(xp, pick))
    found = gp.unique(xp.array(x), return_inverse=True, return_counts=True)
    for result, expected in zip(found, np.unique(x, return_inverse=True, return_counts=True)):
        same(xp.numpy(result), expected)
    same(xp.numpy(gp.unique(xp.array(x))), np.unique(x))


@examples(15)
def test_searchsorted_and_isin(xp, pick):
    dtype = usable(xp, pick)
    x, v = some(pick, dtype), some(pick, dtype)
    for side in ("left", "right"):
        found = gp.searchsorted(xp.array(np.sort(x)), xp.array(v), side=side)
        same(xp.numpy(found), np.searchsorted(np.sort(x), v, side=side))
    same(xp.numpy(gp.isin(xp.array(v), xp.array(x))), np.isin(v, x))
    same(xp.numpy(gp.isin(xp.array(v), xp.array(x), invert=True)), np.isin(v, x, invert=True))


@examples(12)
def test_merges(xp, pick):
    dtype = usable(xp, pick)
    parts = [np.sort(some(pick, dtype)) for _ in range(pick.integer(1, 5))]
    found = gp.merge_k([xp.array(part) for part in parts])
    same(xp.numpy(found), np.sort(np.concatenate(parts)))
    found = gp.merge(xp.array(parts[0]), xp.array(parts[-1]))
    same(xp.numpy(found), np.sort(np.concatenate([parts[0], parts[-1]])))


@examples(12)
def test_sums(xp, pick):
    dtype = usable(xp, pick, [dtype for dtype in DTYPES if dtype.startswith(("i", "u"))])
    x = some(pick, dtype)
    wide = "uint64" if dtype.startswith("u") else "int64"
    if not xp.can(wide):
        return
    same(xp.numpy(gp.cumsum(xp.array(x))), np.cumsum(x, dtype=wide))
    cuts = np.array([0, len(x) // 3, len(x) // 3, len(x)])
    expected = np.array([x[a:b].sum(dtype=wide) for a, b in zip(cuts, cuts[1:])], wide)
    same(xp.numpy(gp.segmented_sum(xp.array(x), xp.array(cuts))), expected)


def test_sums_of_floats(xp):
    x = np.linspace(0, 1, 1001)
    for dtype, error in (("float16", 1e-2), ("float32", 1e-5), ("float64", 1e-12)):
        found = xp.numpy(gp.cumsum(xp.array(x.astype(dtype))))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.cumsum(x), rtol=error, atol=error)


@examples(10)
def test_reduce_by_key(xp, pick):
    keys = np.sort(some(pick, pick.choice(["int32", "int64", "float32"])))
    values = some(pick, pick.choice(["int32", "int64"]), len(keys))
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))[: len(keys)]
    for op, reduce in (("sum", np.add), ("max", np.maximum), ("min", np.minimum)):
        found, combined = gp.reduce_by_key(xp.array(keys), xp.array(values), op)
        same(xp.numpy(found), keys[starts])
        expected = reduce.reduceat(values, starts).astype(values.dtype) if len(keys) else values
        same(xp.numpy(combined), expected)


def test_histogram(xp):
    for dtype in ("int32", "float64"):
        x = np.random.default_rng(1).integers(0, 17, 1000).astype(dtype)
        counts, edges = gp.histogram(xp.array(x), bins=16, range=(0, 16))
        expected, expected_edges = np.histogram(x, bins=16, range=(0, 16))
        same(xp.numpy(counts), expected)
        np.testing.assert_allclose(xp.numpy(edges), expected_edges)
        same(xp.numpy(gp.histogram(xp.array(x), bins=4)[0]), np.histogram(x, bins=4)[0])
    assert xp.numpy(gp.histogram(xp.array(np.zeros(0)))[0]).sum() == 0
    with raises(gp.ArgumentError, "float32"):
        gp.histogram(xp.array(np.zeros(3, "float32")), range=(0, 1e300))
    for range in ((1, 0), (0, float("inf")), (float("nan"), 1)):
        with raises(gp.ArgumentError, "range"):
            gp.histogram(xp.array(np.zeros(3)), range=range)


@examples(15)
def test_histogram_has_the_edges_of_numpy(xp, pick):
    bins = pick.choice([1, 3, 10, 49, 1000])
    low, high = pick.choice([(0, 1), (-1, 1), (0.1, 0.7), (-3, 1e-3), (0, 1e-310)])
    edges = np.histogram_bin_edges(np.zeros(0), bins, (low, high))
    x = np.concatenate([edges, np.nextafter(edges, -9), np.nextafter(edges, 9), [0.3, 0.0, -0.0]])
    counts, found = gp.histogram(xp.array(x), bins, (low, high))
    same(xp.numpy(found), edges)
    same(xp.numpy(counts), np.histogram(x, edges)[0])
    short = x.astype("float32")
    if high < 1e-300:
        with raises(gp.ArgumentError, "too many bins"):
            gp.histogram(xp.array(short), bins, (low, high))
        return
    counts, found = (xp.numpy(part) for part in gp.histogram(xp.array(short), bins, (low, high)))
    same(found, edges.astype("float32"))
    same(counts, np.histogram(short, found)[0])


@examples(8)
def test_bincount(xp, pick):
    dtype = usable(xp, pick, ["uint8", "int16", "int32", "int64"])
    x = np.abs(some(pick, "int8").astype("int16")).astype(dtype)
    same(xp.numpy(gp.bincount(xp.array(x), minlength=20)), np.bincount(x, minlength=20))
    with raises(gp.ArgumentError, "from 0 on"):
        gp.bincount(xp.array(np.array([3, -1])))


@examples(15)
def test_selections(xp, pick):
    x = some(pick, usable(xp, pick))
    mask = some(pick, "bool", len(x))
    same(xp.numpy(gp.select(xp.array(x), xp.array(mask))), x[mask])
    found, count = gp.partition(xp.array(x), xp.array(mask))
    assert count == mask.sum()
    same(xp.numpy(found), np.concatenate([x[mask], x[~mask]]))
    same(xp.numpy(gp.nonzero(xp.array(x))), np.flatnonzero(x))
    same(xp.numpy(gp.nonzero(xp.array(mask))), np.flatnonzero(mask))


def test_zeros_and_nans_are_compared_by_their_bits(xp):
    x = xp.array(np.array([np.nan, -0.0, 0.0, np.nan]))
    assert len(xp.numpy(gp.unique(x))) == 3 and len(xp.numpy(gp.intersect1d(x, x))) == 3
    test = xp.array(np.array([0.0, np.nan]))
    assert xp.numpy(gp.isin(x, test)).tolist() == [True, False, True, True]
    assert xp.numpy(gp.searchsorted(gp.sort(x), test)).tolist() == [1, 2]
    keys, _ = gp.reduce_by_key(gp.sort(x), xp.array(np.arange(4)))
    assert len(xp.numpy(keys)) == 3
    assert np.isnan(xp.numpy(gp.median(xp.array(np.array([np.nan, np.nan, 1.0]))))) and xp.numpy(gp.median(test)) == 0


def test_zeros_have_signs(xp):
    x = np.array([0.0, -0.0, 1.0], "float32")
    same(xp.numpy(gp.nonzero(xp.array(x))), np.array([2]))
    found = xp.numpy(gp.sort(xp.array(np.array([np.nan, 0.0, -0.0, -1.0]))))
    assert np.signbit(found).tolist() == [True, True, False, False] and np.isnan(found[3])


@examples(10)
def test_multisplit(xp, pick):
    x = some(pick, usable(xp, pick))
    buckets = pick.choice([1, 2, 7, 256])
    ids = np.random.default_rng(pick.seed()).integers(0, buckets, len(x)).astype(pick.choice(["int32", "int64"]))
    found, offsets = gp.multisplit(xp.array(x), xp.array(ids), buckets)
    same(xp.numpy(found), x[np.argsort(ids, kind="stable")])
    same(xp.numpy(offsets), np.searchsorted(np.sort(ids), np.arange(buckets + 1)))


@examples(12)
def test_sets(xp, pick):
    dtype = usable(xp, pick)
    a, b = some(pick, dtype), some(pick, dtype)
    for ours, numpys in ((gp.intersect1d, np.intersect1d), (gp.union1d, np.union1d), (gp.setdiff1d, np.setdiff1d)):
        same(xp.numpy(ours(xp.array(a), xp.array(b))), numpys(a, b))


@examples(8)
def test_sort_by_columns(xp, pick):
    length = pick.choice([0, 1, 500])
    a, b, c = (some(pick, usable(xp, pick), length) for _ in range(3))
    found = gp.sort_by_columns([xp.array(a), xp.array(b), xp.array(c)])
    same(xp.numpy(found), np.lexsort((c, b, a)))


def test_same_input_gives_the_same_bytes(xp):
    x = np.random.default_rng(2).standard_normal(5000).astype("float32")
    results = {xp.numpy(gp.cumsum(xp.array(x))).tobytes() for _ in range(3)}
    assert len(results) == 1
    for length in LENGTHS:
        assert len(xp.numpy(gp.sort(xp.array(x[:length])))) == length
