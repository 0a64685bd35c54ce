"""Which edges a leg is near."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mellowmax.environments.lunar_lander.arrays.vectors import Vector
from mellowmax.environments.lunar_lander.box2d import broad_phase
from mellowmax.environments.lunar_lander.state import Place


def test_the_edge_that_a_leg_came_near_to_last():
    # Flat ground; a leg that comes from the right, passes x = 10, and goes back.
    x = np.float32([10.8, 10.2, 9.9, 9.6, 9.9, 10.2, 10.8])
    zero = jnp.zeros(1, jnp.float32)
    terrain = (zero + 3.3,) * 11
    newest, all_of_them = jnp.int32([-1]), []
    for each in x:
        newest = broad_phase.newest_edge(
            newest, Place(Vector(zero + each, zero + 3.6), zero), terrain
        )
        all_of_them.append(int(newest[0]))
    two = broad_phase.PAIR
    assert all_of_them == [5, two + 4, two + 4, 4, two + 5, two + 5, 5]
    high = Place(Vector(zero + 10.0, zero + 5.0), zero)
    assert int(broad_phase.newest_edge(newest, high, terrain)[0]) == -1
