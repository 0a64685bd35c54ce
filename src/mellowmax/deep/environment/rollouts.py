"""Environments that play their own episodes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, runtime_checkable

import jax

from ..episodes import Round
from ..network import Policy

__all__ = ["Rollouts"]


@runtime_checkable
class Rollouts(Protocol):
    """An environment that plays its own episodes, for learners of whole episodes.

    Batches of episodes are played for many lanes side by side, each with a policy of its own, and
    yielded when they are complete. An object of this kind never learns: it calls `policies` for the
    present policies whenever a batch begins, and whoever takes the batches learns in between.

        for lanes, episodes, *_ in rollouts.play(policies, keys, done, until, batch):
            ...

    An episode depends on the policy, the key of its batch and its number in the batch alone.
    Nothing is left over from one batch to the next, so a run can be stopped after any batch and
    resumed later. The object does not change, so it serves many threads at once.
    """

    @property
    def n_observations(self) -> int:
        """The size of an observation."""

    @property
    def n_actions(self) -> int:
        """The number of actions."""

    @property
    def max_steps(self) -> int:
        """The step limit of an episode."""

    @property
    def discount(self) -> float:
        """The environment's own discount, or 0.99 if it has none."""

    @property
    def name(self) -> str:
        """Tells the environment from others: a checkpoint is resumed if it is the same."""

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Round]:
        """Play batches of episodes, as many as each run still needs.

        Args:
            policies: gives the present policies of all lanes, a `Policy` whose arrays have an axis
                of lanes first. It is called whenever a batch begins, after everything that was
                yielded before has been dealt with.
            keys: the key of each lane's run. The key of a batch is
                `jax.random.fold_in(key, number of the batch)`.
            done: how many batches each run has played before; one number for each lane that has a
                run.
            until: how many batches each run will have played at the end.
            batch: how many episodes a batch has.

        Yields:
            The complete batches of one or more lanes: `Round(lanes, episodes)`. Resources are
            released at the end, or when the generator is closed.
        """
