"""A million games on an accelerator: time a game, compiling apart, and agreement with NumPy.

    python benchmarks/games_card.py [--games 1000000] [--actions 2] [--parameter 10]

Two players, payoffs uniform on (0, 1), logit and mellowmax. The first call compiles; the second one
is timed, with the payoffs on the device before it begins. The same games, or the first 20,000 of
them, are then followed by NumPy on one core: how long that takes for a game, by how much a profile
differs, and how many are not found.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax import Boltzmann, Mellowmax
from mellowmax.games import batch

COMPARED = 20_000


def wall(call):
    """What a call gives, and the seconds that it takes."""
    began = time.perf_counter()
    result = call()
    return result, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=1_000_000)
    parser.add_argument("--actions", type=int, default=2)
    parser.add_argument("--parameter", type=float, default=10.0)
    given = parser.parse_args()
    n, size = given.games, given.actions
    jax.config.update("jax_enable_x64", True)
    print(
        f"{n:,} games of {size} x {size} on {jax.devices()[0].device_kind}, JAX {jax.__version__}"
    )
    payoffs = np.random.default_rng(36).random((2, n, size, size))
    device = [jax.block_until_ready(jnp.asarray(payoff)) for payoff in payoffs]
    print(
        "softmax      compiling s  seconds  us a game  NumPy us a game  times  largest  not found"
    )
    for softmax in (Boltzmann(given.parameter), Mellowmax(given.parameter)):
        _, first = wall(lambda s=softmax: batch.principal(device, s))
        found, seconds = wall(lambda s=softmax: batch.principal(device, s))
        few = payoffs[:, :COMPARED]
        alike, by_numpy = wall(lambda s=softmax, p=few: batch.principal(p, s))
        pairs = zip(alike.profile, found.profile, strict=True)
        largest = max(np.nanmax(abs(one - many[: len(one)])) for one, many in pairs)
        ours, theirs = 1e6 * seconds / n, 1e6 * by_numpy / few.shape[1]
        print(
            f"{type(softmax).__name__:<12} {first - seconds:11.1f} {seconds:8.2f} {ours:10.2f} "
            f"{theirs:16.1f} {theirs / ours:6.1f} {largest:8.1e} {(~found.found).sum():10d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
