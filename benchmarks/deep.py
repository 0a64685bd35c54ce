"""REINFORCE on Lunar Lander, in episodes and steps per second, and where the time goes.

`make bench` runs it. It is compared with the usual loop in PyTorch, in an environment of its own
that is made on the first run in `build/bench`, and with the bare environment: as many processes as
there are cores that take random actions and do nothing else. Episodes differ in length from policy
to policy, so the ratio to the bare environment is one of steps. `--no-peer` leaves PyTorch out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from venvs import python_of

import mellowmax as mm
from mellowmax._common.threads import cores
from mellowmax.deep import reinforce, train

ENVIRONMENT = "LunarLander-v3"
SOFTMAXES = {"boltzmann": mm.Boltzmann(1.0), "mellowmax": mm.Mellowmax(8.0)}
RUNS, EPISODES = 128, 250
SECONDS = 15
PEER_EPISODES = 200
GOALS = {"PyTorch": 8.0, "bare": 0.7}
TORCH = (["torch==2.13.0", "gymnasium[box2d]==1.4.0"],)
BARE = """
import time, gymnasium, numpy
env = gymnasium.make("LunarLander-v3", disable_env_checker=True)
env.reset(seed=0)
actions = numpy.random.default_rng(0).integers(0, 4, 1 << 16).tolist()
steps = episodes = 0
began = time.perf_counter()
while time.perf_counter() - began < {seconds}:
    for action in actions[:1000]:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
            episodes += 1
    actions = actions[1000:] + actions[:1000]
    steps += 1000
print(steps / (time.perf_counter() - began), episodes / (time.perf_counter() - began))
"""


def bare():
    """`(steps, episodes)` per second of the environment alone, on all cores."""
    command = [sys.executable, "-c", BARE.format(seconds=SECONDS)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(cores())]
    rates = [tuple(map(float, process.communicate()[0].split())) for process in processes]
    return tuple(map(sum, zip(*rates, strict=True)))


def theirs():
    """`(steps, episodes)` per second of the loop in PyTorch."""
    script = Path(__file__).parent / "peers" / "torch_reinforce.py"
    command = [python_of("torch", *TORCH), script, "1.0", str(PEER_EPISODES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["steps_per_second"], found["episodes_per_second"]


def ours(softmax):
    """`(steps, episodes)` per second of training, and the CPU time of a second there and here."""
    train(reinforce(softmax), ENVIRONMENT, episodes=20, runs=RUNS)  # compiles
    before = _cpu_times()
    began = time.perf_counter()
    result = train(reinforce(softmax), ENVIRONMENT, episodes=EPISODES, runs=RUNS)
    seconds = time.perf_counter() - began
    spent = [(after - was) / seconds for after, was in zip(_cpu_times(), before, strict=True)]
    return result.lengths.sum() / seconds, result.returns.size / seconds, *spent


def _cpu_times():
    """CPU times of this process, and of the environments' processes once they have ended."""
    both = (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    return [usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, both)]


def main():
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peer", action="store_true")
    peer = not parser.parse_args().no_peer
    print(f"REINFORCE on {ENVIRONMENT}, {RUNS} runs of {EPISODES} episodes, {cores()} cores")
    bare_steps, bare_episodes = bare()
    print(f"bare environment  {bare_steps:9,.0f} steps/s {bare_episodes:7.1f} episodes/s")
    if peer:
        peer_steps, peer_episodes = theirs()
        print(f"PyTorch loop      {peer_steps:9,.0f} steps/s {peer_episodes:7.1f} episodes/s")
    for name, softmax in SOFTMAXES.items():
        steps, episodes, environments, rest = ours(softmax)
        print(f"{name:17s} {steps:9,.0f} steps/s {episodes:7.1f} episodes/s")
        print(f"  of the bare environment's steps: {steps / bare_steps:.2f} (goal {GOALS['bare']})")
        if peer:
            ratio = episodes / peer_episodes
            print(f"  times the PyTorch loop's episodes: {ratio:.1f} (goal {GOALS['PyTorch']:g})")
        share = environments / (environments + rest)
        print(f"  CPU time: {share:.0%} in the processes of environments, {1 - share:.0%} here")


if __name__ == "__main__":
    main()
