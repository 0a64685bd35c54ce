"""Brent's method to find that a sequence of sweeps has come to a cycle (Brent 1980).

Without a proof of convergence (Boltzmann) the sweeps can end in a cycle. Each `q` is compared with
an earlier one, which is replaced by the current one at the sweeps 1, 2, 4, 8, ... Once the earlier
one lies on the cycle and the time to the next replacement is at least the period, the sweeps return
to it, and the number of sweeps since then is the period. Two copies of `q` are all it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..devices import largest

__all__ = ["Earlier", "compared", "since"]

RETURN_DISTANCE = 64 * 2.0**-52
"""How near to an earlier `q`, relative to its size, counts as a return to it."""


class Earlier(NamedTuple):
    """An earlier `q`, with which later ones are compared."""

    q: jax.Array  # [S, A]
    age: jax.Array | np.int32  # how many sweeps ago it was current
    patience: jax.Array | np.int32  # the age at which it is replaced
    period: jax.Array | np.int32  # of the cycle that was found; 0 for none


def since(q: jax.Array) -> Earlier:
    """Compare the sweeps to come with `q`."""
    zero, one = np.int32(0), np.int32(1)
    return Earlier(q, zero, one, zero)


def compared(earlier: Earlier, q: jax.Array, unfinished: jax.Array) -> Earlier:
    """Compare the result of a sweep with the earlier `q`; `unfinished`: has it not converged?"""
    age = earlier.age + 1
    distance = largest(jnp.abs(q - earlier.q))
    returned = (distance <= RETURN_DISTANCE * largest(jnp.abs(q))) & unfinished
    replace = ~returned & (age >= earlier.patience)
    return Earlier(
        jnp.where(replace, q, earlier.q),
        jnp.where(replace, 0, age),
        jnp.where(replace, 2 * earlier.patience, earlier.patience),
        jnp.where(returned, age, 0),
    )
