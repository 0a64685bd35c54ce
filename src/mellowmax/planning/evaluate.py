"""The exact value of a policy: planning with the softmax whose weights are the policy's.

Its value is the fixed point of `q = r + discount * P v` with `v = sum_a policy(a) q(a)`.
That is planning with a softmax that weighs the actions by the policy whatever their values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, overload

import numpy as np
from array_api_compat import array_namespace

from .._common import checks
from .._common.evaluation import check_policy
from .._typing import ArrayLike, ArrayT, Mask, Numbers
from ..mdp import MDP
from ..softmax import Softmax
from .finite_horizon import FiniteHorizonSolution, of_each_step
from .solution import Solution
from .solve import solve

__all__ = ["FixedPolicy", "evaluate"]


@overload
def evaluate(
    policy: ArrayLike, mdp: MDP | Sequence[MDP], *, horizon: int, **options: Any
) -> FiniteHorizonSolution: ...


@overload
def evaluate(policy: ArrayLike, mdp: MDP, **options: Any) -> Solution: ...


def evaluate(
    policy: ArrayLike, mdp: MDP | Sequence[MDP], *, horizon: int | None = None, **options: Any
) -> Solution | FiniteHorizonSolution:
    """The exact value of a policy in each state.

    Args:
        policy: `[S, A]`, the probability of each action in each state; with a horizon also
            `[T, S, A]`, those of each step.
        mdp: the MDP, or with a horizon a list of one for each step.
        horizon: the number of steps; None for no end but that of episodes.
        **options: the further ones of `solve`, such as `tolerance`.

    Returns:
        What `solve` returns; its `value` and `q` are those of the policy, with their error bound.

    Raises:
        ValueError: for a policy that is not as above, or takes actions that are not allowed.

    Examples:
        The fixed point of a softmax is the value of its own policy:

        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> earned = evaluate(solution.policy, two_state())
        >>> print(solution.value.round(6), earned.value.round(6))
        [0.43134 0.     ] [0.43134 0.     ]
    """
    if isinstance(policy, MDP):
        raise TypeError("`policy` must come first, as in evaluate(policy, mdp), got the MDP there")
    if horizon is None:
        checks.instance("mdp", mdp, MDP, "an MDP")
        assert isinstance(mdp, MDP)  # as mypy does not know by now
        return solve(mdp, _fixed(policy, mdp), **options)
    horizon = checks.whole("horizon", horizon, 1)
    mdps = of_each_step("mdp", mdp, MDP, "an MDP", horizon)
    steps = [policy] * horizon if np.ndim(policy) < 3 else list(np.asarray(policy))  # type: ignore[arg-type]
    if len(steps) != horizon:
        raise ValueError(f"`policy` must have {horizon} steps, got {len(steps)}")
    fixed = [_fixed(step, one) for step, one in zip(steps, mdps, strict=True)]
    return solve(mdps, fixed, horizon=horizon, **options)


def _fixed(policy: ArrayLike, mdp: MDP) -> FixedPolicy:
    """The softmax whose policy this is in an MDP."""
    return FixedPolicy(check_policy(policy, (mdp.n_states, mdp.n_actions), mdp.allowed))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FixedPolicy(Softmax):
    """The expected value under a policy of probabilities `[S, A]`."""

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
        return "FixedPolicy()"
