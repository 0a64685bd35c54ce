"""One sweep of a large model against the memory it must move: `make bench` runs it.

The floor is the time in which the same device copies as many bytes as a sweep reads and writes: the
branches, the rewards, and the values before and after. On a GPU the goal is 1.5 times that. Then it
solves: the first solve compiles, or reads what an earlier process has compiled; the first of
another MDP of that size takes it to the device; later ones find it there.
"""

from __future__ import annotations

import dataclasses
import time

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import mellowmax as mm
from mellowmax.mdp import garnet
from mellowmax.planning import solve
from mellowmax.planning.bellman import action_values, values
from mellowmax.planning.devices import STATES, mesh_of_one, on_every_device
from mellowmax.planning.problem import place

N_STATES, ACTIONS, BRANCHES = 10**6, 5, 5
CALLS = 20
GOAL = 1.5


def seconds(call):
    """The time of one call of many, so that the start of each is hidden behind the one before."""
    jax.block_until_ready(call())
    times = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(CALLS):
            result = call()
        jax.block_until_ready(result)
        times.append((time.perf_counter() - began) / CALLS)
    return min(times)


def sweep(model, softmax, v):
    """`v <- f(r + discount P v)`."""
    return values(model, softmax, action_values(model, v))


def main():
    """Print the floor, the time of a sweep, and that of a solve."""
    device = jax.local_devices()[0]
    mesh = mesh_of_one(device)
    mdp = garnet(N_STATES, ACTIONS, BRANCHES, seed=0)
    with jax.enable_x64(True):
        numbers = jnp.zeros(2**27 if device.platform != "cpu" else 2**25)
        copy = jax.jit(lambda x: x + 1)
        bandwidth = 2 * numbers.nbytes / seconds(lambda: copy(numbers))
        model = place(mdp, mesh)
        moved = sum(x.nbytes for x in (model.probabilities, model.successors, model.rewards))
        v = jnp.arange(N_STATES, dtype=jnp.float64)
        floor = (moved + 2 * v.nbytes) / bandwidth
        print(f"{device.device_kind}: copies {bandwidth / 1e9:.0f} GB/s, so a sweep of")
        print(
            f"{N_STATES:,} x {ACTIONS} x {BRANCHES} in float64 takes {floor * 1e3:.3f} ms at least"
        )
        call = on_every_device(sweep, mesh, P(STATES))
        for softmax in (mm.Max(), mm.Mellowmax(16.55)):
            taken = seconds(lambda s=softmax: call(model, s, v))
            goal = f" (goal {GOAL})" if device.platform != "cpu" else ""
            print(f"  {softmax!s:24s} {taken * 1e3:8.3f} ms, {taken / floor:.2f} times that{goal}")
    another = garnet(N_STATES, ACTIONS, BRANCHES, seed=1)
    began = time.perf_counter()
    with jax.enable_x64(True):
        jax.block_until_ready(jax.tree.leaves(place(another, mesh)))
    print(f"  to the device in {time.perf_counter() - began:.3f} s")
    for softmax in (mm.Max(), mm.Mellowmax(16.55)):
        print(f"  solved under {softmax!s}, in seconds:", end=" ")
        first = solve(mdp, softmax, tolerance=1e-6, mesh=mesh)
        fresh = dataclasses.replace(another, rewards=another.rewards)  # which is on no device
        of_another = solve(fresh, softmax, tolerance=1e-6, mesh=mesh)
        later = [solve(fresh, softmax, tolerance=1e-6, mesh=mesh) for _ in range(3)]
        best = min(later, key=lambda solution: solution.seconds)
        print(f"the first {first.seconds:.3f}, of another MDP {of_another.seconds:.3f}, ", end="")
        print(f"later {best.seconds:.3f} ({best.method}, {best.iterations} iterations)")


if __name__ == "__main__":
    main()
