"""Top-k sampling of a language model's logits. Runs with NumPy; `cuda` as an argument takes torch and a GPU.

The one line that matters is `gp.topk` where `torch.topk` was.
"""

import sys
import time

import gpu_primitives as gp

BATCH, VOCABULARY, K, STEPS = 16, 32_000, 50, 5


def with_numpy():
    import numpy as np

    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        logits = rng.standard_normal((BATCH, VOCABULARY)).astype("float32")
        best, tokens = gp.topk(logits, K)
        weights = np.exp(best - best[:, :1])
        weights /= weights.sum(1, keepdims=True)
        chosen = (weights.cumsum(1) < rng.random((BATCH, 1))).sum(1)
        yield np.take_along_axis(tokens, np.minimum(chosen, K - 1)[:, None], 1)[:, 0]


def with_torch():
    import torch

    logits = torch.randn(BATCH, VOCABULARY, device="cuda")
    values = torch.empty(BATCH, K, device="cuda")
    tokens = torch.empty(BATCH, K, device="cuda", dtype=torch.int64)
    for _ in range(STEPS):
        logits.normal_()
        gp.topk(logits, K, out=(values, tokens))
        chosen = torch.multinomial(torch.softmax(values, dim=1), 1)
        yield tokens.gather(1, chosen)[:, 0]


start = time.perf_counter()
for step, sampled in enumerate(with_torch() if "cuda" in sys.argv else with_numpy()):
    print(f"step {step}: {sampled[:6].tolist()} ...")
print(f"{STEPS} steps of {BATCH} x {VOCABULARY} logits in {1e3 * (time.perf_counter() - start):.1f} ms")
