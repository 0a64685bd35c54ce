"""Lunar Lander on an accelerator: are its kernels right, and how fast are they?

    python benchmarks/lunar_lander_card.py [--blocks 32] [--sizes 40960,...] [--steps 1e9]
        [--seconds 540]

It prints lines of JSON. For each size of a block: the time to compile the kernels, and the time of
one step of 40,960 landers in the air and near the ground; for the first size also the difference
between a step of the kernels and the same step on the CPU. Then, with the fastest block, random
play with its resets (which are not counted): the speed for each number of landers, and how many
numbers were not finite in a long run. Each part has a process of its own, so that a part that fails
or hangs does not stop the others. Parts for which no time is left are named.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import time
import traceback

COUNT = 40960
STEPS = 200
"""The steps in one call of the compiled program of random play."""
LIMIT = 1000
"""The step limit of an episode, as in Gymnasium."""
IN_THE_AIR, LANDING, COMPARED = 20, 70, 50
OURS = "mellowmax"


def say(**line):
    print(json.dumps(line), flush=True)


def kernel_alone(block, compares):
    """Compile and time the kernels alone, and compare them with a step on the CPU."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from mellowmax.environments import lunar_lander
    from mellowmax.environments.lunar_lander.devices import batch
    from mellowmax.environments.lunar_lander.environment import world as world_of
    from mellowmax.environments.lunar_lander.state import Dispersion, Inputs

    say(device=jax.devices()[0].device_kind, jax=jax.__version__)

    def draw(number):
        of_action, of_dispersion = jax.random.split(jax.random.key(number))
        action = jax.random.randint(of_action, (COUNT,), 0, 4, jnp.int32)
        noise = jax.random.uniform(of_dispersion, (2, COUNT), jnp.float32, -1.0, 1.0)
        return Inputs(action, Dispersion(*noise), world)

    world = jax.tree.map(lambda x: jnp.broadcast_to(x, (COUNT,)), world_of(lunar_lander.params()))
    keys = jax.random.split(jax.random.key(1), COUNT)
    state = lunar_lander.named(jax.vmap(lunar_lander.launch)(keys))
    seconds = [time.perf_counter()]
    traced = jax.jit(functools.partial(batch.step_in_kernels, block=block)).trace(state, draw(0))
    seconds.append(time.perf_counter())
    lowered = traced.lower()
    seconds.append(time.perf_counter())
    kernel = lowered.compile()
    seconds.append(time.perf_counter())
    trace, lower, compiling = (round(x, 2) for x in np.diff(seconds))
    say(block=block, trace_seconds=trace, lower_seconds=lower, compile_seconds=compiling)

    def clocked(state, inputs, repeats=20):
        jax.block_until_ready(kernel(state, inputs))
        began = time.perf_counter()
        for _ in range(repeats):
            step = kernel(state, inputs)
        jax.block_until_ready(step)
        return round((time.perf_counter() - began) / repeats * 1e6, 1)

    times = {}
    for number in range(LANDING):
        inputs = draw(number)
        if number == IN_THE_AIR:
            times["microseconds_in_the_air"] = clocked(state, inputs)
        state = kernel(state, inputs).state
    times["microseconds_near_the_ground"] = clocked(state, draw(LANDING))
    touching = float((state.right.on_ground | state.left.on_ground).mean())
    say(block=block, landers=COUNT, **times, over=float(state.over.mean()), touching=touching)
    if not compares:
        return

    some = 1024
    cpu = jax.devices("cpu")[0]
    plain = jax.jit(batch.step_in_blocks)
    errors, rewards, flags, bad = [], [], [], 0
    for number in range(LANDING, LANDING + COMPARED):
        arguments = (state, draw(number))
        live = ~np.asarray(state.over)[:some]
        new = kernel(*arguments)
        first = jax.tree.map(lambda x: jax.device_put(np.asarray(x[:some]), cpu), arguments)
        other = jax.device_get(plain(*first))
        ours = jax.device_get(jax.tree.map(lambda x: x[:some], new))
        apart = [
            np.abs(a - b)
            for a, b in zip(
                jax.tree.leaves(ours.state.hull), jax.tree.leaves(other.state.hull), strict=True
            )
        ]
        errors.append(np.max(apart, axis=0)[live])
        rewards.append(np.abs(ours.reward - other.reward)[live])
        flags.append((ours.terminated != other.terminated)[live])
        bad += sum(int((~jnp.isfinite(x)).sum()) for x in jax.tree.leaves(new))
        state = new.state
    quantiles = (0.5, 0.9, 0.99, 0.999, 1.0)

    def spread(parts):
        return [float(f"{x:.2g}") for x in np.quantile(np.concatenate(parts), quantiles)]

    say(
        compared_steps=sum(map(len, errors)),
        quantiles=quantiles,
        hull_differs_by=spread(errors),
        reward_differs_by=spread(rewards),
        ends_differ=int(np.concatenate(flags).sum()),
        not_finite=bad,
    )


def play(block, count, total):
    """Random play of many landers, each of which starts again when it has ended; then a long run.

    Mean return and length are those of the episodes that have ended while they were counted.
    `broken` are landers that were lost because a number was not finite any more.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from mellowmax.environments import lunar_lander
    from mellowmax.environments.lunar_lander.devices import batch
    from mellowmax.environments.lunar_lander.environment import world as world_of
    from mellowmax.environments.lunar_lander.state import Dispersion, Inputs, state_dtypes

    like = state_dtypes()
    numbers = jax.tree.unflatten(jax.tree.structure(like), range(len(jax.tree.leaves(like))))
    broken = numbers.broken
    world = world_of(lunar_lander.params())
    world = jax.tree.map(lambda x: jnp.broadcast_to(x, (count,)), world)

    def one_step(carry, key):
        rows, length, earned, begins, sums = carry
        uniforms = jax.random.uniform(key, (19, count), jnp.float32)
        rows = batch.launch_rows(rows, uniforms[:16], begins)
        length, earned = jnp.where(begins, 0, length), jnp.where(begins, 0.0, earned)
        action = jnp.floor(4.0 * uniforms[16]).astype(jnp.int32)
        noise = Dispersion(2.0 * uniforms[17] - 1.0, 2.0 * uniforms[18] - 1.0)
        rows, reward, ended = batch.step_rows(rows, Inputs(action, noise, world), block=block)
        # The step that `reset` takes does not count, and earns nothing.
        length, earned = length + ~begins, earned + reward
        ends = ended | (length >= LIMIT)
        now = (~begins, ends, rows[broken] != 0.0, ends * length, ends * earned)
        sums = tuple(x + y for x, y in zip(sums, now, strict=True))
        return (rows, length, earned, ends, sums), None

    @jax.jit
    def run(key, landers):
        zeros = (jnp.zeros(count, jnp.float32),) * 5
        keys = jax.random.split(key, STEPS)
        *landers, sums = jax.lax.scan(one_step, (*landers, zeros), keys)[0]
        return landers, jnp.stack([x.sum() for x in sums])

    # All have ended: so all are launched.
    rows = jax.vmap(lunar_lander.launch, 0, 1)(jax.random.split(jax.random.key(1), count))
    zeros = jnp.zeros(count, jnp.int32), jnp.zeros(count, jnp.float32)
    landers = [rows, *zeros, jnp.ones(count, bool)]
    began = time.perf_counter()
    program = run.lower(jax.random.key(0), landers).compile()
    compiling = time.perf_counter() - began
    landers, _ = jax.block_until_ready(program(jax.random.key(2), landers))
    speeds, sums = [], np.zeros(5)
    for repeat in range(3):
        began = time.perf_counter()
        landers, now = jax.block_until_ready(program(jax.random.key(3 + repeat), landers))
        speeds.append(float(now[0]) / (time.perf_counter() - began))
        sums += np.asarray(now)
    say(
        landers=count,
        block=block,
        compile_seconds=round(compiling, 2),
        million_steps_per_second=[round(x / 1e6, 2) for x in sorted(speeds)],
        mean_return=round(sums[4] / sums[1], 1),
        mean_length=round(sums[3] / sums[1], 1),
    )
    if not total:
        return

    done, bad, sums, number = 0, 0, np.zeros(5), 0
    began = time.perf_counter()
    while done < total and time.perf_counter() - began < 200:
        landers, now = program(jax.random.key(1000 + number), landers)
        number += 1
        done += count * STEPS
        sums += np.asarray(now)
        bad += sum(int((~jnp.isfinite(x)).sum()) for x in jax.tree.leaves((landers, now)))
    say(
        steps=done,
        seconds=round(time.perf_counter() - began, 1),
        not_finite=bad,
        mean_return=round(sums[4] / sums[1], 3),
        mean_length=round(sums[3] / sums[1], 2),
        episodes=sums[1],
        broken=sums[2],
    )


def in_process(seconds, *part):
    """The lines that a part of the measurement prints in a process of its own, and how it ended."""
    if seconds < 20:
        say(part=part, left_out="no time was left")
        return []
    command = [sys.executable, __file__, "--part", json.dumps(part)]
    began, lines, output, ends = time.perf_counter(), [], "", None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        said, output, ends = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        said, output = (
            x.decode() if isinstance(x, bytes) else x or "" for x in (late.stdout, late.stderr)
        )
    for line in said.splitlines():
        print(line, flush=True)
        if line.startswith("{"):
            lines.append(json.loads(line))
    took = round(time.perf_counter() - began, 1)
    say(part=part, seconds=took, exit=ends, **({} if ends == 0 else {"stderr": output[-1500:]}))
    return lines


def whole(options):
    """All parts, one after the other."""
    until = time.perf_counter() + options.seconds

    def left():
        return until - time.perf_counter()

    times = {}
    blocks, sizes = (
        [int(x) for x in text.split(",") if x] for text in (options.blocks, options.sizes)
    )
    for number, block in enumerate(blocks):
        for line in in_process(min(left(), 200), "kernel_alone", block, number == 0):
            if "microseconds_near_the_ground" in line:
                times[block] = line["microseconds_near_the_ground"]
    block = min(times, key=times.get) if times else blocks[0]
    say(chosen_block=block)
    for number, size in enumerate(sizes):
        in_process(left(), "play", block, size, options.steps if number == 0 else 0)


def one_part(name, *arguments):
    """One part; if it fails, print why, and where in our code."""
    try:
        {"kernel_alone": kernel_alone, "play": play}[name](*arguments)
    except Exception as error:
        chain = [error]
        while chain[-1].__cause__ or chain[-1].__context__:
            chain.append(chain[-1].__cause__ or chain[-1].__context__)
        places = [
            f"{pathlib.Path(frame.filename).name}:{frame.lineno} {frame.name}: {frame.line}"
            for each in chain
            for frame in traceback.extract_tb(each.__traceback__)
            if OURS in frame.filename
        ]
        say(
            failed=name,
            arguments=arguments,
            errors=[f"{type(each).__name__}: {each}"[-1200:] for each in chain],
            where=places[-6:],
        )
        raise SystemExit(1) from None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", default="32")
    parser.add_argument("--sizes", default="40960,1024,262144,4096,131072,16384")
    parser.add_argument("--steps", type=float, default=1e9)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--part", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        one_part(*options.part)
    else:
        whole(options)


if __name__ == "__main__":
    main()
