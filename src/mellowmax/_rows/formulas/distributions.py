"""The policies, and their logarithms, as functions of rows: one probability for each action.

Some are also gradients of operators: the greedy policy that of the maximum, the uniform one that of
the mean, the epsilon-greedy one that of its own operator, and Boltzmann's that of mellowmax.

Mellowmax's policy is Boltzmann's too, at an inverse temperature of each row's own (`temperature`).
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up
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
from .temperature import policy_exponents, policy_weights, relative_temperature

__all__ = [
    "boltzmann",
    "epsilon_greedy",
    "greedy",
    "log_boltzmann",
    "log_epsilon_greedy",
    "log_greedy",
    "log_mellowmax",
    "log_uniform",
    "mellowmax",
    "uniform",
]

# Formulas. As derivatives of operators they are given the operator's value too, which they ignore.


def _greedy(
    xp: Namespace, q: Array, zero: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The best action; ties share equally."""
    g = gaps_to_best(xp, q, zero, mask)
    best = xp.astype(g.gap == 0, q.dtype)
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
log_greedy = RowFunction(_logarithm(_greedy))
log_uniform = RowFunction(_logarithm(_uniform))
log_epsilon_greedy = RowFunction(_logarithm(_epsilon_greedy))
log_boltzmann = RowFunction(_log_boltzmann, quick=quick.boltzmann_log_policy)
log_mellowmax = RowFunction(
    _log_mellowmax, given=relative_temperature, has_extremes=True, quick=quick.log_policy
)
