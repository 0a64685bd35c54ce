"""Thousands of small MDPs in arrays of one size."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from ...mdp import MDP, random_mdp

__all__ = ["Batch"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Small dense MDPs of different sizes in arrays of one size; what is padded is 0 and False."""

    transitions: Floats  # [N, S, A, S]
    rewards: Floats  # [N, S, A]
    allowed: npt.NDArray[np.bool_]  # [N, S, A]: is it an action of a state that is there?
    sizes: Integers  # [N, 2], states and actions
    live: npt.NDArray[np.bool_]  # [N, S]: is it a state, and not terminal?

    @classmethod
    def of(cls, mdps: Sequence[MDP], n_states: int = 10, n_actions: int = 5) -> Self:
        """Pad MDPs that allow every action; section 7.1 has up to 10 states and 5 actions."""
        shape = (len(mdps), n_states, n_actions)
        transitions, rewards = np.zeros((*shape, n_states)), np.zeros(shape)
        allowed, live = np.zeros(shape, np.bool_), np.zeros(shape[:2], np.bool_)
        sizes = np.empty((len(mdps), 2), np.int32)
        for i, mdp in enumerate(mdps):
            s, a = sizes[i] = mdp.n_states, mdp.n_actions
            transitions[i, :s, :a, :s], rewards[i, :s, :a] = mdp.to_numpy()
            allowed[i, :s, :a], live[i, :s] = True, ~mdp.terminal
        return cls(transitions, rewards, allowed, sizes, live)

    @classmethod
    def random(cls, seed: int, numbers: Sequence[int]) -> Self:
        """The random MDPs of section 7.1: number i is `random_mdp([seed, i])`."""
        return cls.of([random_mdp([seed, number]) for number in numbers])

    def __len__(self) -> int:
        return len(self.sizes)
