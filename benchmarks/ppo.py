"""PPO: steps per CPU second of a single run, and the returns at its end.

`make bench` runs it. In Gymnasium's environments the peers are Stable-Baselines3 and a single file
of PyTorch in the manner of CleanRL (`peers/torch_ppo.py`, which says what it is). In compiled
environments the peer is purejaxrl. It is no package, nor is CleanRL: `--purejaxrl` and `--cleanrl`
name clones, whose own `ppo.py` are run. The peers have environments of their own that are made on
the first run in `build/bench`. All have the same settings, and a learning rate that stays as it is.
Compiling is left out: a run is timed from its second update on. `--steps` and `--seeds` choose how
many, `--no-peer` leaves the peers out, and `--only Acrobot-v1` has that environment alone.

`--returns CartPole` prints the returns that are reached instead, by `--seeds` runs side by side and
with the steps and the settings that they are published for: see `PUBLISHED`.

`--card` prints steps per second by the number of runs instead, in the compiled CartPole, on JAX's
default device.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from pathlib import Path

import jax
import numpy as np
from venvs import python_of

from mellowmax import Boltzmann, Mellowmax
from mellowmax.deep import FunctionalEnvironment, linear, mlp, ppo, train
from mellowmax.environments import acrobot, cartpole, lunar_lander
from mellowmax.environments.gymnax import functional

SETTINGS = {
    "learning_rate": 2.5e-4,
    "discount": 0.99,
    "trace": 0.95,
    "environments": 4,
    "steps": 128,
    "epochs": 4,
    "minibatches": 4,
    "clip": 0.2,
    "entropy": 0.01,
    "value": 0.5,
}
LAST = 100
"""How many episodes at the end of a run count."""
GYMNASIUM, COMPILED = ("CartPole-v1", "Acrobot-v1"), {"CartPole": cartpole, "Acrobot": acrobot}


def breakout():
    """MinAtar's, of gymnax, a package of its own."""
    import gymnax

    env, params = gymnax.make("Breakout-MinAtar")
    return FunctionalEnvironment(*functional(env, params), params.max_steps_in_episode)


LANDER = {"environments": 16, "steps": 1024, "minibatches": 256, "discount": 0.999, "trace": 0.98}
BREAKOUT_STEPS = 10_000_000
BREAKOUT = {
    "environments": 64,
    "minibatches": 8,
    "learning_rate": linear(5e-3, 0.0, updates=BREAKOUT_STEPS // (64 * SETTINGS["steps"])),
    "network": mlp(64, 2, "relu", "orthogonal"),
}
"""As in purejaxrl's notebook on MinAtar."""
PUBLISHED = {
    "CartPole": (cartpole.params, {}, 500_000, "490 +- 6 (CleanRL)"),
    "Acrobot": (acrobot.params, {}, 500_000, "-86 +- 1 (CleanRL)"),
    "LunarLander": (
        lunar_lander.params,
        LANDER | {"learning_rate": 3e-4, "value_clip": math.inf},
        1_000_000,
        "234 +- 54 in version 2 (the zoo of Stable-Baselines3)",
    ),
    "Breakout": (breakout, BREAKOUT, BREAKOUT_STEPS, "28 (gymnax, one run in other settings)"),
}
"""Environments, the settings for which a return was published where they are not `SETTINGS`, the
steps, and that return."""
TORCH = {"one file of PyTorch": "torch_ppo.py", "Stable-Baselines3": "sb3_ppo.py"}
INSTALLS = {
    "ppo": (["torch==2.13.0", "gymnasium==1.2.3", "numpy==2.4.6"], ["stable-baselines3==2.7.1"]),
    "purejaxrl": (["gymnax==1.0.1", "flax", "distrax", "optax"],),
    "cleanrl": (["torch==2.13.0", "gymnasium==1.2.3", "numpy==2.4.6"], ["tyro"]),
}
RUNS = (1, 16, 64, 256, 1024)
"""How many runs learn at a time, on a card."""


class Clock:
    """Times a training from its second report on."""

    def __init__(self, clock):
        self.clock, self.reports = clock, []

    def __call__(self, progress):
        """As the callback of `train`."""
        self.reports.append((progress.steps, self.clock()))

    @property
    def rate(self):
        """Steps per second."""
        (first, began), (last, ended) = self.reports[1], self.reports[-1]
        return (last - first) / (ended - began)


def ours(softmax, environment, steps, seed):
    """`(steps per CPU second, mean return)` of one run."""
    options = {"workers": 0} if isinstance(environment, str) else {}
    clock = Clock(time.process_time)
    learner = ppo(softmax, **SETTINGS)
    result = train(learner, environment, steps=steps, seed=seed, callback=clock, **options)
    returns = result.returns[0]
    return clock.rate, float(returns[np.isfinite(returns)][-LAST:].mean())


def theirs(venv, script, *arguments):
    """What a peer's script measures, as `ours` does."""
    path = Path(__file__).parent / "peers" / script
    command = [python_of(venv, *INSTALLS[venv]), path, json.dumps(SETTINGS), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["steps_per_cpu_second"], found["mean_return"]


def compare(title, jobs, chosen):
    """Print what each of some functions of steps and a seed measures, and ratios to the first."""
    print(f"{title}, {chosen.steps:,} steps, {chosen.seeds} runs one after another")
    print("                             steps/CPU s   return   runs")
    first = None
    for name, job in jobs.items():
        rates, returns = zip(*(job(seed) for seed in range(chosen.seeds)), strict=True)
        rate = np.median(rates)
        first = first or rate
        error = np.std(returns, ddof=1) / math.sqrt(len(returns)) if len(returns) > 1 else math.nan
        each = ", ".join(f"{x:.0f}" for x in returns)
        earned = f"{np.mean(returns):5.0f} +- {error:3.0f}"
        ratio = "" if rate is first else f"   ours takes {first / rate:.1f} x the steps"
        print(f"{name:26s} {rate:12,.0f} {earned}   {each}{ratio}", flush=True)
    print()


def returns(name, chosen):
    """Print the returns at the end of some runs, beside the one that was published."""
    make, settings, steps, published = PUBLISHED[name]
    steps = steps if chosen.steps is None else chosen.steps
    print(f"{name}, {steps:,} steps, {chosen.seeds} runs; published: {published}")
    for softmax in (Boltzmann(1.0), Mellowmax(2.0)):
        learner = ppo(softmax, **SETTINGS | settings)
        result = train(learner, make(), steps=steps, runs=chosen.seeds)
        last = [run[np.isfinite(run)][-LAST:].mean() for run in result.returns]
        error = np.std(last, ddof=1) / math.sqrt(len(last)) if len(last) > 1 else math.nan
        each = ", ".join(f"{x:.0f}" for x in last)
        name = f"{type(softmax).__name__.lower()} {jax.tree.leaves(softmax)[0]:g}"
        print(f"{name:14s} {np.mean(last):7.1f} +- {error:4.1f}   {each}", flush=True)
    print()


def card(steps):
    """Print steps per second by the number of runs."""
    print(f"PPO in the compiled CartPole on {jax.devices()[0].device_kind}")
    print("   runs  softmax        steps/s")
    for softmax in (Boltzmann(1.0), Mellowmax(2.0)):
        for runs in RUNS:
            clock = Clock(time.perf_counter)
            learner = ppo(softmax, **SETTINGS)
            train(learner, cartpole.params(), steps=steps, runs=runs, callback=clock)
            name = type(softmax).__name__
            print(f"{runs:7d}  {name:10s} {clock.rate:11,.0f}", flush=True)


def main():
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--only", choices=(*GYMNASIUM, *COMPILED), nargs="+")
    parser.add_argument("--purejaxrl", metavar="CLONE", type=Path)
    parser.add_argument("--cleanrl", metavar="CLONE", type=Path)
    parser.add_argument("--returns", choices=PUBLISHED, nargs="+")
    parser.add_argument("--card", action="store_true")
    chosen = parser.parse_args()
    if chosen.card:
        card(chosen.steps or 40 * 512)
        return
    if chosen.returns:
        for name in chosen.returns:
            returns(name, chosen)
        return
    chosen.steps = chosen.steps or 100_000
    wanted = chosen.only or (*GYMNASIUM, *COMPILED)
    softmaxes = {"ours, Boltzmann 1": Boltzmann(1.0), "ours, mellowmax 2": Mellowmax(2.0)}
    for environment in filter(GYMNASIUM.__contains__, wanted):
        jobs = {
            name: lambda seed, s=softmax, e=environment: ours(s, e, chosen.steps, seed)
            for name, softmax in softmaxes.items()
        }
        if not chosen.no_peer:
            jobs |= {
                name: lambda seed, s=script, e=environment: theirs("ppo", s, chosen.steps, seed, e)
                for name, script in TORCH.items()
            }
        if chosen.cleanrl is not None:
            clone = chosen.cleanrl.resolve()
            jobs["CleanRL"] = lambda seed, e=environment, c=clone: theirs(
                "cleanrl", "cleanrl_ppo.py", chosen.steps, seed, e, c
            )
        compare(environment, jobs, chosen)
    for environment in filter(COMPILED.__contains__, wanted):
        module = COMPILED[environment]
        jobs = {
            name: lambda seed, s=softmax, m=module: ours(s, m.params(), chosen.steps, seed)
            for name, softmax in softmaxes.items()
        }
        if chosen.purejaxrl is not None:
            jobs["purejaxrl"] = lambda seed, e=environment: theirs(
                "purejaxrl",
                "purejaxrl_ppo.py",
                chosen.steps,
                seed,
                f"{e}-v1",
                chosen.purejaxrl.resolve(),
            )
        compare(f"{environment}, compiled", jobs, chosen)


if __name__ == "__main__":
    main()
