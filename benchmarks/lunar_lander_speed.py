"""Our Lunar Lander and Gymnasium's on a CPU: steps per second of random play, in one run.

    python benchmarks/lunar_lander_speed.py [--landers 4096] [--seconds 5] [--recompute]

Each side in turn, three times over, on the cores that this process may use: Gymnasium's with one
process per core, ours in one program. Resets take their time but are not counted as steps.

With `--recompute`, XLA stores no intermediate results of ours (`arrays/materialise.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import time

STEPS = 50


def theirs(seconds, seed):
    """The steps per second of one Gymnasium process."""
    import gymnasium
    import numpy as np

    lander = gymnasium.make("LunarLander-v3").unwrapped
    lander.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(0, 4, 10_000).tolist()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for action in actions[:500]:
            if lander.step(action)[2]:
                lander.reset()
        steps += 500
    return steps / (time.perf_counter() - began)


def ours(count, recompute):
    """A function that plays our landers for some seconds, and the seconds that compiling took."""
    import jax
    import jax.numpy as jnp

    from mellowmax.environments import lunar_lander
    from mellowmax.environments.lunar_lander.devices import batch

    if recompute:
        batch.materialise_with = lambda one: contextlib.nullcontext()
    params = lunar_lander.params()

    def play_one(key, state):
        of_launch, of_action, of_step = jax.random.split(key, 3)
        over = lunar_lander.named(state).over
        state = jnp.where(over, lunar_lander.launch(of_launch), state)
        action = jax.random.randint(of_action, (), 0, 4, jnp.int32)
        counts = ~lunar_lander.named(state).fresh
        return lunar_lander.step(of_step, state, action, params).state, counts

    def one_step(carry, number):
        key, state, steps = carry
        keys = jax.random.split(jax.random.fold_in(key, number), count)
        state, counted = jax.vmap(play_one)(keys, state)
        return (key, state, steps + counted.sum()), None

    @jax.jit
    def run(key, state):
        return jax.lax.scan(one_step, (key, state, 0), jnp.arange(STEPS))[0]

    state = jax.vmap(lunar_lander.launch)(jax.random.split(jax.random.key(1), count))
    began = time.perf_counter()
    program = run.lower(jax.random.key(0), state).compile()
    compiling = time.perf_counter() - began
    for number in range(4):
        _, state, _ = jax.block_until_ready(program(jax.random.key(number), state))

    def play(seconds, seed):
        nonlocal state
        steps, calls, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            _, state, made = program(jax.random.key(1000 * seed + calls), state)
            steps, calls = steps + int(made), calls + 1
        return steps / (time.perf_counter() - began)

    return play, compiling


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--landers", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--recompute", action="store_true")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    play, compiling = ours(options.landers, options.recompute)
    rounds = []
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.starmap(theirs, [(0.5, seed) for seed in range(cores)])
        for number in range(3):
            each = [(options.seconds, cores * number + seed) for seed in range(cores)]
            gymnasium = sum(pool.starmap(theirs, each))
            rounds.append((play(options.seconds, number), gymnasium))
    print(
        json.dumps(
            {
                "cores": cores,
                "landers": options.landers,
                **({"recompute": True} if options.recompute else {}),
                "compile_seconds": round(compiling, 1),
                "steps_per_second": [round(a) for a, _ in rounds],
                "gymnasium_steps_per_second": [round(b) for _, b in rounds],
                "ratio": [round(a / b, 2) for a, b in rounds],
            }
        )
    )


if __name__ == "__main__":
    main()
