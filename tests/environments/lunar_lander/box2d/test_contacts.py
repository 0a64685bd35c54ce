"""The observed flags of legs, from contacts that begin and end."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mellowmax.environments.lunar_lander.box2d import contacts
from mellowmax.environments.lunar_lander.state import no_contact


def test_the_flag_of_a_leg_that_passes_from_edge_to_edge():
    # Gymnasium's flag follows the last event that Box2D reports, and Box2D reports the contact with
    # the newest edge first. So the flag of a leg that passes from edge 6 to edge 5 within a step
    # depends on which of the two it came near to last.
    zero = np.zeros(3, np.float32)
    none = no_contact(jnp.asarray(zero))
    old, new = (none._replace(edge=jnp.full(3, edge, jnp.int32)) for edge in (6, 5))
    newest = jnp.int32([6, 5, -1])
    was = jnp.array([True, True, True])
    flag = contacts.on_ground_after(was, (old, none), (new, none), newest)
    np.testing.assert_array_equal(flag, [True, False, False])
