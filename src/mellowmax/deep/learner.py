"""The interface of a learner, as `train` uses it."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import jax

from .._typing import ArrayLike, PyTree
from ..softmax import Softmax
from .network import Policy

__all__ = ["STATIC", "Learner"]

STATIC = {"static": True}
"""Metadata of a field that is not data to JAX: programs are compiled for each of its values."""


@runtime_checkable
class Learner(Protocol):
    """A set of hyperparameters, with pure functions of the state of one run.

    It is a JAX pytree. The softmax's parameters, the learning rate, the discount and some other
    numbers are its data, and may be arrays: each run of a training has its own. All else is static.

    A learner of whole episodes has `update(state, episodes, key)`. A learner of single steps has
    `act(network, step, uniform, observation)` and `learn(state, key, stepped)`, as in `Dqn`. A
    learner of segments has `update(state, segment, key)`, and says how many `environments` play and
    how many `steps` of each a segment has.
    """

    @property
    def learns_from(self) -> Literal["episodes", "steps", "segments"]:
        """Does it learn from whole episodes, from single steps while it plays, or from segments?"""

    @property
    def softmax(self) -> Softmax:
        """The softmax of its policy or of its targets."""

    @property
    def discount(self) -> ArrayLike | None:
        """The discount; None for that of the environment."""

    @property
    def batch(self) -> int:
        """How many episodes of a run are played and logged at a time."""

    def init(self, key: jax.Array, observation: PyTree, n_actions: int, /) -> PyTree:
        """The initial state of a run: arrays, those of the policy's network first.

        `observation` has the shapes and dtypes of one: a tree of `jax.ShapeDtypeStruct`.
        """

    def policy(self, state: PyTree) -> Policy:
        """The policy that has been learned."""
