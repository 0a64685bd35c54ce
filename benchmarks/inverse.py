"""Inverse reinforcement learning against three peers, in one run: processor time, compiling apart.

`make bench` runs it. Each peer runs in an environment of its own, made on the first run in
`build/bench`, on the same data:

- ruspy, from its repository (the package of that name on PyPI is another one): the likelihood and
  the gradient of Rust's buses.
- econirl: his estimates for group 4, with their standard errors.
- imitation: a gradient of maximum causal entropy on a grid. It plans up to a horizon, and this
  library without one.
"""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from venvs import python_of

from mellowmax import LogSumExp
from mellowmax.inverse import Demonstrations, Table, fit, log_likelihood, zurcher
from mellowmax.mdp import MDP, grid_world

jax.config.update("jax_enable_x64", True)
PEERS = Path(__file__).parent / "peers"
COMMIT = "414e9f98e3b1cf19544b1ca3b1e544ac5751c1e9"
RUSPY = (
    "ruspy",
    ["numba", "scipy", "pandas", f"git+https://github.com/OpenSourceEconomics/ruspy@{COMMIT}"],
)
ECONIRL = ("econirl", ["econirl==0.1.1"])
IMITATION = ("imitation", ["imitation==1.0.1"])
HORIZON, DISCOUNT, STEPS = 100, 0.99, 20


def peer(of, script, task=None):
    """What a peer's script prints, and what it writes."""
    with tempfile.TemporaryDirectory() as directory:
        given, out = (Path(directory) / name for name in ("task.npz", "out.npz"))
        if task is not None:
            np.savez(given, **task)
        command = [python_of(*of), PEERS / script, given, out]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = dict(np.load(out)) if out.exists() else {}
        return json.loads(done.stdout.splitlines()[-1]) | found


def taken(function, points):
    """The processor time of a call, after a first one that compiles."""
    jax.block_until_ready(function(points[0] + 0.1))
    began = time.process_time()
    for point in points:
        jax.block_until_ready(function(point))
    return (time.process_time() - began) / len(points)


def line(task, theirs, ours, goal, note):
    """One line of the table, in milliseconds."""
    ratio = f"{theirs / ours:.1f} (goal {goal})"
    print(f"{task:31s} {1e3 * theirs:9.2f} {1e3 * ours:8.2f}  {ratio:<17} {note}", flush=True)


def likelihood():
    """The likelihood and the gradient of the buses."""
    buses = zurcher([4])
    seen, counts = buses.demonstrations, buses.increments
    points = np.random.default_rng(0).normal([10.0, 2.3], [1.0, 0.3], (STEPS, 2))
    theirs = peer(
        RUSPY,
        "ruspy_likelihood.py",
        {"states": seen.states, "actions": seen.actions, "increments": counts, "points": points,
         "bins": 90, "discount": 0.9999},
    )  # fmt: skip
    arguments = buses.mdp, seen, buses.reward, LogSumExp(1.0)
    both = jax.jit(jax.value_and_grad(lambda x: log_likelihood(x, *arguments)))
    ours = taken(both, points)
    values, gradients = map(np.array, zip(*map(both, points), strict=True))
    apart = max(
        np.abs(values / theirs["values"] - 1).max(),
        (np.abs(gradients - theirs["gradients"]) / np.abs(gradients).max(0)).max(),
    )
    line("likelihood and gradient, ruspy", theirs["seconds"], ours, 5, f"apart {apart:.0e}")


def estimates():
    """A fit with its standard errors."""
    theirs = peer(ECONIRL, "econirl_fit.py")
    buses = zurcher([4])

    def whole(_):
        found = fit(buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0))
        return np.stack([found.parameters, np.sqrt(np.diag(found.covariance("outer")))])

    ours = taken(whole, np.zeros(3))
    found, errors = whole(0)
    cost = theirs["parameters"].get("replacement_cost", np.nan)
    error = theirs["errors"].get("replacement_cost", np.nan)
    ended = "converged" if theirs["converged"] else "not converged"
    note = f"RC {cost:.3f} +- {error:.3f} ({ended}), ours {found[0]:.3f} +- {errors[0]:.3f}"
    line("fit with errors, econirl", theirs["seconds"], ours, 10, note)


def gradients():
    """A gradient with respect to the rewards of all states of a grid."""
    rng = np.random.default_rng(0)
    for n, goal in ((10, 4), (20, 3)):
        grid = grid_world((n, n), slip=0.2, discount=DISCOUNT)
        shape = grid.available.shape
        bare = MDP(grid.successors, grid.probabilities, np.zeros(shape), DISCOUNT,
                   terminal=grid.terminal)  # fmt: skip
        rewards = 0.3 * rng.normal(size=(STEPS, n * n))
        transitions, _ = bare.to_numpy()
        lost = 1 - transitions.sum(-1)  # imitation's episodes do not end: the end is to stay there
        transitions[:, :, -1] += lost
        first = np.full(n * n, 1 / n**2)
        theirs = peer(
            IMITATION,
            "imitation_gradient.py",
            {"transitions": transitions, "first": first, "rewards": rewards, "horizon": HORIZON,
             "discount": DISCOUNT},
        )  # fmt: skip
        counts = np.where(bare.available, rng.integers(1, 9, shape), 0)
        arguments = bare, Demonstrations.from_counts(counts), Table(), LogSumExp(1.0)
        ours = taken(jax.jit(jax.grad(lambda x, a=arguments: log_likelihood(x, *a))), rewards)
        line(f"gradient {n} x {n}, imitation", theirs["seconds"], ours, goal, f"horizon {HORIZON}")


if __name__ == "__main__":
    print(f"{platform.processor() or platform.machine()}, JAX {jax.__version__}, milliseconds")
    print("task and peer                        peer     ours  times faster")
    likelihood()
    estimates()
    gradients()
