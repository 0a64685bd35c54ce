"""What the players of whole episodes share: learning between batches.

    states, returns = update(learners, states, episodes)        for every batch that is played,

and the next batch of a run is played by what it has learned by then. How the episodes are played,
and which runs complete their batch first, is decided by a player's `episodes`, which never learns.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from ..._typing import Bools
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import Rollouts
from ..episodes import Episodes, Round
from ..log import NEVER
from ..network import Policy
from ..reinforce import Reinforce, ReinforceState
from .player import LAUNCHED_AT_ONCE, WIDTH, DivergedError, Player

__all__ = ["EpisodePlayer", "OwnEpisodes", "go_on", "learn_in_between"]

AT_A_TIME = 256
"""How many lanes learn side by side. On an accelerator matrix products round differently for other
numbers of lanes, and a run must learn the same whatever other runs there are. The numbers of this
many lanes also fit into its cache."""


class EpisodePlayer(Player[Reinforce], Protocol):
    """A player of whole episodes. It can also play without anyone who learns, for an evaluation."""

    def episodes(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
        unfinished: Callable[[], Bools] | None = None,
    ) -> Generator[Round]:
        """Play batches of episodes; the first arguments are those of `Rollouts.play`.

        `unfinished` says which runs go on, as far as `until` does not end them: it is asked
        whenever everything that was yielded before has been dealt with.
        """


class OwnEpisodes:
    """Whole episodes of an environment that plays them itself.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: Rollouts) -> None:
        self.environment = environment

    def episodes(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
        unfinished: Callable[[], Bools] | None = None,
    ) -> Generator[Round]:
        """Play batches of episodes; it is the environment that ends them, so steps do not count."""
        if unfinished is not None:
            rule = "`steps` must be None for an environment that plays its own episodes"
            raise ValueError(f"{rule}, got a number of steps")
        return self.environment.play(policies, keys, done, until, batch)

    def width(self, learner: Reinforce, lanes: int, devices: Sequence[jax.Device]) -> int:
        """The number of lanes of a block."""
        return WIDTH

    def begin(self, keys: jax.Array, learner: Reinforce) -> None:
        """No episode is saved: a batch that was cut short is played again."""

    def play(self, learners: Reinforce, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is the complete batches of some lanes."""
        return learn_in_between(self, learners, keys, block)


def learn_in_between(
    player: EpisodePlayer, learners: Reinforce, keys: jax.Array, block: BlockState
) -> Generator[Round]:
    """Let a player play whole episodes, and learners learn from each batch.

    Args:
        player: plays the episodes.
        learners: those of all lanes.
        keys: those of their runs.
        block: where it begins; see `Player.play`.
    """
    log = block.log
    batches = player.episodes(
        lambda: learners.policy(block.states),
        keys,
        tuple(log.done.tolist()),
        NEVER if log.episodes is None else log.episodes // log.batch,
        log.batch,
        *([log.unfinished] if log.episodes is None else []),
    )
    with contextlib.closing(batches):
        for played in batches:
            yield _learn(learners, keys, block, played)


def go_on(
    numbers: npt.NDArray[np.uint32], until: int, runs: int, unfinished: Callable[[], Bools] | None
) -> Bools:
    """Which lanes play another batch.

    Args:
        numbers: how many batches each lane has played.
        until: the most batches of a run.
        runs: how many lanes have a run.
        unfinished: as for `EpisodePlayer.episodes`.
    """
    result = np.asarray(numbers < until)
    if unfinished is not None:
        result[:runs] &= unfinished()
    return result


def _learn(learners: Reinforce, keys: jax.Array, block: BlockState, played: Round) -> Round:
    """Learn from the batches of some lanes."""
    lanes, episodes, computed = played[:3]
    assert episodes is not None
    done = block.log.done
    numbers = np.pad(done, (0, len(keys) - len(done))).astype(np.uint32)
    states, returns, finite = _update(learners, block.states, keys, numbers, lanes, episodes)
    returns, lengths = np.asarray(returns), np.asarray(episodes.lengths)
    with_run = lanes < len(done)
    wrong = with_run & ~(np.asarray(finite) & np.isfinite(returns).all(1))
    if wrong.any():
        at = int(wrong.argmax())
        lane, what = lanes[at], "weight" if np.isfinite(returns[at]).all() else "return"
        raise DivergedError(block.first + lane, what, f"after {done[lane] + 1} batches")
    steps = np.zeros(len(keys), np.int64)
    np.add.at(steps, lanes[with_run], lengths[with_run].sum(1))
    return Round(lanes, episodes, computed, returns, lengths, states, steps=steps)


@functools.partial(jax.jit, compiler_options=LAUNCHED_AT_ONCE)
def _update(
    learners: Reinforce,
    states: ReinforceState,
    keys: jax.Array,
    numbers: jax.Array,
    lanes: jax.Array,
    episodes: Episodes,
) -> tuple[ReinforceState, jax.Array, jax.Array]:
    """Let some lanes learn from a batch each.

    Args:
        learners: those of all lanes.
        states: what all lanes have learned so far.
        keys: the keys of their runs.
        numbers: the numbers of their batches.
        lanes: the lanes that learn. Padding, a number that is no lane's, is ignored.
        episodes: the batches of these lanes.

    Returns:
        The states of all lanes, the returns of the batches' episodes, and for each lane that has
        learned whether its state is finite.
    """

    def one(
        learner: Reinforce, state: ReinforceState, key: jax.Array, episodes: Episodes
    ) -> tuple[ReinforceState, jax.Array, jax.Array]:
        learned = learner.update(state, episodes, random_keys.learning_batch(key))
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(learned)]
        return learned, episodes.returns(), jnp.stack(finite).all()

    of_all = (learners, states, random_keys.batches(keys, numbers))
    some = jax.tree.map(lambda x: x.at[lanes].get(mode="clip"), of_all)
    if len(lanes) == 1:  # without an axis of one lane, at which matrix products are slower
        results = one(*jax.tree.map(lambda x: x[0], (*some, episodes)))
        learned, returns, finite = jax.tree.map(lambda x: x[None], results)
    else:
        learned, returns, finite = lax.map(
            lambda lane: one(*lane), (*some, episodes), batch_size=AT_A_TIME
        )
    states = jax.tree.map(lambda x, y: x.at[lanes].set(y, mode="drop"), states, learned)
    return states, returns, finite
