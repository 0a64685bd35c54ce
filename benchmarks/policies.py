"""Operators and policies against their peers, as ratios in one run on one core.

`make bench` runs it. Policies are compared by how many there are in a second, ours over the peer's;
operators by their time, ours over the peer's. Absolute numbers belong to the machine.
"""

from __future__ import annotations

import os
import platform
import time
import tracemalloc

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # compile, as the first time
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
    + os.environ.get("XLA_FLAGS", "")
)

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

import mellowmax as mm

ROWS = 10**6
OMEGA = 5.0
BATCH = (32, 6)
COMPILED = (1.5, 6)
"""How many times logsumexp and softmax it may take, compiled; `pytorch.py` has the eager calls."""
GOALS = {("NumPy", 4): 200, ("JAX", 4): 2500, ("NumPy", 18): 130, ("JAX", 18): 800}


def values(rows, actions, dtype):
    """Standard normal action values."""
    return np.random.default_rng(0).normal(size=(rows, actions)).astype(dtype)


def seconds(*calls, rounds=7):
    """The shortest time of each call; the calls take turns, so that noise meets them alike."""
    best = [np.inf] * len(calls)
    for call in calls:
        jax.block_until_ready(call())
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            jax.block_until_ready(call())
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def brentq_policy(row):
    """One policy at a time: logsumexp, Brent's method on [-10, 10], and 0 where that fails."""
    advantage = row - (logsumexp(OMEGA * row) - np.log(row.size)) / OMEGA

    def excess(b):
        exponents = b * advantage
        return np.sum(np.exp(exponents - np.max(exponents)) * advantage)

    try:
        b = brentq(excess, -10.0, 10.0)
    except ValueError:
        b = 0.0
    weights = np.exp(b * row - np.max(b * row))
    return weights / np.sum(weights)


def policies():
    """Maximum-entropy policies per second against Brent's method row by row."""
    print(f"\nMaximum-entropy policies, {ROWS:,} rows, omega = {OMEGA:g}, policies per second")
    print(f"  {'':<18}{'brentq':>10}{'ours':>14}{'ratio':>9}{'goal':>11}")
    jitted = jax.jit(mm.mellowmax_policy, static_argnums=1)
    for actions in (4, 18):
        doubles = values(ROWS, actions, np.float64)
        singles = jnp.asarray(values(ROWS, actions, np.float32))
        few = doubles[:2000]
        start = time.perf_counter()
        jax.block_until_ready(jitted(singles, OMEGA))
        compiled = time.perf_counter() - start
        peer, numpy, jax_ = seconds(
            lambda few=few: [brentq_policy(row) for row in few],
            lambda doubles=doubles: mm.mellowmax_policy(doubles, OMEGA),
            lambda singles=singles: jitted(singles, OMEGA),
            rounds=5,
        )
        rate = len(few) / peer
        for name, dtype, taken in (("NumPy", "float64", numpy), ("JAX", "float32", jax_)):
            ours = ROWS / taken
            print(
                f"  {actions:>2} {name + ' ' + dtype:<15}{rate:>10,.0f}{ours:>14,.0f}"
                f"{ours / rate:>9,.0f}{GOALS[name, actions]:>11,}"
            )
        print(f"     (compiling for JAX took {compiled:.1f} s)")


def operators():
    """Operators against the naive forms: our time over theirs."""
    print(f"\nOperators, {ROWS:,} rows: our time over the peer's (goal: at most 1.5)")
    for actions in (4, 18):
        q = values(ROWS, actions, np.float64)

        def naive_mellowmax(q=q):
            top = np.max(q, axis=-1, keepdims=True)
            return np.log(np.mean(np.exp(OMEGA * (q - top)), axis=-1)) / OMEGA + top[..., 0]

        def naive_softmax(q=q):
            weights = np.exp(OMEGA * (q - np.max(q, axis=-1, keepdims=True)))
            return weights / np.sum(weights, axis=-1, keepdims=True)

        report(
            f"{actions:>2} NumPy float64",
            seconds(
                lambda q=q: mm.mellowmax(q, OMEGA),
                naive_mellowmax,
                lambda q=q: mm.boltzmann(q, OMEGA),
                lambda q=q: mm.boltzmann_policy(q, OMEGA),
                naive_softmax,
            ),
        )
        x = jnp.asarray(values(ROWS, actions, np.float32))
        functions = [
            lambda x: mm.mellowmax(x, OMEGA),
            lambda x: (jax.nn.logsumexp(OMEGA * x, axis=-1) - np.log(x.shape[-1])) / OMEGA,
            lambda x: mm.boltzmann(x, OMEGA),
            lambda x: mm.boltzmann_policy(x, OMEGA),
            lambda x: jax.nn.softmax(OMEGA * x, axis=-1),
        ]
        compiled = [jax.jit(f).lower(x).compile() for f in functions]
        report(
            f"{actions:>2} JAX float32",
            seconds(*(lambda f=f, x=x: f(x) for f in compiled)),
        )


def plain_log_sum_exp(xp, q, weights):
    if xp is jnp:
        return jax.nn.logsumexp(OMEGA * q, axis=-1, b=weights) / OMEGA
    top = q.max(-1)
    return xp.log((weights * xp.exp(OMEGA * (q - top[..., None]))).sum(-1)) / OMEGA + top


def plain_softmax(xp, q, weights):
    if xp is jnp:
        return jax.nn.softmax(OMEGA * q + jnp.log(weights), axis=-1)
    share = weights * xp.exp(OMEGA * (q - q.max(-1)[..., None]))
    return share / share.sum(-1)[..., None]


def plain_resmax(xp, q, _):
    gap = q.max(-1)[..., None] - q
    return q.max(-1) - (gap / (q.shape[-1] + OMEGA * gap)).sum(-1)


def plain_resmax_policy(xp, q, _):
    gap = q.max(-1)[..., None] - q
    share = xp.where(gap == 0, 0.0, 1 / (q.shape[-1] + OMEGA * gap))
    return xp.where(gap == 0, 1 - share.sum(-1)[..., None], share)


def plain_sparsemax_policy(xp, q, _):
    """The projection that optax and entmax have: sort, and look for the threshold."""
    z = OMEGA * q
    z = z - z.max(-1)[..., None]
    ordered = -xp.sort(-z, axis=-1)
    size = xp.arange(1, q.shape[-1] + 1, dtype=q.dtype)
    total = xp.cumsum(ordered, axis=-1)
    count = (1 + size * ordered > total).sum(-1)[..., None]
    threshold = (xp.take_along_axis(total, count - 1, -1) - 1) / count.astype(q.dtype)
    return xp.maximum(z - threshold, 0)


def plain_sparsemax(xp, q, _):
    policy = plain_sparsemax_policy(xp, q, None)
    return (policy * q).sum(-1) + (1 - (policy * policy).sum(-1)) / (2 * OMEGA)


def mellowmax_policy_without_prior(xp, q, _):
    return mm.mellowmax_policy(q, OMEGA)


def softmaxes():
    """The other softmaxes: their value and their policy against plain formulas."""
    print(f"\nOther softmaxes, {ROWS:,} rows: our time over that of a plain formula of the same")
    print("library; mellowmax's policy with a prior over that without (goal: at most 1.5)")
    for actions in (4, 18):
        weights = np.random.default_rng(1).random(actions) + 0.1
        weights = weights / weights.sum()
        kinds = {
            "LogSumExp": (mm.LogSumExp(OMEGA), plain_log_sum_exp, plain_softmax),
            "FreeEnergy, prior": (
                mm.FreeEnergy(OMEGA, prior=weights),
                plain_log_sum_exp,
                plain_softmax,
            ),
            "Mellowmax, prior": (
                mm.Mellowmax(OMEGA, prior=weights),
                plain_log_sum_exp,
                mellowmax_policy_without_prior,
            ),
            "Resmax": (mm.Resmax(OMEGA), plain_resmax, plain_resmax_policy),
            "Sparsemax": (mm.Sparsemax(OMEGA), plain_sparsemax, plain_sparsemax_policy),
        }
        q, x = values(ROWS, actions, np.float64), jnp.asarray(values(ROWS, actions, np.float32))
        for name, (softmax, *plain) in kinds.items():
            prior = weights if getattr(softmax, "prior", None) is not None else np.ones(actions)
            found = []
            for ours, theirs in zip((softmax.value, softmax.policy), plain, strict=True):
                jitted = jax.jit(ours)
                formula = jax.jit(lambda x, p, f=theirs: f(jnp, x, p))
                small = jnp.asarray(prior, jnp.float32)
                times = seconds(
                    lambda q=q, f=ours: f(q),
                    lambda q=q, f=theirs, prior=prior: f(np, q, prior),
                    lambda x=x, f=jitted: f(x),
                    lambda x=x, f=formula, prior=small: f(x, prior),
                    rounds=5,
                )
                found.append((times[0] / times[1], times[2] / times[3]))
            (value, value_jax), (policy, policy_jax) = found
            print(
                f"  {actions:>2} {name:<18} NumPy float64: value {value:.2f} policy {policy:.2f}"
                f"   JAX float32: value {value_jax:.2f} policy {policy_jax:.2f}"
            )


def report(name, times):
    mellow, logsum, boltz, policy, softmax = times
    print(
        f"  {name:<18} mellowmax / logsumexp {mellow / logsum:.2f}"
        f"   boltzmann / softmax {boltz / softmax:.2f}"
        f"   boltzmann_policy / softmax {policy / softmax:.2f}"
    )


def short(*calls, synchronise=lambda: None, each=20, rounds=200):
    """Microseconds of calls that are too short to be timed one by one."""
    best = [np.inf] * len(calls)
    for call in calls:
        for _ in range(3):
            call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            synchronise()
            start = time.perf_counter()
            for _ in range(each):
                call()
            synchronise()
            best[i] = min(best[i], (time.perf_counter() - start) / each)
    return [1e6 * x for x in best]


def one_row():
    """A single policy with NumPy against Brent's method."""
    row = values(1, BATCH[1], np.float64)[0]
    peer, ours = short(lambda: brentq_policy(row), lambda: mm.mellowmax_policy(row, OMEGA))
    print(f"\nOne maximum-entropy policy of {row.size} actions with NumPy, in microseconds:")
    print(f"  brentq {peer:.0f}   ours {ours:.0f}   our time over the peer's {ours / peer:.2f} (1)")


def pytorch():
    """A small batch, compiled by PyTorch: our time over that of its own functions."""
    try:
        import torch
    except ImportError:
        print("\nPyTorch is not installed")
        return
    torch.set_num_threads(1)
    rows, actions = BATCH
    print(f"\nCompiled by PyTorch {torch.__version__}, {rows} x {actions}, float32: microseconds,")
    print("and our time over that of logsumexp for the value, of softmax for the policy (goal)")
    print(f"  {'':<28}{'logsumexp':>10}{'value':>8}{'times':>14}", end="")
    print(f"{'softmax':>10}{'policy':>8}{'times':>14}")
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        q = torch.tensor(values(*BATCH, np.float32), device=device)
        torch_times(torch, q, backwards=False)
        torch_times(torch, q.clone().requires_grad_(), backwards=True)


def torch_times(torch, q, backwards):
    functions = [
        lambda q: torch.logsumexp(q, -1),
        lambda q: mm.mellowmax(q, OMEGA),
        lambda q: torch.softmax(q, -1),
        lambda q: mm.mellowmax_policy(q, OMEGA),
    ]
    torch.compiler.reset()
    functions = [torch.compile(f, fullgraph=True) for f in functions]

    def call(f):
        cotangent = torch.ones_like(f(q))
        return (lambda: torch.autograd.grad(f(q), q, cotangent)) if backwards else (lambda: f(q))

    calls, taken = [], []
    for f in functions:
        start = processor_seconds()
        calls.append(call(f))
        calls[-1]()
        taken.append(processor_seconds() - start)
    wait = torch.cuda.synchronize if q.is_cuda else lambda: None
    logsum, value, softmax, policy = short(*calls, synchronise=wait)
    goals = [f"({goal:g})" if not backwards else "" for goal in COMPILED]
    name = f"{q.device.type}{', and backwards' if backwards else ''}"
    print(f"  {name:<28}{logsum:>10.1f}{value:>8.1f}{value / logsum:>8.1f} {goals[0]:<5}", end="")
    print(f"{softmax:>10.1f}{policy:>8.1f}{policy / softmax:>8.1f} {goals[1]:<5}")
    print(f"     (to compile took {taken[1]:.1f} s and {taken[3]:.1f} s of the processor)")


def processor_seconds():
    """CPU seconds of this process and of the compilers that it has called."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def growth():
    """How the cost of a policy grows with the rows, and the memory it takes beyond its result."""
    print("\nMaximum-entropy policies of 4 actions: nanoseconds a row, and the peak memory beyond")
    print("input and output in MiB")
    print(f"  {'rows':>10}{'NumPy':>9}{'JAX':>9}{'NumPy memory':>15}{'JAX memory':>13}")
    for rows in (1, 10**3, 10**4, 10**5, 10**6, 10**7):
        q = values(rows, 4, np.float64)
        x = jnp.asarray(values(rows, 4, np.float32))
        compiled = jax.jit(mm.mellowmax_policy, static_argnums=1).lower(x, OMEGA).compile()
        numpy, jax_ = seconds(
            lambda q=q: mm.mellowmax_policy(q, OMEGA),
            lambda x=x, compiled=compiled: compiled(x),
            rounds=max(3, 10**5 // max(rows, 200)),
        )
        tracemalloc.start()
        result = mm.mellowmax_policy(q, OMEGA)
        beyond = tracemalloc.get_traced_memory()[1] - result.nbytes
        tracemalloc.stop()
        temporary = compiled.memory_analysis().temp_size_in_bytes
        print(
            f"  {rows:>10,}{numpy / rows * 1e9:>9,.0f}{jax_ / rows * 1e9:>9,.0f}"
            f"{beyond / 2**20:>15.2f}{temporary / 2**20:>13.2f}"
        )


if __name__ == "__main__":
    print(f"mellowmax {mm.__version__}, NumPy {np.__version__}, JAX {jax.__version__},")
    print(f"Python {platform.python_version()} on one core, JAX on {jax.devices()[0].device_kind}")
    policies()
    operators()
    softmaxes()
    one_row()
    pytorch()
    growth()
