"""Parameters that change while a run learns: omega, beta and learning rates.

`linear` goes from one value to another. Its numbers are data, as those of a softmax are, so they
may be arrays, which make a grid of settings.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._rows.arguments import check_parameter
from .._typing import ArrayLike
from ..softmax import Softmax

__all__ = ["Linear", "check_rate", "first_of", "linear", "now"]

LearnerT = TypeVar("LearnerT")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Linear:
    """What `linear` makes: a value for each number of updates."""

    start: Any
    """The softmax or the number at the first update."""
    end: Any
    """The one after `updates` updates, and from then on."""
    updates: Any

    def at(self, count: jax.Array | None) -> Any:
        """The value after `count` updates."""
        assert count is not None  # every learner with a schedule counts them
        progress = jnp.clip(count.astype(jnp.float32) / self.updates, 0, 1)
        return jax.tree.map(lambda x, y: x + progress * (y - x), self.start, self.end)


def linear(start: Softmax | ArrayLike, end: Softmax | ArrayLike, updates: ArrayLike) -> Linear:
    """A softmax or a learning rate that changes evenly from one update to the next.

    Args:
        start: at the first update.
        end: after `updates` updates, and from then on: a softmax of the same class, or a number.
        updates: how many updates it takes, of a run.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for softmaxes of two classes, or fewer updates than one.

    Examples:
        Omega grows from 1 to 10 in 1,000 updates, while the learning rate falls to 0 in 5,000:

        >>> from mellowmax import Mellowmax
        >>> from mellowmax.deep import dqn, linear
        >>> softmax = linear(Mellowmax(1.0), Mellowmax(10.0), updates=1000)
        >>> float(softmax.at(jnp.int32(500)).omega)
        5.5
        >>> learner = dqn(softmax, linear(1e-3, 0.0, updates=5000))
    """
    if isinstance(start, Softmax):
        if type(end) is not type(start):
            rule = f"`end` must be a {type(start).__name__}, as `start` is"
            raise (ValueError if isinstance(end, Softmax) else TypeError)(f"{rule}, got {end!r}")
    else:
        check_parameter("start", start)
        check_parameter("end", end)
    check_parameter("updates", updates, 1.0)
    values = (np.asarray(x) if isinstance(x, list | tuple) else x for x in (start, end, updates))
    return Linear(*values)


def first_of(value: Any) -> Any:
    """The value at the first update."""
    return value.start if isinstance(value, Linear) else value


def check_rate(learning_rate: object) -> None:
    """Raise unless something is a learning rate, or changes from one to another."""
    every = [learning_rate]
    if isinstance(learning_rate, Linear):
        every = [learning_rate.start, learning_rate.end]
    for one in every:
        if isinstance(one, Softmax):
            raise TypeError(f"`learning_rate` must be a number, got {one!r}")
        check_parameter("learning_rate", one, 0.0)


def now(learner: LearnerT, count: jax.Array | None) -> LearnerT:
    """A learner with its softmax and its learning rate as they are after `count` updates."""
    names = ("softmax", "learning_rate")
    present = {name: getattr(learner, name) for name in names}
    changes = {name: x.at(count) for name, x in present.items() if isinstance(x, Linear)}
    return dataclasses.replace(learner, **changes) if changes else learner  # type: ignore[type-var]
