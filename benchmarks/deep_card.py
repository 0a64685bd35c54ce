"""REINFORCE on our Lunar Lander, thousands of runs at once on an accelerator: how fast, and why not faster?

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
import time

import jax
import numpy as np

from mellowmax.deep import block, reinforce, train
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
    """Train for so long; what was played then, second by second."""
    lines, began = [], time.perf_counter()

    def callback(progress):
        now = time.perf_counter() - began
        if not lines or now - lines[-1][0] > 1:
            lines.append(
                (now, progress.played, progress.steps, progress.computed, progress.mean_return)
            )
            if at_second:
                at_second(len(lines))
        return now > seconds

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
    """Milliseconds on the device by the name of the kernel, from a trace."""
    found = collections.Counter()
    counts = collections.Counter()
    for file in pathlib.Path(directory).rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            if "GPU" not in plane.name:
                continue
            for line in plane.lines:
                if "Stream" not in line.name:
                    continue
                for event in line.events:
                    found[event.name] += event.duration_ns / 1e6
                    counts[event.name] += 1
    return found, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    print(
        json.dumps(
            {
                "device": jax.devices()[0].device_kind,
                "jax": jax.__version__,
                "runs": 10 * options.runs,
            }
        ),
        flush=True,
    )
    with tempfile.TemporaryDirectory() as directory:

        def at_second(number):
            if options.trace and number == 8:
                jax.profiler.start_trace(directory)
            if options.trace and number == 10:
                jax.profiler.stop_trace()

        lines = trained(options.runs, options.seconds, at_second)
        for line in lines:
            print(json.dumps([round(x, 2) for x in line]), flush=True)
        first, last = lines[len(lines) // 3], lines[-1]
        took, episodes, steps, computed = (last[i] - first[i] for i in range(4))
        print(
            json.dumps(
                {
                    "million_steps_per_second": round(steps / took / 1e6, 2),
                    "episodes_per_second": round(episodes / took, 1),
                    "wasted": round(1 - steps / computed, 3),
                    "microseconds_a_step": round(took / computed * 1e6, 4),
                }
            ),
            flush=True,
        )
        if options.trace:
            found, counts = spent(directory)
            total = sum(found.values())
            print(json.dumps({"traced_ms": round(total, 1)}))
            for name, ms in found.most_common(60):
                print(
                    f"{ms:9.2f} ms {ms / total:6.1%} {counts[name]:7d} x {ms / counts[name] * 1000:8.1f} us  {name[:100]}"
                )


if __name__ == "__main__":
    main()
