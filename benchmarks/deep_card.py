"""REINFORCE on our Lunar Lander on an accelerator, thousands of runs at once: how fast is it?

    python benchmarks/deep_card.py [--runs 400] [--batch 100] [--seconds 60] [--episodes 40000]
        [--trace 40] [--alone]

The ten settings of figure 11, as it trains them, from the first episode on: steps and episodes per
second, and the share of the computed steps that were wasted, played behind an episode's end or at a
slot without one: after the first third of the time, and in all. With enough --seconds, or few
--episodes, which must be a multiple of 500, this is a whole training. With --trace a second of the
training is looked at: how long the device was busy, and with what. With --alone: are runs that are
trained alone the same, bit for bit, as among others?
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import mellowmax as mm
from mellowmax.deep import Network, Policy, train
from mellowmax.deep.play.act_kernel import act
from mellowmax.environments import lunar_lander
from mellowmax.experiments.items.fig11 import SOLVED_RETURN
from mellowmax.experiments.items.fig11.parts import NEAREST, Config, cell_names, settings
from mellowmax.experiments.items.fig11.readings import learner_of
from mellowmax.experiments.items.fig11.runs import BIN

CONFIG = Config(runs=1, other_runs=0, runs_of_a_row=1)
"""The settings of the figure, each once."""


def learner(batch):
    (name,) = cell_names(CONFIG)
    return learner_of(settings(CONFIG, name).assign(batch=batch), CONFIG.hidden)


def trained(runs, batch, seconds, episodes, at_second=None):
    """Train for some seconds after compiling, or to the end; what was played, second by second."""
    lines = []

    def callback(progress):
        now = progress.seconds - (lines[0][0] if lines else 0.0)
        if not lines or now > len(lines) or progress.episodes == progress.total:
            counts = (progress.played, progress.steps, progress.computed)
            lines.append((progress.seconds, *counts))
            if len(lines) % max(1, seconds // 20) == 0:
                names = ("at", "episodes", "steps", "computed")
                line = dict(zip(names, lines[-1], strict=True), mean=progress.mean_return)
                say(**{name: round(value, 1) for name, value in line.items()})
            if at_second:
                at_second(len(lines))
        return len(lines) > seconds

    train(
        learner(batch),
        lunar_lander.params(height="2016"),
        episodes=episodes,
        runs=runs,
        bin=BIN,
        solved_return=SOLVED_RETURN,
        callback=callback,
    )
    return lines


def spent(directory):
    """Milliseconds on the device and calls, by the program and the kernel, from a trace."""
    found, counts = collections.Counter(), collections.Counter()
    for file in pathlib.Path(directory).rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            for line in plane.lines:
                if "GPU" not in plane.name or "Stream" not in line.name:
                    continue
                for event in line.events:
                    program = dict(event.stats).get("hlo_module", "")
                    found[program, event.name] += event.duration_ns / 1e6
                    counts[program, event.name] += 1
    return found, counts


def microseconds(function, *arguments, repeats=200):
    """The time of one call of a function among many in a compiled loop."""

    @jax.jit
    def loop(arguments):
        def one(i, carry):
            first, *rest = arguments
            moved = first + jnp.asarray(i, first.dtype) * 1e-6
            return carry + function(moved, *rest)

        shape = jax.eval_shape(function, *arguments)
        return jax.lax.fori_loop(0, repeats, one, jnp.zeros(shape.shape, shape.dtype))

    jax.block_until_ready(loop(arguments))
    began = time.perf_counter()
    jax.block_until_ready(loop(arguments))
    return (time.perf_counter() - began) / repeats * 1e6


def of_policies(slots):
    """Microseconds of a step's networks and choices in this many slots, under both policies."""
    for name, softmax in (("boltzmann", mm.Boltzmann(3.0)), ("mellowmax", mm.Mellowmax(8.0))):
        network = Network.init(jax.random.key(0), (8, 16, 4))
        policy = Policy(network, softmax)
        policies = jax.tree.map(
            lambda x: jnp.broadcast_to(jnp.asarray(x, jnp.float32), (slots, *np.shape(x))), policy
        )
        observations = jax.random.normal(jax.random.key(1), (slots, 8), jnp.float32)
        uniforms = jax.random.uniform(jax.random.key(2), (slots,), jnp.float32)

        def choice(observations, uniforms, policies):
            return act(policies, uniforms, observations)

        took = microseconds(choice, observations, uniforms, policies)
        say(slots=slots, policy=name, microseconds_of_networks_and_choices=round(took, 1))


def same_alone(runs, batch):
    """Are some runs, trained alone, the same as among all?"""
    options = {
        "episodes": 5 * batch,
        "runs": runs,
        "environment": lunar_lander.params(height="2016"),
    }
    among = train(learner(batch), **options)
    alone = train(learner(batch), **options | {"runs": [3, runs - 1]})
    pairs = [(among.returns[:, [3, -1]], alone.returns)]
    pairs += [
        (x[:, [3, -1]], y)
        for x, y in zip(
            jax.tree.leaves(among.policies.network),
            jax.tree.leaves(alone.policies.network),
            strict=True,
        )
    ]
    say(runs=10 * runs, alone=20, same_bits=all(np.array_equal(x, y) for x, y in pairs))


def say(**line):
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400, help="of each of the ten settings")
    parser.add_argument("--batch", type=int, default=NEAREST.batch, help="episodes of an update")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--episodes", type=int, default=CONFIG.episodes, help="of a run")
    parser.add_argument("--trace", type=int, metavar="SECOND", help="when to look at the device")
    parser.add_argument("--alone", action="store_true", help="compare runs alone and among others")
    parser.add_argument("--lines", type=int, default=0, help="of kernels in a trace")
    options = parser.parse_args()
    kind = jax.devices()[0].device_kind
    say(device=kind, jax=jax.__version__, runs=10 * options.runs, batch=options.batch)
    with tempfile.TemporaryDirectory() as directory:

        def at_second(number):
            if options.trace and number == options.trace:
                jax.profiler.start_trace(directory)
            if options.trace and number == options.trace + 1:
                jax.profiler.stop_trace()

        lines = trained(options.runs, options.batch, options.seconds, options.episodes, at_second)
        first, last = lines[len(lines) // 3], lines[-1]
        took, episodes, steps, computed = (last[i] - first[i] for i in range(4))
        say(
            compile_seconds=round(lines[0][0], 1),
            million_steps_per_second=round(steps / took / 1e6, 2),
            episodes_per_second=round(episodes / took, 1),
            wasted=round(1 - steps / computed, 3),
            wasted_in_all=round(1 - last[2] / last[3], 3),
        )
        if options.trace:
            found, counts = spent(directory)
            total = sum(found.values())
            shares = collections.Counter()
            for (program, name), ms in found.items():
                part = "environment" if name.startswith("lunar_lander") else program
                shares[part] += ms / total
            say(busy_ms=round(total, 1), shares={k: round(v, 3) for k, v in shares.most_common(6)})
            for (program, name), ms in found.most_common(options.lines):
                count = counts[program, name]
                each = ms / count * 1000
                print(f"{ms:8.2f} ms {count:6d} x {each:7.1f} us  {program[:20]:20} {name[:60]}")
    of_policies(20_480)
    if options.alone:
        same_alone(options.runs, options.batch)


if __name__ == "__main__":
    main()
