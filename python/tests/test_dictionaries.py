"""The dictionaries against `dict`, and what else they promise."""

import copy
import pickle
import socket
import threading

import numpy as np
from raises import raises
from support import examples, same

import gpu_primitives as gp

KEYS = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
ONE_VALUE = [gp.Lsm, gp.SortedArray, gp.HashMap]
ORDERED = [gp.Lsm, gp.SortedArray, gp.Multimap]


def new(xp, kind, *types, **options):
    return kind(*types, device="cuda" if "cu" in xp.name.replace("cpu", "") else "cpu", **options)


def batch(rng, key, count):
    return rng.integers(0, 50, count).astype(key)


@examples(12)
def test_updates_against_a_dict(xp, pick):
    kind, key = pick.choice(ONE_VALUE), pick.choice([key for key in KEYS if xp.can(key)])
    value = pick.choice([value for value in KEYS if xp.can(value)])
    rng = np.random.default_rng(pick.seed())
    found, expected = new(xp, kind, key, value), {}
    for _ in range(pick.integer(0, 4)):
        keys = batch(rng, key, pick.choice([0, 1, 40]))
        values = rng.integers(0, 100, len(keys)).astype(value)
        step = pick.choice(["insert", "delete", "sum", "max", "min"])
        if step == "insert":
            found.insert(xp.array(keys), xp.array(values))
            expected.update(zip(keys.tolist(), values.tolist()))
        elif step == "delete":
            found.delete(xp.array(keys))
            for each in keys.tolist():
                expected.pop(each, None)
        else:
            found.upsert(xp.array(keys), xp.array(values), op=step)
            combine = {"sum": lambda a, b: a + b, "max": max, "min": min}[step]
            for each, number in zip(keys.tolist(), values.tolist()):
                expected[each] = combine(expected[each], number) if each in expected else number
    assert len(found) == len(expected) and bool(found) == bool(expected)
    everything = np.arange(50).astype(key)
    values, mask = found.lookup(xp.array(everything))
    same(xp.numpy(mask), np.array([each in expected for each in everything.tolist()]))
    same(xp.numpy(values), np.array([expected.get(each, 0) for each in everything.tolist()], value))
    same(xp.numpy(found.contains(xp.array(everything))), xp.numpy(mask))
    assert list(found) == sorted(expected)
    keys, values = found.items(like=xp.array(everything))
    assert dict(zip(xp.numpy(keys).tolist(), xp.numpy(values).tolist())) == expected
    for each in everything.tolist()[:3]:
        assert (each in found) == (each in expected)
        if each in expected:
            assert found[each] == expected[each]


@examples(10)
def test_queries_of_order(xp, pick):
    kind, key = pick.choice(ORDERED), pick.choice([key for key in KEYS if xp.can(key)])
    rng = np.random.default_rng(pick.seed())
    keys = np.unique(batch(rng, key, pick.choice([0, 1, 30])))
    values = (keys * 2).astype("int64")
    found = new(xp, kind, key, "int64")
    found.insert(xp.array(keys), xp.array(values))
    low = np.array([0, 10, 30, 40], key)
    high = np.array([50, 20, 30, 5], key)
    inside = [(keys >= a) & (keys <= b) for a, b in zip(low, high)]
    counts = np.array([each.sum() for each in inside])
    same(xp.numpy(found.count(xp.array(low), xp.array(high))), counts)
    offsets, all_keys, all_values = (xp.numpy(part) for part in found.range(xp.array(low), xp.array(high)))
    same(offsets, np.concatenate([[0], np.cumsum(counts)]))
    same(all_keys, np.concatenate([keys[each] for each in inside]))
    same(all_values, np.concatenate([values[each] for each in inside]))
    for call, side, step in ((found.successor, "right", 0), (found.predecessor, "left", -1)):
        others, other_values, mask = (xp.numpy(part) for part in call(xp.array(low)))
        at = np.searchsorted(keys, low, side=side) + step
        there = (at >= 0) & (at < len(keys))
        same(mask, there)
        same(others[there], keys[at[there]])
        same(other_values[there], values[at[there]])


def test_all_values_of_a_key(xp):
    edges = new(xp, gp.Multimap, "int32", "int64")
    edges.insert(xp.array(np.array([1, 2, 1], "int32")), xp.array(np.array([10, 20, 11])))
    offsets, values = edges.get(xp.array(np.array([1, 3, 2], "int32")))
    same(xp.numpy(offsets), np.array([0, 2, 2, 3]))
    same(xp.numpy(values), np.array([10, 11, 20]))
    same(xp.numpy(edges.count_values(xp.array(np.array([1], "int32")))), np.array([2]))
    edges.delete_pairs(xp.array(np.array([1], "int32")), xp.array(np.array([10])))
    assert len(edges) == 2 and list(edges) == [1, 2]


def test_sets(xp):
    for kind in ONE_VALUE:
        seen = new(xp, kind, "int64")
        seen.insert(xp.array(np.array([5, 3])))
        values, mask = seen.lookup(xp.array(np.array([3, 4])))
        assert values is None and xp.numpy(mask).tolist() == [True, False] and seen[5] is None
        with raises(gp.ArgumentError, "takes no values"):
            seen.insert(xp.array(np.array([1])), xp.array(np.array([1])))
        with raises(gp.Error):
            seen.upsert(xp.array(np.array([1])), xp.array(np.array([1])))


@examples(6)
def test_rows(xp, pick):
    kind, row = pick.choice(ONE_VALUE), pick.choice([1, 3, 4, 33])
    value = pick.choice(["float32", "uint8", "float16"])
    rng = np.random.default_rng(pick.seed())
    found, expected = new(xp, kind, "int64", value, row=row), {}
    for _ in range(6):
        keys = rng.integers(0, 60, pick.choice([1, 30]))
        rows = rng.integers(0, 100, (len(keys), row)).astype(value)
        found.insert(xp.array(keys), xp.array(rows))
        expected.update((each, rows[i]) for i, each in enumerate(keys.tolist()))
        gone = rng.integers(0, 60, 10)
        found.delete(xp.array(gone))
        for each in gone.tolist():
            expected.pop(each, None)
    everything = np.arange(60)
    values, mask = found.lookup(xp.array(everything))
    same(xp.numpy(mask), np.array([each in expected for each in range(60)]))
    nothing = np.zeros(row, value)
    same(xp.numpy(values), np.stack([expected.get(each, nothing) for each in range(60)]))
    assert len(found) == len(expected)
    with raises(gp.ArgumentError, "must be"):
        found.insert(xp.array(keys), xp.array(rows[:, :0]))


def test_snapshots_stay_as_they_are(xp):
    for kind in [*ONE_VALUE, gp.Multimap]:
        for row in [0] if kind is gp.Multimap else [0, 2]:
            found = new(xp, kind, "int64", "int64", row=row)
            values = np.array([1, 2]) if row == 0 else np.array([[1, 1], [2, 2]])
            found.insert(xp.array(np.array([1, 2])), xp.array(values))
            before, copied = found.snapshot(), copy.copy(found)
            found.delete(xp.array(np.array([1])))
            found.insert(xp.array(np.array([9])), xp.array(values[:1]))
            before.insert(xp.array(np.array([7])), xp.array(values[:1]))
            assert list(found) == [2, 9] and list(before) == [1, 2, 7] and list(copied) == [1, 2]


def test_files(xp, tmp_path):
    keys, numbers = np.array([3, 1, 2]), np.array([30, 10, 20])
    for kind in [*ONE_VALUE, gp.Multimap]:
        for row in [0] if kind is gp.Multimap else [0, 3]:
            found = new(xp, kind, "int64", "int64", row=row)
            values = numbers if row == 0 else np.stack([numbers] * 3, axis=1)
            path, folder = tmp_path / f"{kind.__name__}{row}", tmp_path / f"{kind.__name__}{row}-folder"
            found.insert(xp.array(keys[:2]), xp.array(values[:2]))
            found.checkpoint(folder)
            found.insert(xp.array(keys[2:]), xp.array(values[2:]))
            found.save(path)
            loaded = kind.load(path, device=found.device)
            assert list(loaded) == [1, 2, 3] and (loaded.row, loaded.value_dtype) == (row, "int64")
            assert list(kind.recover(folder, device=found.device)) == [1, 3]
            found.checkpoint(folder)
            recovered = kind.recover(folder, device=found.device)
            assert list(recovered) == [1, 2, 3]
            if kind is not gp.Multimap:
                looked_up, mask = recovered.lookup(xp.array(keys))
                same(xp.numpy(looked_up), values)
            data = path.read_bytes()
            for damaged in (data[:-3], data[: len(data) // 2], data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], b"", b"\xff" * 300):
                path.write_bytes(damaged)
                with raises(gp.FileError):
                    kind.load(path, device=found.device)
            other = gp.HashMap if kind is gp.Lsm else gp.Lsm
            path.write_bytes(data)
            with raises(gp.ArgumentError, kind.__name__):
                other.load(path, device=found.device)
    with raises(gp.FileError):
        gp.Lsm.load(tmp_path / "none", device="cpu")


def test_threads_save_to_one_file(tmp_path):
    found, path = gp.Lsm("int64", "int64", row=4, device="cpu"), tmp_path / "file"
    found.insert(np.arange(20_000), np.ones((20_000, 4), "int64"))
    errors = []

    def work():
        try:
            for _ in range(5):
                found.save(path)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert len(gp.Lsm.load(path, device="cpu")) == 20_000 and [each.name for each in tmp_path.iterdir()] == ["file"]


def test_folders_that_cannot_be_read(tmp_path):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "types"))
        with raises(gp.FileError, "types"):
            gp.Lsm("int64", device="cpu").checkpoint(tmp_path)


def test_numbers_that_no_float_is():
    for dtype, limit in (("float32", 1 << 24), ("float64", 1 << 53)):
        found = gp.Lsm(dtype, dtype, device="cpu")
        found.insert(np.array([limit], dtype), np.array([1], dtype))
        assert limit in found and float(limit) in found and limit + 1 not in found and limit + 2 not in found and found[limit] == 1
        with raises(KeyError):
            found[limit + 1]
        assert 1 << 2000 not in found and True not in found


def test_pickling_says_what_to_do():
    for kind in [*ONE_VALUE, gp.Multimap]:
        with raises(gp.DTypeError, r"save\(\)"):
            pickle.dumps(kind("int64", device="cpu"))


def test_wrong_types_are_errors(xp):
    found = new(xp, gp.Lsm, "int64", "float32")
    keys, values = xp.array(np.array([1])), xp.array(np.array([1.0], "float32"))
    found.insert(keys, values)
    for wrong in (
        lambda: found.insert(xp.array(np.array([1], "int32")), values),
        lambda: found.insert(keys, xp.array(np.array([1.0]))),
        lambda: found.lookup([1]),
        lambda: "one" in found,
        lambda: gp.Lsm("int8", device="cpu"),
        lambda: gp.Lsm("complex64", device="cpu"),
    ):
        with raises(gp.DTypeError):
            wrong()
    for wrong in (
        lambda: found.insert(keys),
        lambda: found.insert(keys, xp.array(np.zeros(2, "float32"))),
        lambda: found.upsert(keys, values, op="mean"),
        lambda: found.count(keys, xp.array(np.array([1, 2]))),
        lambda: gp.Lsm("int64", device="tpu"),
        lambda: gp.Lsm("int64", row=3, device="cpu"),
        lambda: gp.Lsm("int64", batch_size=-1, device="cpu"),
    ):
        with raises(gp.ArgumentError):
            wrong()
    with raises(KeyError):
        found[2]
    assert 1 << 70 not in found and 1.5 not in found and len(found) == 1


def test_threads_share_a_dictionary(xp):
    found = new(xp, gp.Lsm, "int64", "int64", batch_size=64)
    errors = []

    def work(number):
        try:
            with xp.stream():
                for i in range(20):
                    keys = np.arange(10) + 1000 * number + 10 * i
                    found.insert(xp.array(keys), xp.array(keys))
                    values, mask = found.lookup(xp.array(keys))
                    assert xp.numpy(mask).all() and (xp.numpy(values) == keys).all()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(found) == 800
