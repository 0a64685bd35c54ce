"""Learning from whole episodes: rollouts play a batch, and the learner learns from it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..checkpoint import BlockState
from ..episodes import Episodes, padded_length
from ..network import Policy
from ..reinforce import Reinforce, ReinforceState
from ..rollouts.functional import FunctionalRollouts
from ..rollouts.rollouts import LAUNCHED_AT_ONCE, WIDTH, Played, Rollouts, batch_keys
from .loop import Ended, Learned, diverged, initial_states, room

__all__ = ["BatchLoop"]

ACCELERATOR_WIDTH = 1024
"""A block has a multiple of this on an accelerator."""
AT_A_TIME = 256
"""How many lanes learn side by side. On an accelerator matrix products round differently for other
numbers of them, and a run must learn the same whatever runs are beside it; and what is computed for
so many stays in its cache."""
LEARNING = 2**32 - 1
"""What a batch's key is folded with for what is random in learning from it."""


class BatchLoop:
    """The loop of REINFORCE.

        states, returns = update(learners, states, episodes)        for every batch that is played,

    and the next batch of a run is played by what it has learned by then. The rollouts decide on how
    episodes are played and on which runs end their batch first; they never learn.

    Args:
        rollouts: of the environment.
        batch: how many episodes a run learns from at a time.
    """

    def __init__(self, rollouts: Rollouts, batch: int) -> None:
        self.rollouts, self.batch = rollouts, batch

    def width(self, lanes: int, devices: Sequence[jax.Device]) -> int:
        """As `Loop` has it: 32 on a CPU, and as many as an accelerator wants."""
        rollouts = self.rollouts
        if devices[0].platform == "cpu" or not isinstance(rollouts, FunctionalRollouts):
            return WIDTH
        numbers = rollouts.n_observations + 2  # of a step: what was seen, the action and the reward
        of_lane = 4 * numbers * padded_length(rollouts.max_steps) * self.batch
        most = max(1, int(room(devices[0]) / of_lane / ACCELERATOR_WIDTH))
        return ACCELERATOR_WIDTH * min(most, -(-lanes // (len(devices) * ACCELERATOR_WIDTH)))

    def init(self, learners: Reinforce, keys: jax.Array) -> ReinforceState:
        """As `Loop` has it."""
        sizes = (self.rollouts.n_observations, self.rollouts.n_actions)
        states: ReinforceState = initial_states(learners, keys, *sizes)
        return states

    def policies(self, learners: Reinforce, states: ReinforceState) -> Policy:
        """As `Loop` has it."""
        return learners.policy(states)

    def rounds(self, learners: Reinforce, keys: jax.Array, block: BlockState) -> Generator[Learned]:
        """As `Loop` has it, whenever a batch is whole."""
        log = block.log
        batches = self.rollouts.play(
            lambda: learners.policy(block.states),
            keys,
            tuple(log.done.tolist()),
            log.episodes // self.batch,
            self.batch,
        )
        with contextlib.closing(batches):
            for played in batches:
                yield _learn(learners, keys, block, played)


def _learn(learners: Reinforce, keys: jax.Array, block: BlockState, played: Played) -> Learned:
    """Learn from a batch of some lanes."""
    done = block.log.done
    numbers = np.pad(done, (0, len(keys) - len(done))).astype(np.uint32)
    learned, returns, finite = _update(
        learners, block.states, keys, numbers, played.lanes, played.episodes
    )
    returns, lengths = np.asarray(returns), np.asarray(played.episodes.lengths)
    with_run = played.lanes < len(done)
    wrong = with_run & ~(np.asarray(finite) & np.isfinite(returns).all(1))
    if wrong.any():
        at = int(wrong.argmax())
        lane, what = played.lanes[at], "weight" if np.isfinite(returns[at]).all() else "return"
        raise diverged(block.first + lane, what, f"after {done[lane] + 1} batches")
    ended = Ended(played.lanes, returns, lengths)
    return Learned(learned, [ended], int(lengths[with_run].sum()), played.computed)


@functools.partial(jax.jit, compiler_options=LAUNCHED_AT_ONCE)
def _update(
    learners: Reinforce,
    states: ReinforceState,
    keys: jax.Array,
    numbers: jax.Array,
    lanes: jax.Array,
    episodes: Episodes,
) -> tuple[ReinforceState, jax.Array, jax.Array]:
    """Let some lanes learn from a batch each; lanes that there are not learn nothing.

    Args:
        learners: of all lanes.
        states: what they have learned so far.
        keys: of their runs.
        numbers: of their batches.
        lanes: those that learn.
        episodes: of these.

    Returns:
        The states of all lanes, the returns of the batch's episodes, and whether all is finite that
        each of the lanes has learned.
    """

    def one(learner: Reinforce, state: ReinforceState, key: jax.Array, episodes: Episodes) -> Any:
        learned = learner.update(state, episodes, jax.random.fold_in(key, LEARNING))
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(learned)]
        return learned, episodes.returns(), jnp.stack(finite).all()

    of_all = (learners, states, batch_keys(keys, numbers))
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
