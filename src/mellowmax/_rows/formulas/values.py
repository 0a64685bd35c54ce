"""The operators as functions of rows, one value for each, and their closed-form derivatives.

Each is the best value minus an average gap to it (see `gaps`). Its gradient with respect to the
action values is a distribution of `distributions`, but for Boltzmann's, which has a form of its
own: its weights sum to 1, and can be negative.
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.array_api import add_up
from ..quick import formulas as quick
from ..quick import one_pass
from ..row_function import RowFunction
from . import distributions
from .gaps import (
    Gaps,
    boltzmann_weights,
    gaps,
    gaps_to_best,
    mean_gap,
    mellow_gap,
    omega_slope,
    unit_row,
    value_at,
)

__all__ = [
    "boltzmann",
    "boltzmann_by_beta",
    "boltzmann_by_q",
    "epsilon_greedy",
    "epsilon_greedy_by_epsilon",
    "maximum",
    "mean",
    "mellowmax",
    "mellowmax_by_omega",
]

# Formulas.


def _maximum(xp: Namespace, q: Array, _: Array, mask: Array | None) -> Array:
    counted = q if mask is None else xp.where(mask, q, -xp.inf)
    return xp.max(counted, axis=0, keepdims=True)


def _mean(xp: Namespace, q: Array, zero: Array, mask: Array | None) -> Array:
    g = gaps_to_best(xp, q, zero, mask)
    return value_at(g, mean_gap(xp, g))


def _epsilon_greedy(xp: Namespace, q: Array, epsilon: Array, mask: Array | None) -> Array:
    g = gaps_to_best(xp, q, epsilon, mask)
    return value_at(g, xp.where(epsilon == 0, 0.0, epsilon * mean_gap(xp, g)))


def _boltzmann(xp: Namespace, q: Array, beta: Array, mask: Array | None) -> Array:
    g = gaps(xp, q, beta, mask)
    policy = boltzmann_weights(xp, g)
    return value_at(g, add_up(xp, policy * g.gap))


def _mellowmax(xp: Namespace, q: Array, omega: Array, mask: Array | None) -> Array:
    g = gaps(xp, q, omega, mask)
    return value_at(g, mellow_gap(xp, g))


# Formulas of their derivatives. They are given the operator's value too, which they ignore.


def _epsilon_greedy_by_epsilon(
    xp: Namespace, q: Array, epsilon: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The mean minus the maximum."""
    g = gaps_to_best(xp, q, epsilon, mask)
    return -g.scale * mean_gap(xp, g)


def _boltzmann_by_q(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The policy times `1 + beta (q - boltz)`, which is negative far below."""
    g = gaps(xp, q, beta, mask)
    policy = boltzmann_weights(xp, g)
    return policy * (1 - g.strength * _deviation(xp, g, policy))


def _boltzmann_by_beta(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The variance of q under the policy."""
    g = gaps(xp, q, beta, mask)
    policy = boltzmann_weights(xp, g)
    deviation = g.scale * _deviation(xp, g, policy)
    return add_up(xp, (policy * deviation) * deviation)


def _deviation(xp: Namespace, g: Gaps, policy: Array) -> Array:
    """How far each gap is from the average under the policy; 0 without weight, however far."""
    deviation = g.gap - add_up(xp, policy * g.gap)
    return xp.where(policy > 0, deviation, 0.0)


def _mellowmax_by_omega(
    xp: Namespace, q: Array, omega: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """(boltz - mm) / omega, which at 0 is half the variance."""
    g = gaps(xp, q, omega, mask)
    row = unit_row(xp, g)
    slope = omega_slope(xp, g, row, boltzmann_weights(xp, g))
    return slope * row.length * g.scale * row.length * g.scale


epsilon_greedy_by_epsilon = RowFunction(_epsilon_greedy_by_epsilon)
boltzmann_by_q = RowFunction(_boltzmann_by_q)
boltzmann_by_beta = RowFunction(_boltzmann_by_beta)
mellowmax_by_omega = RowFunction(_mellowmax_by_omega)

maximum = RowFunction(_maximum, [distributions.greedy])
mean = RowFunction(_mean, [distributions.uniform])
epsilon_greedy = RowFunction(
    _epsilon_greedy, [distributions.epsilon_greedy, epsilon_greedy_by_epsilon]
)
boltzmann = RowFunction(_boltzmann, [boltzmann_by_q, boltzmann_by_beta])
mellowmax = RowFunction(
    _mellowmax,
    [distributions.boltzmann, mellowmax_by_omega],
    on_accelerator=one_pass.mellowmax,
    quick=quick.mellowmax,
)
