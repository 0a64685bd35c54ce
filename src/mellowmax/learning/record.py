"""What a run keeps of what happens to it: a recorder, one of two kinds.

`Bins` adds up the rewards of equal stretches of steps, for runs of a given length. `Episodes` keeps
the return and the length of each episode, and the values of chosen states at its end, for runs of a
given number of episodes.

A recorder is static; its record is data of one run. In a block of steps, `observe` sees every step
and may emit something, and `absorb` sees at the end of the block all that was emitted.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Bins", "BinsRecord", "Episodes", "EpisodesRecord"]


class BinsRecord(NamedTuple):
    """The sums of the rewards in each bin so far, and what rounding took from each.

    Both are `[bins + 1]`; the last is for what comes after the run.
    """

    sums: Any
    lost: Any


@dataclasses.dataclass(frozen=True)
class Bins:
    """The mean reward of a step in each of `n_bins` stretches of `width` steps."""

    n_bins: int
    width: int

    def begin(self) -> BinsRecord:
        """A record of nothing."""
        return BinsRecord(*jnp.zeros((2, self.n_bins + 1), jnp.float32))

    def live(self, record: BinsRecord, step: Any) -> Any:
        """Does the run still go on at this step?"""
        return step < self.n_bins * self.width

    def observe(self, record: BinsRecord, q: Any, reward: Any, terminated: Any, live: Any) -> Any:
        """Emit the reward."""
        return record, jnp.where(live, reward, jnp.float32(0))

    def absorb(self, record: BinsRecord, first: Any, rewards: Any) -> BinsRecord:
        """Add the rewards of the steps from `first` on, with Kahan's compensated sums."""
        n_steps = len(rewards)
        local = n_steps // self.width + 2
        at = first // self.width
        bins = (first + jnp.arange(n_steps, dtype=jnp.int32)) // self.width - at
        sums = jax.ops.segment_sum(rewards, bins, local, indices_are_sorted=True)
        places = jnp.minimum(at + jnp.arange(local, dtype=jnp.int32), self.n_bins)
        before = record.sums[places]
        added = sums - record.lost[places]
        after = before + added
        lost = (after - before) - added
        return BinsRecord(record.sums.at[places].set(after), record.lost.at[places].set(lost))

    def result(self, record: BinsRecord) -> dict[str, Any]:
        """`rewards`: `[bins]`."""
        return {"rewards": record.sums[: self.n_bins] / self.width}


class EpisodesRecord(NamedTuple):
    """The episodes so far; the last entries are for the one that is under way."""

    returns: Any
    lengths: Any
    values: Any
    episode: Any
    reward: Any
    length: Any


@dataclasses.dataclass(frozen=True)
class Episodes:
    """The return and the length of each of `n_episodes`, and values at its end."""

    n_episodes: int
    n_actions: int
    limit: int
    """The step at which every run stops, even within an episode."""
    states: tuple[int, ...]
    """Whose values to keep."""

    def begin(self) -> EpisodesRecord:
        """A record of nothing: NaN, until an episode ends."""
        n = self.n_episodes
        nothing = jnp.full(n, jnp.nan, jnp.float32)
        values = jnp.full((n, len(self.states), self.n_actions), jnp.nan, jnp.float32)
        zero = jnp.int32(0)
        return EpisodesRecord(nothing, jnp.zeros(n, jnp.int32), values, zero, jnp.float32(0), zero)

    def live(self, record: EpisodesRecord, step: Any) -> Any:
        """Does the run still go on at this step?"""
        return (record.episode < self.n_episodes) & (step < self.limit)

    def observe(
        self, record: EpisodesRecord, q: Any, reward: Any, terminated: Any, live: Any
    ) -> Any:
        """Count the step, and close the episode where it ends."""
        total, length = record.reward + reward, record.length + 1
        ended = terminated & live
        at = jnp.where(ended, record.episode, self.n_episodes)  # one past the last is dropped
        values = record.values
        if self.states:
            values = values.at[at].set(q[jnp.asarray(self.states)], mode="drop")
        return EpisodesRecord(
            record.returns.at[at].set(total, mode="drop"),
            record.lengths.at[at].set(length, mode="drop"),
            values,
            record.episode + ended.astype(jnp.int32),
            jnp.where(ended, jnp.float32(0), total),
            jnp.where(ended, jnp.int32(0), length),
        ), None

    def absorb(self, record: EpisodesRecord, first: Any, emitted: None) -> EpisodesRecord:
        """Nothing was emitted."""
        return record

    def result(self, record: EpisodesRecord) -> dict[str, Any]:
        """`returns` and `lengths`: `[episodes]`; `values`: `[episodes, states, A]`."""
        values = {"values": record.values} if self.states else {}
        return {"returns": record.returns, "lengths": record.lengths, **values}
