"""Both policies of figure 11 as one softmax, so that runs of both are trained in one program.

>>> q = jnp.array([0.0, 1.0, 3.0])
>>> print(BoltzmannOrMellowmax(2.0, 0.0).policy(q).round(3))
[0.002 0.018 0.98 ]
>>> print(BoltzmannOrMellowmax(2.0, 1.0).policy(q).round(3))
[0.073 0.16  0.767]
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from ...._typing import ArrayT, Mask, Numbers
from ....operators import mellowmax
from ....policies import boltzmann_log_policy, boltzmann_policy, mellowmax_temperature
from ....softmax import Softmax

__all__ = ["OVERFLOWS", "BoltzmannOrMellowmax"]

OVERFLOWS = math.log(sys.float_info.max) / 500
"""1.42: where mellowmax is this far above the least action value, `exp(-500 (q - mm))` overflows. A
search for the inverse temperature that begins with the bracket from -500 to 500 fails there."""


@dataclasses.dataclass(frozen=True)
class BoltzmannOrMellowmax(Softmax):
    """Boltzmann's policy or mellowmax's, chosen by a number; for JAX arrays.

    Mellowmax's policy is Boltzmann's at the inverse temperature of the row. So both policies, and
    their gradients, are one formula at one inverse temperature or another.
    """

    parameter: Any
    """beta or omega"""
    is_mellowmax: Any
    """1, or 0 for Boltzmann's."""
    through_temperature: Any = 1.0
    """1 to differentiate through mellowmax's inverse temperature, or 0 to hold it still."""
    falls_back: Any = 0.0
    """1 to take omega for the inverse temperature in rows in which the search `OVERFLOWS`."""

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Probabilities of the actions."""
        return boltzmann_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """Their logarithms."""
        return boltzmann_log_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> NoReturn:
        """Not needed: nothing plans with it."""
        raise NotImplementedError

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> NoReturn:
        """Not needed: nothing plans with it."""
        raise NotImplementedError

    def _temperature(self, q: Any, axis: int, where: Mask) -> Any:
        b = mellowmax_temperature(q, self.parameter, axis=axis, where=where)
        b = jnp.where(self.through_temperature == 1.0, b, jax.lax.stop_gradient(b))
        spread = mellowmax(q, self.parameter, axis=axis, where=where) - jnp.min(q, axis=axis)
        fails = (self.falls_back == 1.0) & (spread > OVERFLOWS)
        is_root = (self.is_mellowmax == 1.0) & ~fails
        return jnp.where(is_root, b, jnp.asarray(self.parameter, b.dtype))


# A checkpoint names the class of a softmax, and has this name from before this module was here.
BoltzmannOrMellowmax.__module__ = "mellowmax.experiments.boltzmann_or_mellowmax"
