"""Gymnasium's LunarLander-v3 (discrete actions) as pure JAX functions, faithful to Box2D.

    state = reset(key, params)
    state, reward, terminated = step(key, state, action, params)

They are written for one lander: `jax.vmap` them over keys, states and actions for many. Landers
that are `vmap`ped fly together: on a GPU in kernels. A state is a row of numbers; `named` gives
them names.

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
