"""Gymnasium's LunarLander-v3 (discrete actions) as pure JAX functions, faithful to Box2D.

`reset(key, params)` is a state. `step(key, state, action, params)` is the next one, the reward, and
whether the episode has ended. Both are written for one lander: `jax.vmap` them over keys, states
and actions for many. Landers that are `vmap`ped fly together: on a GPU in kernels. A state is a row
of numbers; `named` gives them names.

The physics is Box2D's, written anew for blocks of landers: `physics` is a whole step, `solve` the
solver of joints and contacts, `continuous` the collisions within a step, `outcome` what is seen and
earned.
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
