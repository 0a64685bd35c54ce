"""Mellowmax in PyTorch, eager, as a curve over the size of the batch; beside PyTorch's own.

`make bench` runs it. The value is compared with `logsumexp`, the policy with `softmax`, forwards,
and forwards and backwards, with a mask and without. The calls take turns, and the best time of each
counts, so that noise meets them alike. On a CPU it is the time of the one thread that they run in.
"""

from __future__ import annotations

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import mellowmax as mm

OMEGA = 5.0
SIZES = [
    *[(1, 4), (8, 4), (4, 18), (16, 18), (32, 6), (32, 18), (128, 18)],
    *[(409, 20), (410, 20), (512, 20), (2048, 18), (8192, 18), (65536, 18)],
]
NEIGHBOURS = [((16, 18), (17, 18)), ((113, 18), (114, 18)), ((409, 20), (410, 20))]
NEIGHBOURS += [((1820, 18), (1821, 18)), ((1, 2048), (1, 2049)), ((32, 8), (32, 9))]
VALUE, POLICY, MASK, STEP = 6, 40, 1.5, 1.3
"""Goals: times `logsumexp`, times `softmax`, with a mask, and from a size to the next."""


def batch(torch, size, device):
    """Standard normal action values, and a mask that leaves seven in ten."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=size).astype(np.float32)
    mask = (rng.random(size) < 0.7) | (np.arange(size[1]) == 0)
    return torch.tensor(q, device=device), torch.tensor(mask, device=device)


def calls_of(torch, size, device, backwards):
    """`logsumexp`, the value, and it with a mask; `softmax`, the policy, and it with a mask."""
    q, mask = batch(torch, size, device)
    q.requires_grad_(backwards)
    functions = [
        lambda q: torch.logsumexp(q, -1),
        lambda q: mm.mellowmax(q, OMEGA),
        lambda q: mm.mellowmax(q, OMEGA, where=mask),
        lambda q: torch.softmax(q, -1),
        lambda q: mm.mellowmax_policy(q, OMEGA),
        lambda q: mm.mellowmax_policy(q, OMEGA, where=mask),
    ]

    def call(function):
        if not backwards:
            return lambda: function(q)
        cotangent = torch.ones_like(function(q))
        return lambda: torch.autograd.grad(function(q), q, cotangent)

    return [call(function) for function in functions]


def best(torch, calls, device, budget=0.8, least=7):
    """Microseconds of each call, the shortest of many rounds in which they take turns."""
    on_gpu = device != "cpu"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    clock = time.perf_counter if on_gpu else time.thread_time

    def seconds(call, each):
        wait()
        start = clock()
        for _ in range(each):
            call()
        wait()
        return (clock() - start) / each

    for call in calls:
        seconds(call, 3)
    each = [max(1, int(1e-3 / seconds(call, 10))) for call in calls]  # reading a clock takes time
    found, rounds, end = [np.inf] * len(calls), 0, time.perf_counter() + budget
    while rounds < least or time.perf_counter() < end:
        found = [min(x, seconds(*pair)) for x, *pair in zip(found, calls, each, strict=True)]
        rounds += 1
    return [1e6 * x for x in found]


def mark(ratio, goal):
    """A ratio, with a star where the goal is missed."""
    return f"{ratio:.2f}{'*' if ratio > goal else ' '}"


def curve(torch, device, backwards):
    """A line a size."""
    print(f"\n{device}, forwards{' and backwards' if backwards else ''}: microseconds, ratios")
    print(f"  {'':<11}{'logsumexp':>10}{'value':>9}{'times':>9}{'mask':>7}", end="")
    print(f"{'softmax':>10}{'policy':>9}{'times':>9}{'mask':>7}")
    for size in SIZES:
        calls = calls_of(torch, size, device, backwards)
        logsum, value, with_mask, softmax, policy, policy_with_mask = best(torch, calls, device)
        print(f"  {'{} x {}'.format(*size):<11}{logsum:>10.1f}{value:>9.1f}", end="")
        print(f"{mark(value / logsum, VALUE):>9}{mark(with_mask / value, MASK):>7}", end="")
        print(f"{softmax:>10.1f}{policy:>9.1f}{mark(policy / softmax, POLICY):>9}", end="")
        print(f"{mark(policy_with_mask / policy, MASK):>7}", flush=True)


def steps(torch, device):
    """How the time grows between sizes next to each other, where the way of computing changes."""
    print(f"\n{device}, forwards: the time of a size over that of the one before, value and policy")
    for pair in NEIGHBOURS:
        calls = [calls_of(torch, size, device, False) for size in pair]
        times = best(torch, [calls[i][j] for j in (1, 4) for i in (0, 1)], device)
        ratios = mark(times[1] / times[0], STEP), mark(times[3] / times[2], STEP)
        print("  {} x {} to {} x {}".format(*pair[0], *pair[1]).ljust(26), *ratios, flush=True)


if __name__ == "__main__":
    try:
        import torch
    except ImportError:
        sys.exit(print("PyTorch is not installed"))
    torch.set_num_threads(1)
    print(f"mellowmax {mm.__version__}, PyTorch {torch.__version__}, float32, omega = {OMEGA:g}.")
    print(f"Goals: the value at most {VALUE} times logsumexp, the policy {POLICY} times softmax,")
    print(f"a mask {MASK} times, a step between sizes {STEP}. A star marks what is missed.")
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        for backwards in (False, True):
            curve(torch, device, backwards)
        steps(torch, device)
