"""Planning with a horizon beside QuantEcon's, and the average reward by both of its methods.

`make bench` runs it. QuantEcon's `backward_induction` runs in one process with ours, in an
environment of its own that is made on the first run in `build/bench`. No peer there has the average
reward, so Newton's method is compared with relative value iteration, each to an error of 1e-6 or
with 2,000 steps at most. Times are seconds of the processor, the best of several.
"""

from __future__ import annotations

import subprocess
import sys

import models
import numpy as np
from peers.model import timed
from venvs import python_of

import mellowmax as mm
from mellowmax.planning import solve

QUANTECON = ["quantecon==0.11.4"]
HORIZON, TOLERANCE, MOST = 50, 1e-6, 2000
CASES = {
    "dense 200x10": models.dense,
    "inventory 200": lambda: models.inventory(200),
    "inventory 1e4": lambda: models.inventory(10_000),
    "inventory 1e5": lambda: models.inventory(100_000),
}
ENDLESS = {
    "bus": models.bus,
    "inventory 1e4": lambda: models.inventory(10_000),
    "queue 1e4": lambda: models.queue(10_000),
    "ageing 1e4": lambda: models.ageing(10_000),
    "network 100x100": lambda: models.network(100),
}


def beside_quantecon():
    """One line for each model, in QuantEcon's environment."""
    from quantecon.markov import DiscreteDP, backward_induction

    print(f"horizon {HORIZON}        quantecon    ours  ours is")
    for name, model in CASES.items():
        mdp = model()
        transitions, rewards = mdp.to_numpy() if mdp.successors is None else mdp.to_scipy()
        arguments = rewards, transitions, mdp.discount
        if mdp.successors is not None:
            states, actions = np.divmod(np.arange(rewards.size), mdp.n_actions)
            arguments = rewards.ravel(), transitions, mdp.discount, states, actions
        peer = DiscreteDP(*arguments)
        theirs, ours = float("inf"), float("inf")
        for _ in range(3):  # in turns
            found = timed(lambda peer=peer: backward_induction(peer, HORIZON))
            theirs = min(theirs, found[1])
            solution = timed(lambda mdp=mdp: solve(mdp, mm.Max(), horizon=HORIZON))
            ours = min(ours, solution[1])
        assert np.allclose(found[2][0], solution[2].value)
        ratio = f"{ours / theirs:.2f} x its time"
        print(f"{name:17s} {theirs:9.5f} {ours:7.5f}  {ratio}", flush=True)


def average():
    """One line for each model and softmax."""
    import jax
    from jax.sharding import Mesh

    sweeps = Mesh(np.array(jax.devices("cpu")[:1]), ("states",))
    print("\naverage reward    softmax      newton  steps  sweeps: s  steps    error")
    options = {"average": True, "tolerance": TOLERANCE, "max_iterations": MOST, "throw": False}
    for name, model in ENDLESS.items():
        mdp = model()
        for softmax in (mm.Max(), mm.Mellowmax(5.0)):
            line = f"{name:17s} {type(softmax).__name__:10s}"
            for mesh in (None, sweeps):
                _, seconds, solution = timed(
                    lambda mdp=mdp, softmax=softmax, mesh=mesh: solve(
                        mdp, softmax, mesh=mesh, **options
                    )
                )
                line += f" {seconds:8.4f} {solution.iterations:6d} "
            print(f"{line} {solution.error_bound:8.1e}", flush=True)


if __name__ == "__main__":
    if "beside" in sys.argv:
        beside_quantecon()
    else:
        python = python_of("quantecon", QUANTECON, beside_ours=True)
        subprocess.run([python, __file__, "beside"], check=True)
        average()
