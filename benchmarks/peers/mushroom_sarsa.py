"""MushroomRL's tabular SARSA on the multi-passenger taxi: `POLICY PARAMETER LEARNING_RATE STEPS`.

The policies are `epsilon-greedy`, `boltzmann` and `mellowmax`. One run is timed, from a table of
zeros and after a short warm-up; the same run, repeated from its seed, gives the mean reward, so
that collecting it takes no time. Each of `--processes N` does all that with a seed of its own, and
the sum of their rates is reported: a run keeps one core busy.

MushroomRL's pins are old, so it is installed with `pip install --no-deps mushroom-rl==1.10.2` after
what it imports: NumPy, SciPy, PyTorch, scikit-learn, tqdm, pygame and OpenCV.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"  # it would be on stdout

import numpy as np
from mushroom_rl.algorithms.value import SARSA
from mushroom_rl.core import Core
from mushroom_rl.environments.generators.taxi import generate_taxi
from mushroom_rl.policy import Boltzmann, EpsGreedy, Mellowmax
from mushroom_rl.utils.parameters import Parameter

POLICIES = {"epsilon-greedy": EpsGreedy, "boltzmann": Boltzmann, "mellowmax": Mellowmax}
GRID = """\
S#F.#.G
.#..#..
.......
##...##
......F
F.....#
"""  # the goal is a G to the generator, and the last line has to end as well
WARM_UP = 1000


def taxi():
    """Three passengers; an action fails with probability 0.1, and then goes to a side."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taxi.txt"
        path.write_text(GRID)
        return generate_taxi(grid=str(path), prob=0.9, rew=(0, 1, 3, 15), gamma=0.99)


def learn(mdp, chosen, seed, steps, callback=None):
    """Seconds that a new agent takes to learn, its construction apart."""
    np.random.seed(seed)  # noqa: NPY002, which MushroomRL draws from
    policy = POLICIES[chosen.policy](Parameter(chosen.parameter))
    agent = SARSA(mdp.info, policy, Parameter(chosen.learning_rate))
    core = Core(agent, mdp, callback_step=callback)
    began = time.perf_counter()
    core.learn(n_steps=steps, n_steps_per_fit=1, quiet=True)
    return time.perf_counter() - began


def measure(mdp, chosen, seed):
    """`(steps per second, mean reward)` of one process."""
    learn(mdp, chosen, seed, WARM_UP)
    seconds = learn(mdp, chosen, seed, chosen.steps)
    rewards = []
    learn(mdp, chosen, seed, chosen.steps, lambda samples: rewards.append(samples[0][2]))
    return chosen.steps / seconds, float(np.mean(rewards))


def main():
    """Print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", choices=POLICIES)
    parser.add_argument("parameter", type=float, help="epsilon, beta or omega")
    parser.add_argument("learning_rate", type=float)
    parser.add_argument("steps", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the first process")
    chosen = parser.parse_args()
    mdp = taxi()
    tasks = [(mdp, chosen, chosen.seed + i) for i in range(chosen.processes)]
    if chosen.processes == 1:
        measured = [measure(*tasks[0])]
    else:
        with multiprocessing.get_context("fork").Pool(chosen.processes) as pool:
            measured = pool.starmap(measure, tasks, chunksize=1)
    rates, rewards = zip(*measured, strict=True)
    found = {
        "steps_per_second": sum(rates),
        "mean_reward": float(np.mean(rewards)),
        "n_states": mdp.info.observation_space.n,
        "policy": chosen.policy,
        "parameter": chosen.parameter,
        "learning_rate": chosen.learning_rate,
        "steps": chosen.steps,
        "processes": chosen.processes,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
