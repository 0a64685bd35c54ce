"""Thousands of small MDPs in arrays of one size."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from ..._common import checks
from ..._common.parameters import map_parameters
from ..._typing import ArrayLike, Bools, Floats, Integers
from ...mdp import MDP, Model
from ...softmax import Softmax

__all__ = ["Batch", "discount_of_each", "softmax_of_each"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Small MDPs of different sizes, padded to one size; `Batch.of(mdps)` makes it.

    `batch[indices]` is a batch of some of the MDPs. One that is to be planned with several
    parameters, discounts or initial values is taken as many times.

    Examples:
        >>> from mellowmax.mdp import random_mdp, two_state
        >>> batch = Batch.of([two_state(), random_mdp(0), random_mdp(1)])
        >>> batch
        Batch(mdps=3, states=9, actions=4)
        >>> batch[[0, 0, 2]].sizes.tolist()
        [[2, 2], [2, 2], [6, 4]]
    """

    transitions: Floats
    """`[N, S, A, S]`; 0 where there is no such state or action."""
    rewards: Floats
    """`[N, S, A]`, expected; 0 where there is no such state or action."""
    allowed: Bools
    """`[N, S, A]`: is there such a state, and is the action allowed in it?"""
    available: Bools
    """`[N, S, A]`: is it allowed, and the state not terminal?"""
    sizes: Integers
    """`[N, 2]`, the states and actions of each MDP."""
    discounts: Floats
    """`[N]`, the discount of each."""

    @classmethod
    def of(
        cls, mdps: Sequence[MDP], *, n_states: int | None = None, n_actions: int | None = None
    ) -> Self:
        """Put MDPs into arrays of one size.

        Args:
            mdps: the MDPs, at least one. The transitions are dense, so they should be small.
            n_states: the states of the padded arrays; None for the most of any MDP. Results do not
                depend on it, but batches of one size share a compiled program.
            n_actions: the same for actions.

        Raises:
            ValueError: if there is no MDP, or one is larger than the size given.
        """
        mdps = checks.instances("mdps", mdps, MDP, "a list of MDPs")
        if not mdps:
            raise ValueError("`mdps` must have at least one MDP, got none")
        sizes = np.array([(mdp.n_states, mdp.n_actions) for mdp in mdps], np.int32)
        most_states, most_actions = (int(most) for most in sizes.max(0))
        n_states = most_states if n_states is None else n_states
        n_actions = most_actions if n_actions is None else n_actions
        n_states = checks.whole("n_states", n_states, most_states)
        n_actions = checks.whole("n_actions", n_actions, most_actions)
        shape = (len(mdps), n_states, n_actions)
        transitions, rewards = np.zeros((*shape, n_states)), np.zeros(shape)
        allowed, available = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        for i, (mdp, (s, a)) in enumerate(zip(mdps, sizes, strict=True)):
            mdp.check_ends()
            transitions[i, :s, :a, :s], rewards[i, :s, :a] = mdp.to_numpy()
            allowed[i, :s, :a] = True if mdp.allowed is None else mdp.allowed
            available[i, :s, :a] = mdp.available
        discounts = np.array([mdp.discount for mdp in mdps])
        return cls(transitions, rewards, allowed, available, sizes, discounts)

    @property
    def terminal(self) -> Bools:
        """`[N, S]`: is the state terminal? Also where there is no such state."""
        return np.logical_not(self.available.any(-1))

    def model(self, discounts: ArrayLike | None = None) -> Model:
        """The arrays alone, each with N first, for `jax.vmap`; with the MDPs' own discounts."""
        own = self.discounts if discounts is None else discounts
        return Model(self.rewards, self.transitions, None, own, self.allowed, self.terminal)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, indices: ArrayLike | slice) -> Self:
        """The batch of some of the MDPs, by their indices, a mask or a slice."""
        if isinstance(indices, slice):
            chosen = np.arange(len(self))[indices]
        else:
            chosen = checks.array("indices", indices)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
            raise ValueError(
                "`indices` must be a list of whole numbers, a mask or a slice, "
                f"got {chosen.dtype} with {chosen.shape}"
            )
        fields = (getattr(self, field.name) for field in dataclasses.fields(self))
        return type(self)(*(array[chosen] for array in fields))

    def __repr__(self) -> str:
        _, n_states, n_actions = self.rewards.shape
        return f"Batch(mdps={len(self)}, states={n_states}, actions={n_actions})"


def discount_of_each(batch: Batch, discount: ArrayLike | None, *, below_one: bool) -> Floats:
    """`[N]`: the discounts given, or the MDPs' own."""
    checks.instance("batch", batch, Batch, "a Batch, such as Batch.of(mdps)")
    given = batch.discounts if discount is None else checks.numbers("discount", discount)
    if given.shape not in ((), (len(batch),)):
        raise ValueError(
            f"`discount` must be a number or one for each of the {len(batch)} MDPs, "
            f"got the shape {given.shape}"
        )
    wrong = ~((given >= 0) & ((given < 1) if below_one else (given <= 1)))
    if wrong.any():
        rule = "in [0, 1)" if below_one else "in [0, 1]"
        raise ValueError(f"`discount` must be {rule}, got {given[wrong].flat[0]:g}")
    return np.broadcast_to(given, len(batch))


def softmax_of_each(batch: Batch, softmax: Softmax) -> Softmax:
    """The softmax with a parameter `[N]` for each MDP, and with a prior `[N, A]`."""
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")

    n_actions = batch.rewards.shape[-1]

    def of_each(parameter: ArrayLike, inner: int) -> Floats:
        given = np.asarray(parameter, np.float64)
        own = given.shape[given.ndim - inner :]
        if inner and own != (n_actions,):
            rule = f"`softmax` must have a prior with the {n_actions} actions of the batch last"
            raise ValueError(f"{rule}, got the shape {given.shape}")
        if given.shape[: given.ndim - inner] not in ((), (len(batch),)):
            raise ValueError(
                f"`softmax` must have one parameter or one for each of the {len(batch)} MDPs, "
                f"got the shape {given.shape}"
            )
        return np.broadcast_to(given, (len(batch), *own))

    return map_parameters(of_each, softmax)
