"""SARSA on the taxi against MushroomRL, in steps per second, and how the cost grows with the runs.

`make bench` runs it. MushroomRL does one run at a time in an environment of its own, made on the
first run in `build/bench`; the ratio is to one such process, and the last column to as many of them
as there are cores. On a GPU it prints our rates alone. `--no-peer` leaves MushroomRL out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import jax
from venvs import python_of

from mellowmax.environments import taxi
from mellowmax.learning import sarsa, train
from mellowmax.softmax import SOFTMAXES

PARAMETERS = {"epsilon-greedy": 0.1, "boltzmann": 1.5, "mellowmax": 2.0}
LEARNING_RATE = 0.4
RATIOS = {"epsilon-greedy": 1000, "boltzmann": 1000, "mellowmax": 1500}
"""Goals on two cores: how many times as many steps as MushroomRL."""
RATES = {"boltzmann": 1e9, "mellowmax": 5e8}
"""Goals on an H200, in steps per second at 100,000 learners."""
LEARNERS = (10, 100, 1_000, 10_000, 100_000)
PEER_STEPS = 100_000
# It pins an old NumPy, so it comes without its pins, after what it imports.
MUSHROOM = (
    ["numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "tqdm==4.70.1", "pygame==2.6.1"],
    ["opencv-python-headless==5.0.0.93", "torch==2.13.0"],
    ["--no-deps", "mushroom-rl==1.10.2"],
)


def theirs(policy, parameter, processes):
    """Steps per second of MushroomRL."""
    script = Path(__file__).parent / "peers" / "mushroom_sarsa.py"
    settings = [policy, parameter, LEARNING_RATE, PEER_STEPS, "--processes", processes]
    command = [python_of("mushroom", *MUSHROOM), script, *map(str, settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["steps_per_second"]


def ours(softmax, learners, total):
    """`(steps per second, seconds to compile)`, the best of three."""
    steps = max(1280, total // max(learners, 64) // 1280 * 1280)
    params, times = taxi.params(), []
    for _ in range(4):
        began = time.perf_counter()
        train(sarsa(softmax, LEARNING_RATE), params, steps=steps, runs=learners, tables=False)
        times.append(time.perf_counter() - began)
    return learners * steps / min(times[1:]), times[0] - min(times[1:])


def main():
    """Print the comparison, and the cost of a step by the number of learners."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peer", action="store_true")
    peer = not parser.parse_args().no_peer
    device = jax.local_devices()[0]
    on_cpu = device.platform == "cpu"
    cores = len(os.sched_getaffinity(0))
    print(f"SARSA on the taxi, learning rate {LEARNING_RATE}, on {device.device_kind}", end="")
    print(f", {cores} cores" if on_cpu else "")
    if on_cpu:
        print("policy            ours, steps/s  compile   MushroomRL    ratio  goal  on all cores")
        for policy, parameter in PARAMETERS.items():
            rate, compiling = ours(SOFTMAXES[policy](parameter), 1024, 2**26)
            line = f"{policy:16s} {rate:14,.0f} {compiling:6.1f} s"
            if peer:
                one, all_cores = (theirs(policy, parameter, n) for n in (1, cores))
                line += f"   {one:10,.0f} {rate / one:8,.0f} {RATIOS[policy]:5,}"
                line += f"  {rate / all_cores:12,.0f}"
            print(line, flush=True)
    print("\nSteps per second by the number of learners")
    print("policy          " + "".join(f"{n:>16,}" for n in LEARNERS))
    for policy, parameter in PARAMETERS.items():
        softmax = SOFTMAXES[policy](parameter)
        rates = [ours(softmax, n, 2**25 if on_cpu else n * 12_800)[0] for n in LEARNERS]
        goal = f"  goal {RATES[policy]:.0e}" if policy in RATES and not on_cpu else ""
        print(f"{policy:16s}" + "".join(f"{rate:16,.0f}" for rate in rates) + goal, flush=True)


if __name__ == "__main__":
    main()
