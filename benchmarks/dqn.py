"""DQN on CartPole-v1: steps per CPU second of one run, and the return that is reached.

`make bench` runs it. The peers are Stable-Baselines3 and a single file of PyTorch in the manner of
CleanRL (`peers/torch_dqn.py`, which says what it is), and CleanRL's own `dqn.py` if `--cleanrl`
names a clone of it. They have environments of their own that are made on the first run in
`build/bench`. All have the same settings, but for the loss of Stable-Baselines3 and the network of
CleanRL: each peer is compared with our learner under its own. A run is timed from the first update
on. `--steps` and `--seeds` make it smaller, `--no-peer` leaves the peers out.

Here each step is a call of JAX. By default JAX hands it to another thread, which takes longer than
the step itself; `jax_cpu_enable_async_dispatch` switches that off.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import time
from pathlib import Path

import jax

jax.config.update("jax_cpu_enable_async_dispatch", False)

import equinox as eqx
import numpy as np
import optax
from venvs import python_of

from mellowmax import Max, Mellowmax
from mellowmax.deep import dqn, evaluate, mlp, train
from mellowmax.environments import acrobot

ENVIRONMENT = "CartPole-v1"
EPISODES = 50
"""How many the greedy policy plays at the end."""
SETTINGS = {
    "learning_rate": 1e-3,
    "discount": 0.99,
    "target": 250,
    "hidden": 64,
    "depth": 2,
    "capacity": 10_000,
    "minibatch": 64,
    "learning_starts": 1000,
    "train_frequency": 4,
    "first_epsilon": 1.0,
    "last_epsilon": 0.05,
    "exploration_steps": 5000,
}
CLIPPED = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())
OURS = {name: x for name, x in SETTINGS.items() if name not in ("hidden", "depth")}
OURS["network"] = mlp(SETTINGS["hidden"], SETTINGS["depth"])
LEARNERS = {
    "ours, squared loss": dqn(Max(), **OURS),
    "ours, Huber's loss and clipping": dqn(Max(), **OURS, huber=1.0, optimiser=CLIPPED),
    "ours, mellowmax 5, no target": dqn(Mellowmax(5.0), **{**OURS, "target": None}),
}
PEERS = {
    "one file of PyTorch": (("dqn", "torch_dqn.py"), "ours, squared loss"),
    "Stable-Baselines3": (("dqn", "sb3_dqn.py"), "ours, Huber's loss and clipping"),
}
TORCH = ["torch==2.13.0", "gymnasium==1.2.3", "numpy==2.4.6"]
INSTALLS = {"dqn": (TORCH, ["stable-baselines3==2.7.1"]), "cleanrl": (TORCH, ["tyro"])}


class CleanRL(eqx.Module):
    """The network of CleanRL's `dqn.py`."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, key, observation, n_actions):
        sizes = (*observation.shape, 120, 84, n_actions)
        keys = jax.random.split(key, 3)
        pairs = zip(itertools.pairwise(sizes), keys, strict=True)
        self.layers = tuple(eqx.nn.Linear(*pair, key=k) for pair, k in pairs)

    def __call__(self, x):
        """The action values of an observation."""
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


class Clock:
    """Stops a training after some steps, and times those that learn."""

    def __init__(self, steps):
        self.steps, self.first, self.last = steps, None, None

    def __call__(self, progress):
        """As the callback of `train`."""
        now = (progress.steps, time.process_time())
        if self.first is None and progress.steps >= SETTINGS["learning_starts"]:
            self.first = now
        self.last = now
        return progress.steps >= self.steps

    @property
    def rate(self):
        """Steps per CPU second, from the first update on."""
        return (self.last[0] - self.first[0]) / (self.last[1] - self.first[1])


def ours(learner, steps, seed):
    """`(steps per CPU second, mean return)` of one run, once it has been compiled."""
    train(learner, ENVIRONMENT, episodes=80, seed=99, workers=0)
    clock = Clock(steps)
    result = train(learner, ENVIRONMENT, episodes=steps, seed=seed, workers=0, callback=clock)
    policy = jax.tree.map(lambda x: x[0], result.policies)
    return clock.rate, evaluate(policy, ENVIRONMENT, episodes=EPISODES, workers=0).mean


def theirs(peer, steps, seed):
    """What a peer's script measures, as `ours` does."""
    venv, script, *more = peer
    path = Path(__file__).parent / "peers" / script
    command = [python_of(venv, *INSTALLS[venv]), path, json.dumps(SETTINGS), str(steps), str(seed)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["steps_per_cpu_second"], found["mean_return"]


def compiled(steps):
    """Steps per second of as many runs as there are cores and more, in a compiled environment."""
    learner = dqn(Max(), **OURS)
    train(learner, acrobot.params(), episodes=5)
    runs, episodes = 8, max(1, steps // 400)
    began = time.perf_counter()
    result = train(learner, acrobot.params(), episodes=episodes, runs=runs)
    return result.lengths.sum() / (time.perf_counter() - began)


def main():
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--cleanrl", metavar="CLONE", type=Path)
    chosen = parser.parse_args()
    print(f"DQN on {ENVIRONMENT}, {chosen.steps:,} steps, {chosen.seeds} runs one after another")
    print("                              steps/CPU s   greedy return   runs")
    found, learners = {}, dict(LEARNERS)
    peers = {} if chosen.no_peer else dict(PEERS)
    if chosen.cleanrl is not None:
        own = "ours, CleanRL's network"
        learners[own] = dqn(Max(), **{**OURS, "network": CleanRL})
        peers["CleanRL"] = (("cleanrl", "cleanrl_dqn.py", chosen.cleanrl.resolve()), own)
    jobs = {name: (ours, learner) for name, learner in learners.items()}
    jobs |= {name: (theirs, peer) for name, (peer, _) in peers.items()}
    for name, (function, what) in jobs.items():
        rates, returns = zip(
            *(function(what, chosen.steps, seed) for seed in range(chosen.seeds)), strict=True
        )
        found[name] = np.median(rates)
        error = np.std(returns, ddof=1) / math.sqrt(len(returns)) if len(returns) > 1 else math.nan
        each = ", ".join(f"{x:.0f}" for x in returns)
        earned = f"{np.mean(returns):6.0f} +- {error:3.0f}"
        print(f"{name:32s} {found[name]:8,.0f} {earned:>15s}   {each}", flush=True)
    for name, (_, own) in peers.items():
        print(f"{own}: {found[own] / found[name]:.1f} x the steps of {name}")
    print(f"\n8 runs on the compiled acrobot: {compiled(chosen.steps):,.0f} steps/s in all")


if __name__ == "__main__":
    main()
