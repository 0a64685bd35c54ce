"""REINFORCE on our Lunar Lander on an accelerator, thousands of runs at once: how fast is it?

    python benchmarks/deep_card.py [--runs 400] [--seconds 60] [--trace]

The ten settings of figure 11, with the paper's batches and network, from the first episode on.
Prints steps and episodes per second, the share of computed steps that were wasted (played behind an
episode's end, or at an empty place), the time of an update, and with --trace where the time of the
device goes.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import tempfile

import jax
import numpy as np

from mellowmax.deep import reinforce, train
from mellowmax.environments import lunar_lander
from mellowmax.experiments.boltzmann_or_mellowmax import BoltzmannOrMellowmax

BETAS, OMEGAS = (1.0, 2.0, 3.0, 5.0, 10.0), (3.0, 5.0, 7.0, 8.0, 11.0)
EPISODES = 40_000


def learner():
    parameters = np.array([*BETAS, *OMEGAS])
    return reinforce(
        BoltzmannOrMellowmax(parameters, np.repeat([0.0, 1.0], 5)),
        discount=1.0,
        reward_to_go=False,
    )


def trained(runs, seconds, at_second=None):
    """Train for so long after compiling; what was played then, second by second."""
    lines = []

    def callback(progress):
        now = progress.seconds - (lines[0][0] if lines else 0.0)
        if not lines or now > len(lines):
            counts = (progress.played, progress.steps, progress.computed, progress.mean_return)
            lines.append((progress.seconds, *counts))
            if at_second:
                at_second(len(lines))
        return len(lines) > seconds

    train(
        learner(),
        lunar_lander.params(height="2016"),
        episodes=EPISODES,
        runs=runs,
        bin=500,
        solved_return=200.0,
        callback=callback,
    )
    return lines


def spent(directory):
    """Milliseconds on the device and calls, by the name of a kernel, from a trace."""
    found, counts = collections.Counter(), collections.Counter()
    for file in pathlib.Path(directory).rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            for line in plane.lines:
                if "GPU" not in plane.name or "Stream" not in line.name:
                    continue
                for event in line.events:
                    found[event.name] += event.duration_ns / 1e6
                    counts[event.name] += 1
    return found, counts


def say(**line):
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400, help="of each of the ten settings")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--trace", type=int, metavar="SECOND", help="when to look at the device")
    options = parser.parse_args()
    kind = jax.devices()[0].device_kind
    say(device=kind, jax=jax.__version__, runs=10 * options.runs)
    with tempfile.TemporaryDirectory() as directory:

        def at_second(number):
            if options.trace and number == options.trace:
                jax.profiler.start_trace(directory)
            if options.trace and number == options.trace + 1:
                jax.profiler.stop_trace()

        lines = trained(options.runs, options.seconds, at_second)
        for seconds, episodes, steps, computed, mean in lines[:: max(1, len(lines) // 20)]:
            say(at=round(seconds, 1), episodes=episodes, steps=steps, computed=computed, mean=mean)
        first, last = lines[len(lines) // 3], lines[-1]
        took, episodes, steps, computed = (last[i] - first[i] for i in range(4))
        say(
            compile_seconds=round(lines[0][0], 1),
            million_steps_per_second=round(steps / took / 1e6, 2),
            episodes_per_second=round(episodes / took, 1),
            wasted=round(1 - steps / computed, 3),
        )
        if options.trace:
            found, counts = spent(directory)
            total = sum(found.values())
            say(traced_ms=round(total, 1))
            for name, ms in found.most_common(70):
                each = ms / counts[name] * 1000
                print(f"{ms:8.2f} ms {ms / total:6.1%} {counts[name]:6d} x {each:7.1f} us {name}")


if __name__ == "__main__":
    main()
