"""The fixed point of each MDP of a batch, as `planning.fixed_point` finds it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..._common import checks
from ..._typing import ArrayLike
from ...mdp import Model
from ...softmax import Softmax
from ..fixed_point import Point
from ..fixed_point import fixed_point as of_one
from .mdps import Batch, discount_of_each, softmax_of_each

__all__ = ["fixed_point"]


def fixed_point(
    batch: Batch, softmax: Softmax, *, discount: ArrayLike | None = None, **options: Any
) -> Point:
    """The fixed point of each MDP of a batch.

    For derivatives, map `planning.fixed_point` over `batch.model()` by `jax.vmap`.

    Args:
        batch: the MDPs, N of them.
        softmax: any pair, with one parameter or one for each MDP.
        discount: one, or one for each MDP; None for the MDPs' own.
        **options: those of `planning.fixed_point`.

    Returns:
        A `Point` of arrays whose first axis is N.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> batch = Batch.of([two_state()])[[0, 0]]
        >>> print(fixed_point(batch, Mellowmax(np.array([1.0, 16.55]))).value.round(4))
        [[0.4052 0.    ]
         [0.4313 0.    ]]
    """
    checks.instance("batch", batch, Batch, "a Batch, such as Batch.of(mdps)")
    model = batch.model(discount_of_each(batch, discount, below_one=False))
    each = softmax_of_each(batch, softmax)

    def one(model: Model, softmax: Softmax) -> Point:
        return of_one(model, softmax, **options)

    with jax.enable_x64(True):
        points = jax.vmap(one)(model, each)
        result: Point = jax.tree.map(np.asarray, points)
    return result
