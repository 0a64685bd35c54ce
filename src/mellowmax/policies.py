"""Layer 1: the five policies, action values in, a distribution over the actions out.

Each is the policy that attains its operator: `sum(policy(q) * q) == operator(q)`. For mellowmax
that is the distribution of largest entropy among those that do (section 6): a Boltzmann policy
whose inverse temperature is solved for in each row.

All of them are differentiable; `mellowmax_policy` through its temperature too, by the implicit
function theorem, to any order.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from ._rows import distributions as _distributions
from ._rows.arguments import check_parameter, map_rows, moved, reduce_rows
from ._rows.dispatch import Rowwise
from ._rows.libraries import uniform
from ._rows.temperature import temperature_rows
from .operators import boltzmann_policy_rows, epsilon_greedy_policy_rows, greedy_rows, uniform_rows

__all__ = [
    "boltzmann_log_policy",
    "boltzmann_policy",
    "choose",
    "epsilon_greedy_log_policy",
    "epsilon_greedy_policy",
    "greedy_log_policy",
    "greedy_policy",
    "mellowmax_log_policy",
    "mellowmax_policy",
    "mellowmax_temperature",
    "mellowmax_temperature_gradient",
    "mellowmax_temperature_parameter_gradient",
    "sample",
    "uniform_log_policy",
    "uniform_policy",
]


def _at_temperature(distribution: Any) -> Any:
    """A Boltzmann kernel at the temperature that mellowmax asks for."""

    def kernel(xp: Any, q: Any, omega: Any, mask: Any) -> Any:
        rows = (q.T, omega.T, None if mask is None else mask.T)
        return distribution(xp, q, temperature_rows(xp, *rows).T, mask)

    return kernel


log_greedy_rows = Rowwise(_distributions.logarithm(_distributions.greedy))
log_uniform_rows = Rowwise(_distributions.logarithm(_distributions.uniform))
log_epsilon_greedy_rows = Rowwise(_distributions.logarithm(_distributions.epsilon_greedy))
log_boltzmann_rows = Rowwise(_distributions.log_boltzmann)
mellowmax_policy_rows = Rowwise(_at_temperature(_distributions.boltzmann))
log_mellowmax_rows = Rowwise(_at_temperature(_distributions.log_boltzmann))


def greedy_policy(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """All probability on the best action; ties share equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Examples:
        >>> print(greedy_policy([0.0, 1.0, 1.0]))
        [0.  0.5 0.5]
    """
    return map_rows(greedy_rows, q, axis=axis, where=where)


def greedy_log_policy(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of `greedy_policy`: minus infinity for all but the best action.

    Examples:
        >>> print(greedy_log_policy([0.0, 1.0, 1.0]).round(4))
        [   -inf -0.6931 -0.6931]
    """
    return map_rows(log_greedy_rows, q, axis=axis, where=where)


def uniform_policy(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The same probability for every action that counts.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Examples:
        >>> print(uniform_policy([0.0, 1.0, 2.0], where=[True, False, True]))
        [0.5 0.  0.5]
    """
    return map_rows(uniform_rows, q, axis=axis, where=where)


def uniform_log_policy(q: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of `uniform_policy`.

    Examples:
        >>> print(uniform_log_policy([0.0, 1.0]).round(4))
        [-0.6931 -0.6931]
    """
    return map_rows(log_uniform_rows, q, axis=axis, where=where)


def epsilon_greedy_policy(q: Any, epsilon: Any, *, axis: int = -1, where: Any = None) -> Any:
    """Uniform with probability `epsilon`, else greedy with ties shared equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        epsilon: in [0, 1], a number or an array that broadcasts against the rows.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if an `epsilon` is outside [0, 1] or a row has no action left.

    Examples:
        >>> print(epsilon_greedy_policy([0.0, 1.0], 0.1))
        [0.05 0.95]
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return map_rows(epsilon_greedy_policy_rows, q, epsilon, axis=axis, where=where)


def epsilon_greedy_log_policy(q: Any, epsilon: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of `epsilon_greedy_policy`.

    Examples:
        >>> print(epsilon_greedy_log_policy([0.0, 1.0], 0.1).round(4))
        [-2.9957 -0.0513]
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return map_rows(log_epsilon_greedy_rows, q, epsilon, axis=axis, where=where)


def boltzmann_policy(q: Any, beta: Any, *, axis: int = -1, where: Any = None) -> Any:
    """Probabilities in proportion to `exp(beta q)` (section 2).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(boltzmann_policy([0.0, 1.0], 2.0).round(4))
        [0.1192 0.8808]
    """
    check_parameter("beta", beta)
    return map_rows(boltzmann_policy_rows, q, beta, axis=axis, where=where)


def boltzmann_log_policy(q: Any, beta: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of `boltzmann_policy`, finite where the probability itself underflows.

    Examples:
        >>> print(boltzmann_log_policy([0.0, 1.0], 2000.0))
        [-2000.     0.]
    """
    check_parameter("beta", beta)
    return map_rows(log_boltzmann_rows, q, beta, axis=axis, where=where)


def mellowmax_temperature(
    q: Any, omega: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The `b` at which the Boltzmann policy earns mellowmax: `sum(exp(b (q - mm)) (q - mm)) = 0`.

    It lies between 0 and `omega`, whatever `q` is. Where all values are equal every `b` will do,
    and it is the limit, `omega / 2`. Where an action at minus infinity pulls mellowmax below the
    mean of the others, the limit is 0, and it is the smallest number of the sign of `omega`.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One inverse temperature for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if an `omega` is NaN or a row has no action left.

    Examples:
        >>> print(mellowmax_temperature([0.0, 0.05, 0.1], 100.0).round(4))
        32.8203
    """
    check_parameter("omega", omega)
    return reduce_rows(temperature_rows, q, omega, axis=axis, where=where, keepdims=keepdims)


def mellowmax_temperature_gradient(q: Any, omega: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The gradient of `mellowmax_temperature` with respect to `q`.

    It is `(w - pi * (1 + b * (q - mm))) / Var_pi(q)` with Boltzmann weights `w` at `omega` and the
    policy `pi`: the derivative of the root by the implicit function theorem. It sums to 0. Where
    all values are equal the root has no derivative, and this is 0.

    Examples:
        >>> print(mellowmax_temperature_gradient([0.0, 1.0], 5.0).round(4))
        [ 0.7354 -0.7354]
    """
    check_parameter("omega", omega)
    return map_rows(_with_temperature(temperature_rows.by_q), q, omega, axis=axis, where=where)


def mellowmax_temperature_parameter_gradient(
    q: Any, omega: Any, *, axis: int = -1, where: Any = None, keepdims: bool = False
) -> Any:
    """The derivative of `mellowmax_temperature` with respect to `omega`.

    It is the derivative of mellowmax over the variance of `q` under the policy, and 1/2 where all
    values are equal.

    Examples:
        >>> print(mellowmax_temperature_parameter_gradient([0.0, 1.0], 0.0))
        0.5
    """
    check_parameter("omega", omega)
    function = _with_temperature(temperature_rows.by_parameter)
    return reduce_rows(function, q, omega, axis=axis, where=where, keepdims=keepdims)


def _with_temperature(derivative: Any) -> Any:
    """A derivative of the temperature where the temperature itself is still to be found."""

    def function(xp: Any, q: Any, omega: Any, mask: Any) -> Any:
        return derivative(xp, q, omega, mask, temperature_rows(xp, q, omega, mask))

    return function


def mellowmax_policy(q: Any, omega: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The maximum-entropy policy whose expected value is mellowmax (section 6).

    A Boltzmann policy at the inverse temperature `mellowmax_temperature(q, omega)`. Its expected
    value is mellowmax to rounding for every finite `q` and every `omega`.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if an `omega` is NaN or a row has no action left.

    Examples:
        >>> print(mellowmax_policy([0.0, 0.05, 0.1], 100.0).round(4))
        [0.0305 0.1574 0.8121]
    """
    check_parameter("omega", omega)
    return map_rows(mellowmax_policy_rows, q, omega, axis=axis, where=where)


def mellowmax_log_policy(q: Any, omega: Any, *, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of `mellowmax_policy`, finite where the probability itself underflows.

    Examples:
        >>> print(mellowmax_log_policy([0.0, 1.0], 5.0).round(4))
        [-1.9857 -0.1477]
    """
    check_parameter("omega", omega)
    return map_rows(log_mellowmax_rows, q, omega, axis=axis, where=where)


def sample(key: Any, policy: Any, *, axis: int = -1) -> Any:
    """Draw one action from each row of a policy.

    Args:
        key: the library's own source of randomness: a `numpy.random.Generator` or seed, a
            `torch.Generator` or seed, or a JAX key.
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.

    Returns:
        The index of an action for each row. An action of probability 0 is never drawn.

    Examples:
        >>> import numpy as np
        >>> print(sample(np.random.default_rng(0), np.array([[0.0, 1.0], [1.0, 0.0]])))
        [1 0]
    """
    xp = array_namespace(policy)
    shape = moved(xp, policy, axis, -1).shape[:-1]
    like = policy if xp.finfo(policy.dtype).bits >= 32 else xp.astype(policy, xp.float32)
    return choose(policy, uniform(xp, key, shape, like), axis=axis)


def choose(policy: Any, uniform: Any, *, axis: int = -1) -> Any:
    """The action of each row at which the cumulative probability passes a uniform number.

    `sample` for those who draw their random numbers in bulk.

    Args:
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        uniform: a number from 0 to 1 for each row.
        axis: where the actions are.

    Returns:
        The index of an action for each row, never one of probability 0.

    Examples:
        >>> import numpy as np
        >>> print(choose(np.array([[0.2, 0.8, 0.0], [0.2, 0.8, 0.0]]), np.array([0.1, 1.0])))
        [0 1]
    """
    xp = array_namespace(policy)
    if xp.finfo(policy.dtype).bits < 32:
        policy = xp.astype(policy, xp.float32)
    cumulative = xp.cumulative_sum(moved(xp, policy, axis, -1), axis=-1)
    total = cumulative[..., -1:]
    beyond = cumulative <= total * uniform[..., None]
    # Rounding may leave this true everywhere: stay below the total.
    return xp.argmin(xp.astype(beyond & (cumulative < total), xp.int8), axis=-1)
