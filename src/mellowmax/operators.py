"""Layer 0: the five operators, action values in, one value out, with closed-form gradients.

A softmax operator turns the action values `q` of a state into one value. Section 1 of Asadi and
Littman (2017) asks four things of it: settings that approximate the maximum, non-expansion,
differentiability, and a policy that starves no action. `mellowmax` (section 5) has all four.

Each function takes an array of NumPy, PyTorch, JAX, CuPy or any other Array API library and gives
back the same kind, on the same device and in the same dtype. Automatic differentiation uses the
closed forms below, and differentiates them again for the higher orders.
"""

from __future__ import annotations

from typing import Any

from ._rows import distributions as _distributions
from ._rows import one_pass as _one_pass
from ._rows.arguments import check_parameter, map_rows, reduce_rows
from ._rows.dispatch import Rowwise
from ._rows.gaps import Gaps, at_average, gaps, mean_gap, mellow_gap, omega_slope, spread, upright

__all__ = [
    "boltzmann",
    "boltzmann_gradient",
    "boltzmann_parameter_gradient",
    "epsilon_greedy",
    "epsilon_greedy_gradient",
    "epsilon_greedy_parameter_gradient",
    "maximum",
    "maximum_gradient",
    "mean",
    "mean_gradient",
    "mellowmax",
    "mellowmax_gradient",
    "mellowmax_parameter_gradient",
]

# Kernels on rows: q is [actions, rows], a parameter [1, rows] or [1, 1], the result [1, rows].


def _maximum(xp: Any, q: Any, _: Any, mask: Any) -> Any:
    counted = q if mask is None else xp.where(mask, q, -xp.inf)
    return xp.max(counted, axis=0, keepdims=True)


def _mean(xp: Any, q: Any, zero: Any, mask: Any) -> Any:
    g = upright(xp, q, zero, mask)
    return at_average(g, mean_gap(xp, g))


def _epsilon_greedy(xp: Any, q: Any, epsilon: Any, mask: Any) -> Any:
    g = upright(xp, q, epsilon, mask)
    return at_average(g, xp.where(epsilon == 0, 0.0, epsilon * mean_gap(xp, g)))


def _boltzmann(xp: Any, q: Any, beta: Any, mask: Any) -> Any:
    g = gaps(xp, q, beta, mask)
    policy = _distributions.boltzmann_weights(xp, g)
    return at_average(g, xp.sum(policy * g.gap, axis=0, keepdims=True))


def _mellowmax(xp: Any, q: Any, omega: Any, mask: Any) -> Any:
    g = gaps(xp, q, omega, mask)
    return at_average(g, mellow_gap(xp, g))


# Their derivatives, (xp, q, parameter, mask, result), as kernels: [actions, rows] or [1, rows].


def _boltzmann_by_q(xp: Any, q: Any, beta: Any, mask: Any, _: Any = None) -> Any:
    """The policy times `1 + beta (q - boltz)`, which is negative far below."""
    g = gaps(xp, q, beta, mask)
    policy = _distributions.boltzmann_weights(xp, g)
    return policy * (1 - g.strength * _deviation(xp, g, policy))


def _boltzmann_by_beta(xp: Any, q: Any, beta: Any, mask: Any, _: Any = None) -> Any:
    """The variance of q under the policy."""
    g = gaps(xp, q, beta, mask)
    policy = _distributions.boltzmann_weights(xp, g)
    deviation = 2 * _deviation(xp, g, policy)
    return xp.sum(policy * deviation * deviation, axis=0, keepdims=True)


def _deviation(xp: Any, g: Gaps, policy: Any) -> Any:
    """How far each gap is from the average under the policy; 0 without weight, however far."""
    deviation = g.gap - xp.sum(policy * g.gap, axis=0, keepdims=True)
    return xp.where(policy > 0, deviation, 0.0)


def _epsilon_greedy_by_epsilon(xp: Any, q: Any, epsilon: Any, mask: Any, _: Any = None) -> Any:
    """The mean less the maximum."""
    return -2 * mean_gap(xp, upright(xp, q, epsilon, mask))


def _mellowmax_by_omega(xp: Any, q: Any, omega: Any, mask: Any, _: Any = None) -> Any:
    """(boltz - mm) / omega, which at 0 is half the variance."""
    g = gaps(xp, q, omega, mask)
    row = spread(xp, g)
    slope = omega_slope(xp, g, row, _distributions.boltzmann_weights(xp, g))
    return 4 * row.scale * (row.scale * slope)


greedy_rows = Rowwise(_distributions.greedy)
uniform_rows = Rowwise(_distributions.uniform)
epsilon_greedy_policy_rows = Rowwise(_distributions.epsilon_greedy)
boltzmann_policy_rows = Rowwise(_distributions.boltzmann)
maximum_rows = Rowwise(_maximum, greedy_rows)
mean_rows = Rowwise(_mean, uniform_rows)
epsilon_greedy_rows = Rowwise(
    _epsilon_greedy, epsilon_greedy_policy_rows, Rowwise(_epsilon_greedy_by_epsilon)
)
boltzmann_rows = Rowwise(_boltzmann, Rowwise(_boltzmann_by_q), Rowwise(_boltzmann_by_beta))
mellowmax_rows = Rowwise(
    _mellowmax,
    boltzmann_policy_rows,
    Rowwise(_mellowmax_by_omega),
    on_accelerator=_one_pass.mellowmax,
)


def maximum(q: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False) -> Any:
    """The largest action value, `max(q)`.

    A non-expansion, but without a derivative at ties, and its policy starves every other action
    (section 1). At ties its gradient is shared equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Examples:
        >>> print(maximum([0.0, 0.5, 1.0]))
        1.0
    """
    return reduce_rows(maximum_rows, q, axis=axis, where=where, keepdims=keepdims)


def mean(q: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False) -> Any:
    """The average action value.

    A differentiable non-expansion that no setting brings near the maximum (section 1).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Examples:
        >>> print(mean([0.0, 0.5, 1.0], where=[True, True, False]))
        0.25
    """
    return reduce_rows(mean_rows, q, axis=axis, where=where, keepdims=keepdims)


def epsilon_greedy(
    q: Any, epsilon: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """`epsilon * mean(q) + (1 - epsilon) * max(q)`: what an epsilon-greedy policy earns.

    A non-expansion between the two, as little differentiable as the maximum (section 1).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        epsilon: in [0, 1], a number or an array that broadcasts against the rows.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if an `epsilon` is outside [0, 1] or a row has no action left.

    Examples:
        >>> print(epsilon_greedy([0.0, 0.5, 1.0], 0.1))
        0.95
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return reduce_rows(epsilon_greedy_rows, q, epsilon, axis=axis, where=where, keepdims=keepdims)


def boltzmann(
    q: Any, beta: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The Boltzmann softmax, `sum(q exp(beta q)) / sum(exp(beta q))` (section 1).

    Differentiable, and as near the maximum as wanted, but not a non-expansion: that is what gives
    it several fixed points in planning (section 4).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows. 0 gives
            the mean, infinity the maximum and minus infinity the minimum.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(boltzmann([0.0, 1.0], 2.0).round(6))
        0.880797
    """
    check_parameter("beta", beta)
    return reduce_rows(boltzmann_rows, q, beta, axis=axis, where=where, keepdims=keepdims)


def mellowmax(
    q: Any, omega: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """Mellowmax, `log(mean(exp(omega q))) / omega` (section 5).

    A non-expansion for every omega, differentiable, and as near the maximum as wanted.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows. 0 gives
            the mean, infinity the maximum and minus infinity the minimum.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if an `omega` is NaN or a row has no action left.

    Examples:
        >>> print(mellowmax([1.0, 2.0, 3.0], 5.0).round(6))
        2.78163
        >>> print(mellowmax([1.0, 2.0, 3.0], [-1e8, 1e-8, 1e8]).round(6))
        [1. 2. 3.]
    """
    check_parameter("omega", omega)
    return reduce_rows(mellowmax_rows, q, omega, axis=axis, where=where, keepdims=keepdims)


def maximum_gradient(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `maximum` with respect to `q`: the greedy policy, ties shared equally.

    Examples:
        >>> print(maximum_gradient([0.0, 1.0, 1.0]))
        [0.  0.5 0.5]
    """
    return map_rows(greedy_rows, q, axis=axis, where=where)


def mean_gradient(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `mean` with respect to `q`: the uniform policy.

    Examples:
        >>> print(mean_gradient([0.0, 1.0]))
        [0.5 0.5]
    """
    return map_rows(uniform_rows, q, axis=axis, where=where)


def epsilon_greedy_gradient(q: Any, epsilon: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `epsilon_greedy` with respect to `q`: its policy, ties shared equally.

    Examples:
        >>> print(epsilon_greedy_gradient([0.0, 1.0], 0.5))
        [0.25 0.75]
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return map_rows(epsilon_greedy_policy_rows, q, epsilon, axis=axis, where=where)


def epsilon_greedy_parameter_gradient(
    q: Any, epsilon: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The derivative of `epsilon_greedy` with respect to `epsilon`: `mean(q) - max(q)`.

    Examples:
        >>> print(epsilon_greedy_parameter_gradient([0.0, 1.0], 0.5))
        -0.5
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return reduce_rows(
        epsilon_greedy_rows.by_parameter, q, epsilon, axis=axis, where=where, keepdims=keepdims
    )


def boltzmann_gradient(q: Any, beta: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `boltzmann` with respect to `q`: `policy * (1 + beta * (q - boltzmann))`.

    It sums to 1 but can be negative, which is why the operator is not a non-expansion.

    Examples:
        >>> print(boltzmann_gradient([0.0, 1.0], 5.0).round(4))
        [-0.0265  1.0265]
    """
    check_parameter("beta", beta)
    return map_rows(boltzmann_rows.by_q, q, beta, axis=axis, where=where)


def boltzmann_parameter_gradient(
    q: Any, beta: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The derivative of `boltzmann` with respect to `beta`: the variance of `q` under its policy.

    Examples:
        >>> print(boltzmann_parameter_gradient([0.0, 1.0], 0.0))
        0.25
    """
    check_parameter("beta", beta)
    return reduce_rows(
        boltzmann_rows.by_parameter, q, beta, axis=axis, where=where, keepdims=keepdims
    )


def mellowmax_gradient(q: Any, omega: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `mellowmax` with respect to `q`: Boltzmann weights at `omega` (section 5.3).

    They are not the policy whose expectation mellowmax is: that is `mellowmax_policy`.

    Examples:
        >>> print(mellowmax_gradient([0.0, 1.0], 5.0).round(4))
        [0.0067 0.9933]
    """
    check_parameter("omega", omega)
    return map_rows(boltzmann_policy_rows, q, omega, axis=axis, where=where)


def mellowmax_parameter_gradient(
    q: Any, omega: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The derivative of `mellowmax` with respect to `omega`: `(boltzmann - mellowmax) / omega`.

    It is never negative, and at 0 it is half the variance of `q` (section 5.3).

    Examples:
        >>> print(mellowmax_parameter_gradient([0.0, 1.0], 0.0))
        0.125
    """
    check_parameter("omega", omega)
    return reduce_rows(
        mellowmax_rows.by_parameter, q, omega, axis=axis, where=where, keepdims=keepdims
    )
