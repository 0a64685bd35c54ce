"""Gymnasium's LunarLander-v3 (discrete actions) as pure JAX functions, faithful to Box2D.

`reset(key, params)` is a state. `step(key, state, action, params)` is the next state, the reward,
and whether the episode has ended. Both are written for one lander: `jax.vmap` them over keys,
states and actions for many. Landers that are `vmap`ped are computed together, on a GPU in kernels.
A state is an array of numbers; `named` gives them names.

The code is in four folders, each of which needs only those before it: `arrays` (vectors of plain
arrays), `game` (bodies, terrain, engines, reward), `box2d` (collision and solvers), and `devices`
(batches on a CPU and on a GPU). `physics`, before `devices`, puts game and Box2D together into a
step.
"""

from .environment import Params, launch, named, observe, params, reset, start, step
from .state import State, Step

__all__ = [
    "Params",
    "State",
    "Step",
    "launch",
    "named",
    "observe",
    "params",
    "reset",
    "start",
    "step",
]
