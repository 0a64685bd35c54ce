"""Planning against other solvers, as ratios in one run, each to the same residual.

`make bench` runs it. Every solver runs in a process of its own, and every peer in an environment of
its own, made on the first run in `build/bench`. A time is the best of the solves after the first,
as many as fit into a second or so. The first one also compiles: it is reported apart, and is
shorter from the second run on, because compiled programs are kept. `--peer NAME` and `--model NAME`
restrict it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
from venvs import BUILD, python_of

from mellowmax.mdp import MDP, garnet, grid_world

ROOT = Path(__file__).parent.parent
PEERS = {
    "quantecon": ["quantecon==0.11.4"],
    "mdpsolver": ["mdpsolver==0.10.2", "scipy"],
    "jaxdp": ["jaxdp==0.4.0", "jax==0.10.2"],
}
RESIDUAL = 1e-6
DISCOUNT = 0.99
OMEGA = 16.55
LIMIT = 300
"""Seconds that a peer gets for a model, its set-up included."""


def dense(n_states, n_actions, seed):
    """Transitions to all states, uniform on the simplex, and standard normal rewards."""
    rng = np.random.default_rng(seed)
    transitions = rng.exponential(size=(n_states, n_actions, n_states))
    transitions /= transitions.sum(-1, keepdims=True)
    return MDP.from_arrays(transitions, rng.normal(size=(n_states, n_actions)), DISCOUNT)


def grid(size):
    """A tenth of the cells are walls; the goal is in the last corner."""
    return grid_world((size, size), walls=0.1, seed=0, discount=DISCOUNT)


MODELS = {
    "dense 200x10": lambda: dense(200, 10, 0),
    "garnet 1e4x10x10": lambda: garnet(10**4, 10, 10, 0, discount=DISCOUNT),
    "garnet 1e5x10x10": lambda: garnet(10**5, 10, 10, 0, discount=DISCOUNT),
    "garnet 1e6x5x5": lambda: garnet(10**6, 5, 5, 0, discount=DISCOUNT),
    "grid 316x316": lambda: grid(316),
    "grid 1000x1000": lambda: grid(1000),
}
# Goals at 2 cores: how many times faster than the peer.
GOALS = {"quantecon": 1.0, "mdpsolver": 10.0, "jaxdp": 10.0}
GOAL_OF_THE_LARGEST = ("quantecon", "garnet 1e6x5x5", 3.0)


def saved(name):
    """The model's file."""
    path = BUILD / "models" / f"{name.replace(' ', '-')}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        MODELS[name]().save(path)
    return path


def run(python, script, model, operator):
    """What a solver's process reports, or why it does not."""
    command = [python, ROOT / "benchmarks" / script, saved(model), operator, str(RESIDUAL)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"skipped": f"over {LIMIT} s"}
    if done.returncode:
        return {"skipped": done.stderr.strip().splitlines()[-1][:60]}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Print one line for each model, operator and solver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, action="append")
    parser.add_argument("--model", choices=MODELS, action="append")
    chosen = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, residual {RESIDUAL:g}, discount {DISCOUNT}"
    )
    print("model             operator   solver      seconds  first  residual  memory  ours is")
    for model in chosen.model or MODELS:
        for operator in ("max", f"mellowmax {OMEGA}"):
            ours = run(sys.executable, "ours.py", model, operator)
            line(model, operator, "mellowmax", ours, f"{ours.get('method', '')}")
            for peer in chosen.peer or PEERS:
                if operator != "max" and peer != "jaxdp":
                    continue
                theirs = run(
                    python_of(peer, PEERS[peer]), f"peers/{peer}_solve.py", model, operator
                )
                verdict = ""
                if "seconds" in theirs and "seconds" in ours:
                    ratio = theirs["seconds"] / ours["seconds"]
                    goal = GOALS[peer]
                    if (peer, model) == GOAL_OF_THE_LARGEST[:2]:
                        goal = GOAL_OF_THE_LARGEST[2]
                    verdict = (
                        f"{ratio:.1f} x faster (goal {goal:g}{'' if ratio >= goal else ', missed'})"
                    )
                line(model, operator, peer, theirs, verdict)


def line(model, operator, solver, result, verdict):
    """One line of the table."""
    start = f"{model:17s} {operator.split()[0]:10s} {solver:10s}"
    if "skipped" in result:
        print(f"{start} {result['skipped']}", flush=True)
        return
    memory = f"{result['memory']:.1f} x" if "memory" in result else ""
    print(
        f"{start} {result['seconds']:8.4f} {result['first']:6.2f}  {result['residual']:.1e} "
        f"{memory:>7s}  {verdict}",
        flush=True,
    )


if __name__ == "__main__":
    main()
