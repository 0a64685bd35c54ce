"""The distributions over actions, as kernels on rows: `[actions, rows]` in, `[actions, rows]` out.

They are the policies of layer 1 and, three of them, the gradients of the operators of layer 0:
`max` has the greedy one, `mean` the uniform one, mellowmax Boltzmann's.
"""

from __future__ import annotations

from typing import Any

from .gaps import Gaps, count, gaps, upright

__all__ = [
    "boltzmann",
    "boltzmann_weights",
    "epsilon_greedy",
    "greedy",
    "log_boltzmann",
    "logarithm",
    "uniform",
]


def greedy(xp: Any, q: Any, zero: Any, mask: Any, _: Any = None) -> Any:
    """The best action; ties share equally."""
    g = upright(xp, q, zero, mask)
    best = xp.astype(g.gap == 0, q.dtype)
    return _normalised(xp, g, best)


def uniform(xp: Any, q: Any, zero: Any, mask: Any, _: Any = None) -> Any:
    """Every action that counts alike."""
    g = upright(xp, q, zero, mask)
    share = (xp.ones_like(q) + 0 * g.gap) / count(xp, g)  # NaN stays NaN
    return share if mask is None else xp.where(mask, share, 0.0)


def epsilon_greedy(xp: Any, q: Any, epsilon: Any, mask: Any, _: Any = None) -> Any:
    """Uniform with probability epsilon, else greedy."""
    spread = uniform(xp, q, epsilon, mask)
    return epsilon * spread + (1 - epsilon) * greedy(xp, q, epsilon, mask)


def boltzmann(xp: Any, q: Any, beta: Any, mask: Any, _: Any = None) -> Any:
    """Proportional to exp(beta * q)."""
    return boltzmann_weights(xp, gaps(xp, q, beta, mask))


def boltzmann_weights(xp: Any, g: Gaps) -> Any:
    """The same for gaps already at hand."""
    return _normalised(xp, g, xp.exp(_exponents(xp, g)))


def log_boltzmann(xp: Any, q: Any, beta: Any, mask: Any, _: Any = None) -> Any:
    """The logarithm of `boltzmann`, finite for every action that has weight at all."""
    g = gaps(xp, q, beta, mask)
    exponents = _exponents(xp, g)
    weight = xp.exp(exponents)
    if g.lost is not None:
        weight = xp.where(g.lost, 0.0, weight)
        exponents = xp.where(g.lost, -xp.inf, exponents)
    return exponents - xp.log(xp.sum(weight, axis=0, keepdims=True))


def logarithm(distribution: Any) -> Any:
    """The logarithm of a distribution that has no better form, with a derivative where it is 0."""

    def kernel(xp: Any, q: Any, parameter: Any, mask: Any) -> Any:
        policy = distribution(xp, q, parameter, mask)
        none = policy == 0
        return xp.where(none, -xp.inf, xp.log(xp.where(none, 1.0, policy)))

    return kernel


def _exponents(xp: Any, g: Gaps) -> Any:
    """`-|beta| * (top - q)`: finite, but for what is not the best where beta is infinite."""
    lowest = xp.finfo(g.gap.dtype).min
    exponents = xp.maximum(0.0 - g.strength * g.gap, lowest)
    if g.infinite is not None:
        exponents = xp.where(g.infinite & (g.gap > 0), -xp.inf, exponents)
    return exponents


def _normalised(xp: Any, g: Gaps, weight: Any) -> Any:
    """Weights scaled to sum to 1, with 0 for an action that has none."""
    if g.lost is None:
        return weight / xp.sum(weight, axis=0, keepdims=True)
    weight = xp.where(g.lost, 0.0, weight)
    share = weight / xp.sum(weight, axis=0, keepdims=True)
    return share if g.mask is None else xp.where(g.mask, share, 0.0)
