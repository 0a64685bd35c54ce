"""The policies, and their logarithms, as functions of rows: one probability for each action.

Some are also gradients of operators: the greedy policy of the maximum, the uniform one of the mean,
Boltzmann's of mellowmax and of log-sum-exp, and those of epsilon-greedy and of sparsemax of their
own operators.

Mellowmax's policy is Boltzmann's too, at an inverse temperature of each row's own (`temperature`).
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.array_api import (
    State,
    add_up,
    constant,
    in_fixed_steps,
    is_zero_or_least,
    iterate,
)
from ..quick import formulas as quick
from ..row_function import Formula, RowFunction
from .gaps import (
    Gaps,
    boltzmann_weights,
    count,
    exponents,
    gaps,
    gaps_to_best,
    log_prior,
    normalised,
    without_weight,
)
from .relative_temperature import policy_exponents, policy_weights
from .temperature import relative_temperature

__all__ = [
    "boltzmann",
    "epsilon_greedy",
    "greedy",
    "inverse_gaps",
    "log_boltzmann",
    "log_epsilon_greedy",
    "log_greedy",
    "log_mellowmax",
    "log_resmax",
    "log_sparsemax",
    "log_uniform",
    "mellowmax",
    "resmax",
    "rest_to_the_best",
    "sparse_shares",
    "sparsemax",
    "uniform",
]

# Formulas. As derivatives of operators they are given the operator's value too, which they ignore.


def _greedy(
    xp: Namespace, q: Array, zero: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The best action; ties share equally."""
    g = gaps_to_best(xp, q, zero, mask)
    gap = g.gap if g.weightless is None else xp.where(g.weightless, xp.inf, g.gap)
    best = xp.astype(is_zero_or_least(xp, gap), q.dtype)
    return normalised(xp, g, best)


def _uniform(
    xp: Namespace, q: Array, zero: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """Every action that counts alike."""
    g = gaps_to_best(xp, q, zero, mask)
    share = (xp.ones_like(q) + 0 * g.gap) / count(xp, g)  # NaN stays NaN
    return share if mask is None else xp.where(mask, share, 0.0)


def _epsilon_greedy(
    xp: Namespace, q: Array, epsilon: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """Uniform with probability epsilon, else greedy."""
    even = _uniform(xp, q, epsilon, mask)
    return epsilon * even + (1 - epsilon) * _greedy(xp, q, epsilon, mask)


def _boltzmann(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """Proportional to exp(beta * q)."""
    return boltzmann_weights(xp, gaps(xp, q, beta, mask))


def _log_boltzmann(xp: Namespace, q: Array, beta: Array, mask: Array | None) -> Array:
    """The logarithm of `_boltzmann`, finite for every action that has weight at all."""
    g = gaps(xp, q, beta, mask)
    return _log_normalised(xp, g, exponents(xp, g))


def _mellowmax(
    xp: Namespace, q: Array, omega: Array, mask: Array | None, temperature: Array
) -> Array:
    """Proportional to exp(b * q), with the inverse temperature that earns mellowmax."""
    return policy_weights(xp, gaps(xp, q, omega, mask), temperature)


def _log_mellowmax(
    xp: Namespace, q: Array, omega: Array, mask: Array | None, temperature: Array
) -> Array:
    """The logarithm of `_mellowmax`, finite for every action that has weight at all."""
    g = gaps(xp, q, omega, mask)
    return _log_normalised(xp, g, policy_exponents(xp, g, temperature))


def _sparsemax(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """What is left of a threshold after the gaps, and 0 where nothing is."""
    return sparse_shares(xp, gaps(xp, q, beta, mask))


def sparse_shares(xp: Namespace, g: Gaps) -> Array:
    """`max(threshold - beta * gap, 0)`, with the threshold at which they sum to 1.

    The sum is convex in the threshold and piecewise linear, so Newton's method from above falls to
    the root and reaches it after finitely many steps. That is faster than to sort, but where a loop
    cannot look at the numbers, sorting it is.
    """
    width = xp.minimum(g.strength * g.gap, xp.ones_like(g.gap))  # wider gaps leave nothing
    if g.infinite is not None:
        width = xp.where(g.infinite & (g.gap > 0), 1.0, width)
    if g.weightless is not None:
        width = xp.where(g.weightless, 1.0, width)
    held = constant(xp, width)

    def newton(state: State) -> tuple[State, Array]:
        (threshold,) = state
        following = _threshold(xp, held, held < threshold)
        return (following,), ~(following < threshold)

    if in_fixed_steps(xp, held):
        threshold = _least_threshold(xp, held)
    else:
        n = width.shape[0]
        start = xp.ones_like(held[:1, ...]) + 0 * held[:1, ...]  # NaN stays NaN
        (threshold,) = iterate(xp, newton, (start,), n if isinstance(n, int) else 64)
    support = held < threshold
    share = xp.where(support, _threshold(xp, width, support) - width, 0 * width)
    share = xp.where(share > 0, share, 0 * share)
    return share / add_up(xp, share)


def _threshold(xp: Namespace, width: Array, support: Array) -> Array:
    """The threshold at which the shares of these actions sum to 1."""
    total = add_up(xp, xp.where(support, width, 0 * width))
    return (1 + total) / add_up(xp, xp.astype(support, width.dtype))


def _least_threshold(xp: Namespace, width: Array) -> Array:
    """The least of the thresholds at which the shares of the best one, two, ... sum to 1.

    No set of actions has a lesser one: with it their shares would sum to less than 1.
    """
    total = xp.cumulative_sum(xp.sort(width, axis=0), axis=0)
    size = xp.cumulative_sum(xp.ones_like(width), axis=0)
    return xp.min((1 + total) / size, axis=0, keepdims=True)


def _resmax(xp: Namespace, q: Array, eta: Array, mask: Array | None) -> Array:
    """`1 / (n + eta * gap)`, and the rest for the best action; ties share equally."""
    g = gaps(xp, q, eta, mask)
    return rest_to_the_best(xp, g, inverse_gaps(xp, g))


def _log_resmax(xp: Namespace, q: Array, eta: Array, mask: Array | None) -> Array:
    """The logarithm of `_resmax`, finite for every action that has weight at all."""
    g = gaps(xp, q, eta, mask)
    policy = rest_to_the_best(xp, g, inverse_gaps(xp, g))
    n = count(xp, g)
    width = g.strength / n * g.gap
    overflows = width > xp.finfo(width.dtype).max
    beyond = xp.log(g.strength / n) + xp.log(xp.where(overflows, g.gap, 1.0))
    beyond = xp.where(overflows, beyond, xp.log1p(xp.where(overflows, 0.0, width)))
    none = (policy == 0) & ~((g.strength > 0) & (g.gap > 0))
    if g.weightless is not None:
        none = none | (g.weightless & (policy == 0))
    if g.infinite is not None:
        none = none | (g.infinite & (g.gap > 0))
    best = g.gap == 0
    log_best = xp.log(xp.where(best & (policy > 0), policy, 1.0))
    return xp.where(none, -xp.inf, xp.where(best, log_best, -beyond - xp.log(n + 0 * g.top)))


def inverse_gaps(xp: Namespace, g: Gaps) -> Array:
    """`1 / (n + eta * gap)` for each action that counts."""
    n = count(xp, g)
    share = 1 / (1 + g.strength / n * g.gap) / n
    if g.infinite is not None:
        share = xp.where(g.infinite & (g.gap > 0), 0.0, share)
    if g.weightless is None:
        return share
    share = xp.where(g.weightless & (g.strength > 0), 0.0, share)
    return share if g.mask is None else xp.where(g.mask, share, 0.0)


def rest_to_the_best(xp: Namespace, g: Gaps, share: Array) -> Array:
    """Shares of all actions but the best, which has the rest; ties share equally."""
    best = g.gap == 0
    best = best if g.weightless is None else best & ~g.weightless
    others = xp.where(best, 0.0, share)
    rest = (1 - add_up(xp, others)) / add_up(xp, xp.astype(best, share.dtype))
    return xp.where(best, rest, others)


def _log_normalised(xp: Namespace, g: Gaps, log_weight: Array) -> Array:
    """The logarithm of the weights, times the prior, scaled to sum to 1."""
    if g.prior is not None:
        cut = log_weight == xp.finfo(log_weight.dtype).min
        log_weight = xp.where(cut, log_weight, log_weight + log_prior(xp, g))
        if g.weightless is not None:
            log_weight = xp.where(g.weightless, -xp.inf, log_weight)
        largest = xp.max(log_weight, axis=0, keepdims=True)
        largest = xp.where(largest > -xp.inf, largest, 0.0)
        log_weight = xp.where(cut, log_weight, log_weight - largest)
    weight = xp.exp(xp.where(without_weight(xp, log_weight), -xp.inf, log_weight))
    if g.weightless is not None:
        weight = xp.where(g.weightless, 0.0, weight)
        log_weight = xp.where(g.weightless, -xp.inf, log_weight)
    lowest = xp.finfo(log_weight.dtype).min
    result = log_weight - xp.log(add_up(xp, weight))
    return xp.where(log_weight == lowest, lowest, result)  # it was cut, and does not move


def _logarithm(distribution: Formula) -> Formula:
    """The logarithm of a distribution that has no better form, with a derivative where it is 0."""

    def formula(xp: Namespace, q: Array, parameter: Array, mask: Array | None) -> Array:
        policy = distribution(xp, q, parameter, mask)
        none = policy == 0
        return xp.where(none, -xp.inf, xp.log(xp.where(none, 1.0, policy)))

    return formula


greedy = RowFunction(_greedy)
uniform = RowFunction(_uniform)
epsilon_greedy = RowFunction(_epsilon_greedy)
boltzmann = RowFunction(_boltzmann, quick=quick.boltzmann_policy)
mellowmax = RowFunction(
    _mellowmax, given=relative_temperature, has_extremes=True, quick=quick.policy
)
sparsemax = RowFunction(_sparsemax)
resmax = RowFunction(_resmax, is_brief=True)
log_greedy = RowFunction(_logarithm(_greedy))
log_uniform = RowFunction(_logarithm(_uniform))
log_epsilon_greedy = RowFunction(_logarithm(_epsilon_greedy))
log_boltzmann = RowFunction(_log_boltzmann, quick=quick.boltzmann_log_policy)
log_mellowmax = RowFunction(
    _log_mellowmax, given=relative_temperature, has_extremes=True, quick=quick.log_policy
)
log_sparsemax = RowFunction(_logarithm(_sparsemax))
log_resmax = RowFunction(_log_resmax)
