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
    count,
    gaps,
    gaps_to_best,
    mean_gap,
    mellow_gap,
    value_at,
)
from .unit_row import omega_slope, unit_row

__all__ = [
    "boltzmann",
    "boltzmann_d_beta",
    "boltzmann_grad_q",
    "epsilon_greedy",
    "epsilon_greedy_d_epsilon",
    "log_sum_exp",
    "log_sum_exp_d_beta",
    "maximum",
    "mean",
    "mellowmax",
    "mellowmax_d_omega",
    "mellowmax_grad_prior",
    "resmax",
    "resmax_d_eta",
    "resmax_grad_q",
    "sparsemax",
    "sparsemax_d_beta",
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


def _log_sum_exp(xp: Namespace, q: Array, beta: Array, mask: Array | None) -> Array:
    """Mellowmax of a sum in place of a mean."""
    g = gaps(xp, q, beta, mask)
    log_count = _log_count(xp, g)
    over = xp.where(log_count > 0, log_count / g.strength, 0.0)
    return value_at(g, mellow_gap(xp, g) - over)


def _sparsemax(xp: Namespace, q: Array, beta: Array, mask: Array | None) -> Array:
    """The best average value, with a bonus for a policy that spreads."""
    g = gaps(xp, q, beta, mask)
    policy = distributions.sparse_shares(xp, g)
    return value_at(g, add_up(xp, policy * g.gap) - _sparse_bonus(xp, g, policy))


def _resmax(xp: Namespace, q: Array, eta: Array, mask: Array | None) -> Array:
    g = gaps(xp, q, eta, mask)
    return value_at(g, add_up(xp, _resmax_lost(xp, g)))


def _log_count(xp: Namespace, g: Gaps) -> Array:
    """The logarithm of the number of actions that count, for each row."""
    return xp.log(count(xp, g) + 0 * g.top)  # NaN stays NaN


def _sparse_bonus(xp: Namespace, g: Gaps, policy: Array) -> Array:
    """`(1 - sum(policy^2)) / 2` over the strength, in units of the gaps."""
    spread = add_up(xp, policy * (1 - policy)) / 2
    return xp.where(spread == 0, 0.0, spread / g.strength)


def _resmax_lost(xp: Namespace, g: Gaps) -> Array:
    """What each action takes from the maximum, its probability times its gap."""
    n = count(xp, g)
    weighed = g.strength * g.gap
    if g.ordinary:
        return g.gap / (n + weighed)
    overflows = weighed > xp.finfo(weighed.dtype).max / 4
    lost = g.gap / (n + xp.where(overflows, 0.0, weighed))
    lost = xp.where(overflows, 1 / g.strength, lost)
    if g.infinite is not None:
        lost = xp.where(g.infinite, 0.0, lost)
    if g.weightless is None:
        return lost
    far = 1 / g.strength if g.mask is None else xp.where(g.mask, 1 / g.strength, 0.0)
    return xp.where(g.weightless, far, lost)


# Formulas of their derivatives. They are given the operator's value too, which they ignore.


def _epsilon_greedy_d_epsilon(
    xp: Namespace, q: Array, epsilon: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The mean minus the maximum."""
    g = gaps_to_best(xp, q, epsilon, mask)
    return -g.scale * mean_gap(xp, g)


def _boltzmann_grad_q(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """The policy times `1 + beta (q - boltz)`, which is negative far below."""
    g = gaps(xp, q, beta, mask)
    policy = boltzmann_weights(xp, g)
    return policy * (1 - g.strength * _deviation(xp, g, policy))


def _boltzmann_d_beta(
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


def _mellowmax_d_omega(
    xp: Namespace, q: Array, omega: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """(boltz - mm) / omega, which at 0 is half the variance."""
    g = gaps(xp, q, omega, mask)
    row = unit_row(xp, g)
    slope = omega_slope(xp, g, row, boltzmann_weights(xp, g))
    return slope * row.length * g.scale * row.length * g.scale


def _mellowmax_grad_prior(
    xp: Namespace, q: Array, omega: Array, prior: Array | None, _: Array | None = None
) -> Array:
    """`(exp(omega (q - mm)) - 1) / omega`, which at 0 is `q - mm`; 0 for a weight of 0."""
    g = gaps(xp, q, omega, prior)
    above = mellow_gap(xp, g) - g.gap
    flat = g.strength * g.range < xp.finfo(q.dtype).eps
    strength = xp.where(flat, 1.0, g.strength)
    d_weight = xp.where(flat, above, xp.expm1(strength * above) / strength)
    if g.weightless is not None:  # an infinitely low action still counts
        d_weight = xp.where(g.weightless & ~flat, -1 / strength, d_weight)
        d_weight = d_weight if g.mask is None else xp.where(g.mask, d_weight, 0.0)
    d_weight = d_weight if g.infinite is None else xp.where(g.infinite, 0.0, d_weight)
    return g.sign * g.scale * d_weight / count(xp, g)


def _log_sum_exp_d_beta(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """Minus the entropy of the policy, over the square of beta."""
    g = gaps(xp, q, beta, mask)
    policy = boltzmann_weights(xp, g)
    none = policy == 0
    entropy = -add_up(xp, xp.where(none, 0.0, policy * xp.log(xp.where(none, 1.0, policy))))
    slope = -entropy / g.strength * g.scale / g.strength * g.scale
    return xp.where(entropy == 0, 0.0, slope)


def _sparsemax_d_beta(
    xp: Namespace, q: Array, beta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """Minus the bonus over beta: how the policy moves does not matter, for it is the best one."""
    g = gaps(xp, q, beta, mask)
    bonus = _sparse_bonus(xp, g, distributions.sparse_shares(xp, g))
    return xp.where(bonus == 0, 0.0, -g.scale * bonus / g.strength * g.scale)


def _resmax_grad_q(
    xp: Namespace, q: Array, eta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """`n / (n + eta gap)^2`, and the rest for the best action; ties share equally."""
    g = gaps(xp, q, eta, mask)
    share = distributions.inverse_gaps(xp, g)
    return distributions.rest_to_the_best(xp, g, share * (count(xp, g) * share))


def _resmax_d_eta(
    xp: Namespace, q: Array, eta: Array, mask: Array | None, _: Array | None = None
) -> Array:
    """`sum((gap / (n + eta gap))^2)`."""
    g = gaps(xp, q, eta, mask)
    lost = g.scale * _resmax_lost(xp, g)
    return add_up(xp, lost * lost)


epsilon_greedy_d_epsilon = RowFunction(_epsilon_greedy_d_epsilon)
boltzmann_grad_q = RowFunction(_boltzmann_grad_q)
boltzmann_d_beta = RowFunction(_boltzmann_d_beta)
log_sum_exp_d_beta = RowFunction(_log_sum_exp_d_beta)
mellowmax_d_omega = RowFunction(_mellowmax_d_omega)
mellowmax_grad_prior = RowFunction(_mellowmax_grad_prior)
resmax_d_eta = RowFunction(_resmax_d_eta)
resmax_grad_q = RowFunction(_resmax_grad_q)
sparsemax_d_beta = RowFunction(_sparsemax_d_beta)

maximum = RowFunction(_maximum, [distributions.greedy])
mean = RowFunction(_mean, [distributions.uniform])
epsilon_greedy = RowFunction(
    _epsilon_greedy, [distributions.epsilon_greedy, epsilon_greedy_d_epsilon]
)
boltzmann = RowFunction(_boltzmann, [boltzmann_grad_q, boltzmann_d_beta])
mellowmax = RowFunction(
    _mellowmax,
    [distributions.boltzmann, mellowmax_d_omega, mellowmax_grad_prior],
    on_accelerator=one_pass.mellowmax,
    quick=quick.mellowmax,
)
log_sum_exp = RowFunction(_log_sum_exp, [distributions.boltzmann, log_sum_exp_d_beta])
resmax = RowFunction(_resmax, [resmax_grad_q, resmax_d_eta], is_brief=True)
sparsemax = RowFunction(_sparsemax, [distributions.sparsemax, sparsemax_d_beta])
