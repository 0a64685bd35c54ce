"""How far a result can be from the fixed point, and from the optimum.

Let `T` be the sweep of a softmax whose operator `f` does not fall when an action gets better and
moves with a shift of all actions (all but Boltzmann's). If `T q - q <= c` for a number `c >= 0`,
then `T^(n+1) q - T^n q <= kappa^n c`, where `kappa` is the discount times the largest probability
that the episode goes on; so the fixed point is at most `c / (1 - kappa)` above `q`, and likewise
below. `1 / (1 - kappa)` bounds the expected discounted number of steps, the *horizon*; where
`kappa` is 1, the largest expected number of steps of any policy takes its place (`horizon`).

    error <= horizon * max |T q - q|                                                   (1)

Let `gap` be how far `f` is below the maximum. The sweep of the maximum then moves `q` up by at most
`max(T q - q) + kappa * gap`, which bounds how far the optimal values are above `q`. What the
softmax's own policy earns is below the state values `v = f(q)` by the expected discounted sum, over
the states that it comes to, of two things. One is `q - T q` at its actions. The other is the bonus
`B(s) = v(s) - sum_a policy(a) q(s, a)`, which a sweep with `f` pays and one with the policy does
not: 0 where the policy attains the value. So what it earns is at most
`horizon * (max(q - T q)^+ + max(B)^+)` below. Together, for the values of states and of actions,

    loss <= gap + horizon * (max(T q - q)^+ + kappa * gap + max(q - T q)^+ + max(B)^+)  (2)

and at the fixed point `loss <= (gap + max(B)^+) / (1 - kappa)`. For mellowmax `gap <= log(n) /
omega` with `n` actions (`Softmax.gap`), and `B` is 0, which answers a question that section 9
leaves open. For log-sum-exp the gap is 0 and `B` is the policy's entropy over beta. (2) takes `B`
at the values at hand, which is at most `Softmax.largest_bonus`, and only of states that are not
terminal: those have the value 0, without a bonus. It needs nothing of `f`, and holds for
Boltzmann's too.

The rewards alone bound what any policy can earn. From a state or a state and an action, let
`d(s, a)` be how often a policy takes `a` in `s`, each time discounted, and let `c(s, a)` be the
discount times the probability that the episode goes on from there. An episode takes its first step
once, and each further one follows on a step that goes on: `sum d = 1 + sum d c`. So the weights
`d (1 - c)` sum to 1, and what the policy earns, `sum d r`, is the mean under them of `r / (1 - c)`:

    min r / (1 - c) <= value of any policy <= max r / (1 - c)                          (3)

over the actions that can be taken. It lies between `horizon * min(r, 0)` and `horizon * max(r, 0)`
too, which helps where `c` is 1. The optimum and the value of the softmax's policy both lie
there. So no loss exceeds the upper end of (3) minus its lower end (or minus the lowest of the
values at hand, where one is lower still), and (2) is cut off there.

All allow for rounding: a sum of `K` products of numbers up to `M` is off by at most `K eps M`.

They allow for underflow too. XLA takes a number below the smallest normal one, `tiny`, for 0, be it
given or computed, and each time that is an error of at most `tiny`. In a sweep a branch is a value
that is read, a product and a sum: `3 K tiny` in all, since no probability or discount makes an
error larger. An operator counts for as many numbers as it has roundings. The reward, the product
with the discount, and the sums with the reward, the shift and the values before are a few more. So
the next change is off by less than `4 (K + 64) tiny`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import jax
import numpy as np
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike

from .._common import checks
from .._typing import Floats
from ..mdp import MDP
from ..softmax import Max, Softmax
from .bellman import action_values, best_values, values
from .devices import STATES, largest, namespace, smallest, stacked
from .linear.transitions import once
from .problem import Model

__all__ = [
    "EVIDENCE_SPECS",
    "Evidence",
    "Margins",
    "earnings",
    "error_bound",
    "loss_bound",
    "of_action_values",
    "of_sweep",
    "suboptimality",
]

ROUNDINGS_OF_AN_OPERATOR = 64
"""How many roundings, at most, the operators are worth (their tests hold them to less)."""


def suboptimality(softmax: Softmax, n_actions: int, discount: float) -> float:
    """A bound on how far what the policy at a fixed point earns is below the optimum.

    Args:
        softmax: any pair.
        n_actions: the largest number of actions in a state.
        discount: in [0, 1).

    Returns:
        `(gap + largest bonus) / (1 - discount)`: for mellowmax `log(n) / (omega (1 - discount))`.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> round(suboptimality(Mellowmax(16.55), 2, 0.98), 4)
        2.0941
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    n_actions = checks.whole("n_actions", n_actions, 1)
    if not 0 <= checks.real("discount", discount) < 1:
        raise ValueError(f"`discount` must be in [0, 1), got {discount}")
    most = softmax.gap(n_actions) + max(softmax.largest_bonus(n_actions), 0.0)
    return most / (1 - discount)


class Evidence(NamedTuple):
    """What a program computes for the bounds at action values `q + shift`."""

    value: jax.Array  # [S], f(q + shift)
    numbers: jax.Array  # those of `Margins` in one array: each array costs time at a call


EVIDENCE_SPECS = Evidence(P(STATES), P())  # type: ignore[arg-type]
"""How an evidence is spread over devices."""


class Margins(NamedTuple):
    """What the bounds follow from: how far the next sweep moves `q + shift`, and the gap there."""

    shift: float
    low: float  # at most the minimum of the next change, T(q + shift) - (q + shift), and 0
    high: float  # at least the maximum of it, and 0
    gap: float  # the largest difference of a state's best action value and its value
    size: float  # at least that of any number that took part

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Read the numbers off the device."""
        return cls(*np.asarray(evidence.numbers).tolist())

    @property
    def residual(self) -> float:
        """A bound on the size of the next change."""
        return max(self.high, -self.low)


def of_action_values(model: Model, softmax: Softmax, q: jax.Array) -> Evidence:
    """The evidence at `q`, by a sweep from there."""
    v = values(model, softmax, q)
    change = action_values(model, v) - q
    low, high = smallest(change), largest(change)
    size = 2 * largest(abs(q)) + namespace(q).maximum(high, -low)
    return _evidence(model, softmax, q, v, 0.0, low, high, size)


def of_sweep(
    model: Model,
    softmax: Softmax,
    x: jax.Array,
    q: jax.Array,
    change: jax.Array,
    shift: ArrayLike,
) -> Evidence:
    """The evidence at `q + shift`, by the sweep from `x` that has given `q` and `f(q) - x`.

    A further sweep would change `q + shift` by `discount P (f(q + shift) - x) - shift`. Where `f`
    moves with a shift, that is known without another look at `q`.
    """
    shifted = q + shift
    if softmax.non_expansion:
        change = change + shift
        v = x + change
    else:
        v = values(model, softmax, shifted)
        change = v - x
    low, high = (model.discount * edge(change) - shift for edge in (smallest, largest))
    size = largest(abs(shifted)) + largest(abs(x)) + namespace(q).abs(shift)
    return _evidence(model, softmax, shifted, v, shift, low, high, size)


def _evidence(
    model: Model,
    softmax: Softmax,
    q: jax.Array,
    v: jax.Array,
    shift: ArrayLike,
    low: jax.Array,
    high: jax.Array,
    size: jax.Array,
) -> Evidence:
    xp = namespace(q)
    gap: Any = 0.0
    if not isinstance(softmax, Max):
        gap = largest(best_values(model, q) - v)
    numbers = (shift, xp.minimum(low, 0.0), xp.maximum(high, 0.0), gap, size)
    return Evidence(v, stacked(numbers, q))


def error_bound(margins: Margins, horizon: float, branches: int) -> float:
    """Bound (1), with what rounding adds."""
    return horizon * (margins.residual + _rounding(margins, branches))


def loss_bound(
    margins: Margins,
    horizon: float,
    kappa: float,
    mdp: MDP,
    softmax: Softmax,
    q: Floats,
    value: Floats,
) -> float:
    """Bound (2), with what rounding adds, cut by (3)."""
    up, down, gap = margins.high, -margins.low, max(margins.gap, 0.0)
    rounding = _rounding(margins, mdp.n_branches)
    bound = gap + horizon * (up + down + kappa * gap + 2 * rounding)
    if not math.isfinite(margins.size):
        return bound  # values that are no numbers have no policy
    live = value[~mdp.terminal]
    if not softmax.attained:
        paid = softmax.bonus(q, where=mdp.allowed)[~mdp.terminal]
        bound += horizon * (np.max(paid, initial=0.0) + _rounding(margins, mdp.n_actions))
    elif live.size and bound <= np.ptp(live) - error_bound(margins, horizon, mdp.n_branches):
        return bound  # (3) allows more, since one state earns so much more than another
    low, high = earnings(mdp, horizon)
    if mdp.allowed is not None or mdp.terminal.any():
        q = np.where(mdp.available, q, low)
    return min(bound, high - float(min(low, q.min(), value.min())))


def earnings(mdp: MDP, horizon: float) -> tuple[float, float]:
    """The least and the most that any policy can earn from a state that is not terminal, by (3).

    Args:
        mdp: the MDP.
        horizon: a bound on the expected discounted number of steps.

    Examples:
        An episode of FrozenLake earns 1 at most:

        >>> from mellowmax.mdp import MDP
        >>> low, high = earnings(MDP.from_gymnasium("FrozenLake-v1", 0.99), 100.0)
        >>> print(round(high, 4))
        0.9804
    """
    edge = _edges(mdp)
    low = max(edge.low, horizon * min(edge.least, 0.0))
    high = min(edge.high, horizon * max(edge.most, 0.0))
    return low - edge.allowance * horizon, high + edge.allowance * horizon


class _Edges(NamedTuple):
    """What (3) needs of an MDP, over the actions that can be taken."""

    low: float = 0.0  # the minimum of r / (1 - c), whichever way it is rounded
    high: float = 0.0  # and the maximum
    least: float = 0.0  # the minimum of r
    most: float = 0.0  # and the maximum
    allowance: float = 0.0  # for what is rounded in a step


@once
def _edges(mdp: MDP) -> _Edges:
    taken = mdp.available
    if not taken.any():
        return _Edges()
    rewards, on = mdp.expected_rewards[taken], mdp.discount * mdp.goes_on[taken]
    slack = (mdp.n_branches + 1) * float(np.finfo(np.float64).eps)
    edges = []
    for rounding in (-slack, slack):
        stops = np.maximum(1 - on * (1 + rounding), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            each = np.where(rewards == 0, 0.0, rewards / stops)
        edges += [float(each.min()), float(each.max())]
    least, most = float(rewards.min()), float(rewards.max())
    tiny = float(np.finfo(np.float64).tiny)  # what is computed here underflows gradually
    return _Edges(min(edges), max(edges), least, most, slack * max(most, -least) + tiny)


def _rounding(margins: Margins, branches: int) -> float:
    """How far rounding and underflow can move the next change."""
    numbers = np.finfo(np.float64)
    roundings = branches + ROUNDINGS_OF_AN_OPERATOR
    return roundings * (2 * float(numbers.eps) * margins.size + 4 * float(numbers.tiny))
