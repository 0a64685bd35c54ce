"""Many fits in one program, and the derivatives of large models: on a GPU, or on a CPU.

`PYTHONPATH=src python benchmarks/inverse_card.py --fits 100000 --states 10000000` is for a GPU with
100 GB of memory. A fit is that of a reward with four features on a grid of 5 x 5, to demonstrations
of its own. The derivative is that of a sum of action values with respect to all rewards.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

from mellowmax import LogSumExp, Mellowmax
from mellowmax.inverse import Linear, fit_each
from mellowmax.mdp import MDP, garnet, grid_world
from mellowmax.planning import solve


def fits(n):
    """Fits of a grid of 5 x 5, all in one compiled program."""
    rng = np.random.default_rng(0)
    grid = grid_world((5, 5), slip=0.2, discount=0.9)
    bare = MDP(grid.successors, grid.probabilities, np.zeros((25, 4)), 0.9, terminal=grid.terminal)
    features, truth = rng.normal(size=(25, 4, 4)), np.array([1.0, -0.5, 0.3, 0.0])
    true = MDP(bare.successors, bare.probabilities, features @ truth, 0.9, terminal=bare.terminal)
    policy = solve(true, LogSumExp(1.0)).policy
    visits = np.where(bare.terminal, 0, 40)
    counts = rng.multinomial(visits, policy, size=(n, 25)).astype(float)
    arguments = bare, counts, Linear(features), LogSumExp(1.0)
    for what in ("with compiling", "again"):
        began = time.perf_counter()
        found = fit_each(*arguments)
        seconds = time.perf_counter() - began
        errors = found.standard_errors
        held = (np.abs(found.parameters - truth) < 1.96 * errors).mean(0)
        print(
            f"{n:,} fits of a 5 x 5 grid, {what}: {seconds:.2f} s, {n / seconds:,.0f} a second, "
            f"{found.converged.sum():,} converged, "
            f"95 % intervals hold {held.min():.3f} to {held.max():.3f}",
            flush=True,
        )


def adjoint(n):
    """A solve of a random sparse model, and its derivatives, with nothing to compile."""
    began = time.perf_counter()
    mdp = garnet(n, 4, 5, 0, discount=0.99)
    print(f"\n{mdp} made in {time.perf_counter() - began:.0f} s", flush=True)
    weights = np.random.default_rng(0).normal(size=(n, 4))
    for what in ("with compiling", "again"):
        began = time.perf_counter()
        solution = solve(mdp, Mellowmax(5.0))
        forward = time.perf_counter() - began
        began = time.perf_counter()
        moved = solution.vjp(weights)
        backward = time.perf_counter() - began
        print(
            f"{n:,} states, {what}: solve {forward:.2f} s, derivatives {backward:.2f} s, "
            f"ratio {backward / forward:.2f} (goal 1.5), residual {moved.residual:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--states", type=int, default=100_000)
    options = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.device_kind}, JAX {jax.__version__}")
    if options.fits:
        fits(options.fits)
    if options.states:
        adjoint(options.states)
