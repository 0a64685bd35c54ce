"""What a step of an environment returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import jax

__all__ = ["Step"]


class Step(NamedTuple):
    """The result of a step."""

    state: jax.Array
    reward: jax.Array
    terminated: jax.Array
