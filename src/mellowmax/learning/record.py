"""The records of a run: its rewards, or the returns of its episodes.

There are two recorders. `BinRecorder` adds up the rewards of equal stretches of steps, for runs of
a given number of steps. `EpisodeRecorder` keeps the return and the length of each episode, and the
action values of chosen states at its end, for runs of a given number of episodes. `recorder_of`
chooses the one that the arguments of `train` ask for.

A recorder itself never changes; what it has recorded of a run is the run's data, a `BinRecord` or
an `EpisodeRecord`. In the compiled program, `observe` sees every step and may emit a number, and
once a block of `BLOCK` steps `absorb` gets all numbers that were emitted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._common import checks
from .._common.shown import shown

__all__ = [
    "BLOCK",
    "BinRecord",
    "BinRecorder",
    "EpisodeRecord",
    "EpisodeRecorder",
    "Recorder",
    "recorder_of",
]

BLOCK = 128
"""How many steps a block of the compiled program has."""
NO_LIMIT = 2**31 - 2 * BLOCK
"""The longest run: its steps, and those of its last block, are counted in 32 bits."""


class BinRecord(NamedTuple):
    """The sums of the rewards in each bin so far, and the rounding error of each sum.

    Both are `[bins + 1]`; the last entry is for steps after the end of the run.
    """

    sums: jax.Array
    errors: jax.Array


@dataclasses.dataclass(frozen=True)
class BinRecorder:
    """The mean reward of a step in each of `n_bins` stretches of `width` steps."""

    n_bins: int
    width: int

    def begin(self) -> BinRecord:
        """An empty record."""
        return BinRecord(*jnp.zeros((2, self.n_bins + 1), jnp.float32))

    def live(self, record: BinRecord, step: jax.Array) -> jax.Array:
        """Is the run still under way at this step?"""
        return step < self.n_bins * self.width

    def observe(
        self,
        record: BinRecord,
        q: jax.Array,
        reward: jax.Array,
        terminated: jax.Array,
        live: jax.Array,
    ) -> tuple[BinRecord, jax.Array]:
        """Emit the reward."""
        return record, jnp.where(live, reward, jnp.float32(0))

    def absorb(self, record: BinRecord, first: jax.Array, rewards: jax.Array) -> BinRecord:
        """Add the rewards of the steps from `first` on, with Kahan's compensated sums."""
        n_steps = len(rewards)
        n_local = n_steps // self.width + 2
        first_bin = first // self.width
        local = (first + jnp.arange(n_steps, dtype=jnp.int32)) // self.width - first_bin
        sums = jax.ops.segment_sum(rewards, local, n_local, indices_are_sorted=True)
        bins = jnp.minimum(first_bin + jnp.arange(n_local, dtype=jnp.int32), self.n_bins)
        before = record.sums[bins]
        added = sums - record.errors[bins]
        after = before + added
        errors = (after - before) - added
        return BinRecord(record.sums.at[bins].set(after), record.errors.at[bins].set(errors))

    def result(self, record: BinRecord) -> dict[str, jax.Array]:
        """`rewards`: `[bins]`."""
        return {"rewards": record.sums[: self.n_bins] / self.width}


class EpisodeRecord(NamedTuple):
    """The episodes so far, and the one that is under way."""

    returns: jax.Array
    lengths: jax.Array
    values: jax.Array
    episode: jax.Array
    """The number of the episode that is under way."""
    reward: jax.Array
    """The sum of its rewards so far."""
    length: jax.Array
    """Its steps so far."""


@dataclasses.dataclass(frozen=True)
class EpisodeRecorder:
    """The return and the length of each of `n_episodes`, and values at its end."""

    n_episodes: int
    n_actions: int
    limit: int
    """The step at which every run stops, even within an episode."""
    states: tuple[int, ...]
    """The states whose values are kept."""

    def begin(self) -> EpisodeRecord:
        """An empty record: NaN, until an episode ends."""
        n = self.n_episodes
        returns = jnp.full(n, jnp.nan, jnp.float32)
        values = jnp.full((n, len(self.states), self.n_actions), jnp.nan, jnp.float32)
        zero = jnp.int32(0)
        return EpisodeRecord(returns, jnp.zeros(n, jnp.int32), values, zero, jnp.float32(0), zero)

    def live(self, record: EpisodeRecord, step: jax.Array) -> jax.Array:
        """Is the run still under way at this step?"""
        return (record.episode < self.n_episodes) & (step < self.limit)

    def observe(
        self,
        record: EpisodeRecord,
        q: jax.Array,
        reward: jax.Array,
        terminated: jax.Array,
        live: jax.Array,
    ) -> tuple[EpisodeRecord, None]:
        """Count the step, and close the episode where it ends."""
        total, length = record.reward + reward, record.length + 1
        ended = terminated & live
        at = jnp.where(ended, record.episode, self.n_episodes)  # one past the last is dropped
        values = record.values
        if self.states:
            values = values.at[at].set(q[jnp.asarray(self.states)], mode="drop")
        return EpisodeRecord(
            record.returns.at[at].set(total, mode="drop"),
            record.lengths.at[at].set(length, mode="drop"),
            values,
            record.episode + ended.astype(jnp.int32),
            jnp.where(ended, jnp.float32(0), total),
            jnp.where(ended, jnp.int32(0), length),
        ), None

    def absorb(self, record: EpisodeRecord, first: jax.Array, emitted: None) -> EpisodeRecord:
        """The record as it is: nothing was emitted."""
        return record

    def result(self, record: EpisodeRecord) -> dict[str, jax.Array]:
        """`returns` and `lengths`: `[episodes]`; `values`: `[episodes, states, A]`."""
        values = {"values": record.values} if self.states else {}
        return {"returns": record.returns, "lengths": record.lengths, **values}


Recorder: TypeAlias = BinRecorder | EpisodeRecorder


def recorder_of(
    steps: int | None,
    episodes: int | None,
    bins: int,
    values: Sequence[int],
    n_states: int,
    n_actions: int,
) -> Recorder:
    """The recorder that the arguments of `train` ask for, once they are checked."""
    listed = checks.integers("values", values)
    if listed.ndim != 1:
        raise ValueError(f"`values` must be a list of states, got {shown(values)}")
    if steps is not None:
        steps = checks.whole("steps", steps, 1, NO_LIMIT)
    if episodes is not None:
        episodes = checks.whole("episodes", episodes, 1)
        states = tuple(checks.whole("values", state, 0, n_states - 1) for state in listed.tolist())
        return EpisodeRecorder(episodes, n_actions, NO_LIMIT if steps is None else steps, states)
    if steps is None:
        raise ValueError("`steps` or `episodes` must be given, got neither")
    if listed.size:
        raise ValueError(f"`values` are recorded where `episodes` is given, got {values} without")
    bins = checks.whole("bins", bins, 1)
    if steps % bins:
        raise ValueError(f"`bins` must divide the {steps} `steps`, got {bins}")
    return BinRecorder(bins, steps // bins)
