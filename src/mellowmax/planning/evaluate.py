"""The exact value of a policy: planning with the softmax whose weights are the policy's.

Its value is the fixed point of `q = r + discount * P v` with `v = sum_a policy(a) q(a)`.
That is planning with a softmax that weighs the actions by the policy whatever their values. With a
bonus in each state, `v = sum_a policy(a) q(a) + bonus`, it is soft policy evaluation (Haarnoja et
al. 2018), where the bonus is the policy's entropy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, overload

import numpy as np
from array_api_compat import array_namespace

from .._common import checks
from .._common.evaluation import check_policy
from .._typing import ArrayLike, ArrayT, Mask, Numbers
from ..mdp import MDP
from ..softmax import Softmax
from .arguments import arrays_of_each_step, of_each_step
from .average_reward import AverageSolution
from .finite_horizon import FiniteHorizonSolution
from .solution import Solution
from .solve import solve

__all__ = ["FixedPolicy", "PolicyWithBonus", "evaluate"]


@overload
def evaluate(
    policy: ArrayLike,
    mdp: MDP | Sequence[MDP],
    *,
    horizon: int,
    bonus: ArrayLike | None = None,
    **options: Any,
) -> FiniteHorizonSolution: ...


@overload
def evaluate(
    policy: ArrayLike,
    mdp: MDP,
    *,
    average: Literal[True],
    bonus: ArrayLike | None = None,
    **options: Any,
) -> AverageSolution: ...


@overload
def evaluate(
    policy: ArrayLike, mdp: MDP, *, bonus: ArrayLike | None = None, **options: Any
) -> Solution: ...


def evaluate(
    policy: ArrayLike,
    mdp: MDP | Sequence[MDP],
    *,
    horizon: int | None = None,
    bonus: ArrayLike | None = None,
    **options: Any,
) -> Solution | FiniteHorizonSolution | AverageSolution:
    """The exact value of a policy in each state, with a bonus where there is one.

    Args:
        policy: `[S, A]`, the probability of each action in each state; with a horizon also
            `[T, S, A]`, those of each step.
        mdp: the MDP, or with a horizon a list of one for each step.
        horizon: the number of steps; None for no end but that of episodes.
        bonus: `[S]`, what each visit to a state is worth besides what the policy earns, such as
            `softmax.bonus(q)`; with a horizon also `[T, S]`. A terminal state has none. None for
            no bonus.
        **options: the further ones of `solve`, such as `tolerance` and `average`.

    Returns:
        What `solve` returns; its `value` and `q` are those of the policy with its bonus, with their
        error bound.

    Raises:
        ValueError: for a policy that is not as above, or takes actions that are not allowed, or a
            bonus that is not one finite number for each state.

    Examples:
        The fixed point of a softmax is the value of its own policy, with its bonus where it has
        one:

        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> earned = evaluate(solution.policy, two_state())
        >>> print(solution.value.round(6), earned.value.round(6))
        [0.43134 0.     ] [0.43134 0.     ]

        The entropy of a uniform policy over two actions, paid in every step to come:

        >>> import numpy as np
        >>> from mellowmax.mdp import chain
        >>> uniform = np.full((3, 2), 0.5)
        >>> entropy = np.full(3, np.log(2))
        >>> paid = evaluate(uniform, chain(3, discount=0.9), bonus=entropy).value
        >>> print((paid - evaluate(uniform, chain(3, discount=0.9)).value).round(6))
        [6.931472 6.931472 6.931472]
    """
    if isinstance(policy, MDP):
        raise TypeError("`policy` must come first, as in evaluate(policy, mdp), got the MDP there")
    if horizon is None:
        checks.instance("mdp", mdp, MDP, "an MDP")
        assert isinstance(mdp, MDP)  # as mypy does not know by now
        return solve(mdp, _fixed(policy, bonus, mdp), **options)
    horizon = checks.whole("horizon", horizon, 1)
    mdps = of_each_step("mdp", mdp, MDP, "an MDP", horizon)
    policies = arrays_of_each_step("policy", policy, 3, horizon)
    bonuses = [None] * horizon if bonus is None else arrays_of_each_step("bonus", bonus, 2, horizon)
    steps = zip(policies, bonuses, mdps, strict=True)
    return solve(mdps, [_fixed(*step) for step in steps], horizon=horizon, **options)


def _fixed(policy: ArrayLike, bonus: ArrayLike | None, mdp: MDP) -> FixedPolicy:
    """The softmax whose policy this is in an MDP."""
    shape = (mdp.n_states, mdp.n_actions)
    weights = check_policy(policy, shape, mdp.allowed, mdp.name_of_state)
    if bonus is None:
        return FixedPolicy(weights)
    paid = checks.numbers("bonus", bonus)
    if paid.shape != (mdp.n_states,):
        raise ValueError(
            f"`bonus` must have one number for each of the {mdp.n_states} states, "
            f"got the shape {paid.shape}"
        )
    checks.finite("bonus", paid)
    return PolicyWithBonus(weights, paid)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FixedPolicy(Softmax):
    """The expected value under a policy of probabilities `[S, A]`."""

    attained: ClassVar[bool] = True
    non_expansion: ClassVar[bool] = True

    weights: Any

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> Any:
        """`sum(weights * q)`."""
        weights = self._along(axis)
        # An action that is never taken does not count, be its value -inf.
        return (weights * array_namespace(q).where(weights == 0, 0.0, q)).sum(axis)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> Any:
        """The weights."""
        return self._along(axis)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> Any:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            return np.log(self._along(axis))

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> Any:
        """The weights."""
        return self._along(axis)

    def _along(self, axis: int) -> Any:
        return self.weights.T if axis == 0 and self.weights.ndim == 2 else self.weights

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PolicyWithBonus(FixedPolicy):
    """The expected value under a policy, and a bonus of each state, `[S]`."""

    attained: ClassVar[bool] = False

    paid: Any

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> Any:
        """`sum(weights * q) + paid`."""
        return super().value(q, axis=axis, where=where) + self.paid
