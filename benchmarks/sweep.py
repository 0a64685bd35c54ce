"""One sweep of a large model against the memory it must move: `make bench` runs it.

The floor is the time in which the same device copies as many bytes as a sweep reads and writes: the
branches, the rewards, and the values before and after. On a GPU the goal is 2.5 times that.
"""

from __future__ import annotations

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
GOAL = 2.5


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
    for softmax in (mm.Max(), mm.Mellowmax(16.55)):
        solutions = [solve(mdp, softmax, tolerance=1e-6) for _ in range(3)]
        best = min(solutions[1:], key=lambda solution: solution.seconds)
        print(f"  solved under {softmax!s:24s} in {best.seconds:.3f} s: {best.method}, ", end="")
        print(f"{best.iterations} iterations, residual {best.residual:.1e}")


if __name__ == "__main__":
    main()
