"""Lunar Lander on an accelerator: is its kernel right, and how fast is it?

    python benchmarks/lunar_lander_card.py [--blocks 32,64,128] [--sizes 1024,...] [--steps 1e9]

Lines of JSON: for each size of a block the time to compile and the steps per second of 40,960
landers under a random policy, resets included and not counted; then the speed from 1,024 to 262,144
landers with the best block; then how far one step of the kernel is from the plain trace; then how
many numbers were not finite in a long run.
"""

from __future__ import annotations

import argparse
import functools
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax.environments import lunar_lander
from mellowmax.environments.lunar_lander import fleet
from mellowmax.environments.lunar_lander.environment import _world


def play_one(key, state, params):
    """One step of a random policy; a lander whose episode has ended starts again."""
    of_launch, of_action, of_step = jax.random.split(key, 3)
    fresh = lunar_lander.launch(of_launch)
    state = jax.tree.map(lambda new, old: jnp.where(state.over, new, old), fresh, state)
    action = jax.random.randint(of_action, (), 0, 4, jnp.int32)
    step = lunar_lander.step(of_step, state, action, params)
    return step.state, ~state.fresh, step.terminated, step.reward


def program(count, steps):
    """A compiled run of many steps of many landers."""
    params = lunar_lander.params()

    def one_step(carry, number):
        key, state, played, ended, earned = carry
        keys = jax.random.split(jax.random.fold_in(key, number), count)
        state, counts, over, rewards = jax.vmap(play_one, (0, 0, None))(keys, state, params)
        return (
            key,
            state,
            played + counts.sum(dtype=jnp.float32),
            ended + over.sum(dtype=jnp.float32),
            earned + rewards.sum(dtype=jnp.float32),
        ), None

    @jax.jit
    def run(key, state):
        zero = jnp.float32(0)
        carry = (key, state, zero, zero, zero)
        return jax.lax.scan(one_step, carry, jnp.arange(steps, dtype=jnp.int32))[0]

    state = jax.vmap(lunar_lander.launch)(jax.random.split(jax.random.key(1), count))
    began = time.perf_counter()
    compiled = run.lower(jax.random.key(0), state).compile()
    return compiled, state, time.perf_counter() - began


def measure(count, steps=200, repeats=3):
    """Steps per second, and what it took to compile."""
    run, state, compiling = program(count, steps)
    _, state, *_ = jax.block_until_ready(run(jax.random.key(2), state))
    best, played, ended, earned = np.inf, 0.0, 0.0, 0.0
    for repeat in range(repeats):
        began = time.perf_counter()
        _, state, played, ended, earned = jax.block_until_ready(
            run(jax.random.key(3 + repeat), state)
        )
        best = min(best, time.perf_counter() - began)
    return {
        "landers": count,
        "compile_seconds": round(compiling, 2),
        "microseconds_a_step": round(best / steps * 1e6, 1),
        "million_steps_per_second": round(float(played) / best / 1e6, 2),
        "mean_return": round(float(earned / ended), 1),
        "mean_length": round(float(played / ended), 1),
    }


def compare(count=4096):
    """The kernel and the plain trace, one step from the states of random play."""
    run, state, _ = program(count, 60)
    _, state, *_ = run(jax.random.key(5), state)
    world = jax.tree.map(lambda x: jnp.broadcast_to(x, (count,)), _world(lunar_lander.params()))
    kernel = jax.jit(fleet.fly_in_kernel)
    plain = jax.jit(functools.partial(fleet.fly_in_blocks, block=count))
    cpu = jax.devices("cpu")[0]
    errors = []
    for number in range(40):
        keys = jax.random.split(jax.random.key(100 + number), 2)
        action = jax.random.randint(keys[0], (count,), 0, 4, jnp.int32)
        one, two = jax.random.uniform(keys[1], (2, count), jnp.float32, -1.0, 1.0)
        arguments = (state, action, one, two, world)
        ours = kernel(*arguments)
        theirs = plain(*jax.device_put(arguments, cpu))
        live = ~np.asarray(state.over)
        error = np.max(
            [
                np.abs(np.asarray(a, np.float32) - np.asarray(b, np.float32))
                for a, b in zip(
                    jax.tree.leaves(ours.state.hull), jax.tree.leaves(theirs.state.hull), strict=True
                )
            ],
            axis=0,
        )
        errors.append(error[live])
        state = ours.state
    errors = np.concatenate(errors)
    quantiles = np.quantile(errors, [0.5, 0.9, 0.99, 0.999, 1.0])
    return {
        "compared_steps": len(errors),
        "difference_50_90_99_99.9_100": [float(f"{x:.2g}") for x in quantiles],
        "share_above_1e-3": float(np.mean(errors > 1e-3)),
    }


def long_run(total, count=40960, steps=1000):
    """How many steps of random play, and how many numbers of them were not finite."""
    run, state, _ = program(count, steps)
    done, bad, sums = 0, 0, np.zeros(2)
    number = 0
    while done < total:
        _, state, played, ended, earned = run(jax.random.key(1000 + number), state)
        number += 1
        done += count * steps
        bad += sum(int((~jnp.isfinite(x)).sum()) for x in jax.tree.leaves(state))
        bad += int(not np.isfinite(float(earned)))
        sums += float(earned), float(ended)
    return {"steps": done, "not_finite": bad, "mean_return": round(sums[0] / sums[1], 3)}


def say(**line):
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", default="32,64,128")
    parser.add_argument("--sizes", default="1024,4096,16384,40960,131072,262144")
    parser.add_argument("--steps", type=float, default=1e9)
    options = parser.parse_args()
    say(device=jax.devices()[0].device_kind, jax=jax.__version__)
    speeds = {}
    for block in map(int, filter(None, options.blocks.split(","))):
        fleet.GPU_BLOCK = block
        try:
            result = measure(40960)
            speeds[block] = result["million_steps_per_second"]
            say(block=block, **result)
        except Exception as error:
            say(block=block, error=repr(error)[:1500])
    if speeds:
        fleet.GPU_BLOCK = max(speeds, key=speeds.get)
    say(chosen_block=fleet.GPU_BLOCK)
    for task, argument in (
        *((measure, int(size)) for size in filter(None, options.sizes.split(","))),
        (compare, 4096),
        (long_run, options.steps),
    ):
        try:
            say(**task(argument))
        except Exception as error:
            say(task=task.__name__, error=repr(error)[:1500])


if __name__ == "__main__":
    main()
