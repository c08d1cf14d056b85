"""Embeddings of a vocabulary that grows, in an `Lsm`, with checkpoints. Runs with NumPy; `cuda` as an argument takes torch and a GPU.

Words are known by 64-bit hashes. A step looks up the words of a batch, adds the new ones, and writes the changed rows back.
"""

import hashlib
import sys
import tempfile

import gpu_primitives as gp

WIDTH = 64


def hashes(words):
    return [int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little", signed=True) for word in words]


def main():
    if "cuda" in sys.argv:
        import torch

        device = "cuda"

        def array(x):
            return torch.tensor(x, device="cuda")

        def fresh(count):
            return torch.randn(count, WIDTH, device="cuda") * 0.1

        def choose(found, old, new):
            return torch.where(found[:, None], old, new)

    else:
        import numpy as np

        device, array, rng = "cpu", np.array, np.random.default_rng(0)

        def fresh(count):
            return (rng.standard_normal((count, WIDTH)) * 0.1).astype("float32")

        def choose(found, old, new):
            return np.where(found[:, None], old, new)

    embeddings = gp.Lsm("int64", "float32", row=WIDTH, device=device)
    text = "the cat sat on the mat while the dog ran to the house and the bird sang".split()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(4):
            words = text[4 * step : 4 * step + 6]
            keys = array(sorted(set(hashes(words))))
            rows, found = embeddings.lookup(keys)
            rows = choose(found, rows, fresh(len(keys)))
            rows = rows * 0.99  # where a gradient would be applied
            embeddings.insert(keys, rows)
            embeddings.checkpoint(folder)
            print(f"step {step}: {int((~found).sum())} new words, {len(embeddings)} in all")
        again = gp.Lsm.recover(folder, device=device)
        rows, found = again.lookup(keys)
        assert bool(found.all()) and len(again) == len(embeddings) == len(set(text))
        assert bool((rows == embeddings.lookup(keys)[0]).all())
    print("recovered all of them")


main()
