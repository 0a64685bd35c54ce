"""The operators: action values in, one value out, with closed-form gradients.

A softmax operator turns the action values `q` of a state into one value. Section 1 of Asadi and
Littman (2017) asks four things of it: parameters that approximate the maximum, non-expansion,
differentiability, and a policy that starves no action. `mellowmax` (section 5) has all four. The
paper has five; `log_sum_exp`, `sparsemax` and `resmax` are others that the field uses.

Each function takes an array of NumPy, PyTorch, JAX, CuPy or any other Array API library and gives
back the same kind, on the same device and in the same dtype. Automatic differentiation uses the
closed forms below, and differentiates them again for the higher orders.

A row is the action values of one state, along `axis`: the shape of the rows is that of `q` without
`axis`. The parameter is a number for all rows, or an array that broadcasts against them. Further
axes in front repeat the rows, once for each parameter. A parameter that keeps the axis of the
actions is an error: `omega` of shape (2, 1) for `q` of shape (2, 3). An argument of the wrong kind
raises TypeError, a wrong value or shape ValueError.
"""

from __future__ import annotations

from ._rows.arguments import check_parameter
from ._rows.formulas import distributions, values
from ._rows.rows import map_rows, reduce_rows
from ._typing import ArrayT, Mask, Numbers, Parameter, Prior

__all__ = [
    "boltzmann",
    "boltzmann_gradient",
    "boltzmann_parameter_gradient",
    "epsilon_greedy",
    "epsilon_greedy_gradient",
    "epsilon_greedy_parameter_gradient",
    "log_sum_exp",
    "log_sum_exp_parameter_gradient",
    "maximum",
    "maximum_gradient",
    "mean",
    "mean_gradient",
    "mellowmax",
    "mellowmax_gradient",
    "mellowmax_parameter_gradient",
    "resmax",
    "resmax_gradient",
    "resmax_parameter_gradient",
    "sparsemax",
    "sparsemax_parameter_gradient",
]


def maximum(
    q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None, keepdims: bool = False
) -> ArrayT:
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
    return reduce_rows(values.maximum, q, axis=axis, where=where, keepdims=keepdims)


def mean(
    q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None, keepdims: bool = False
) -> ArrayT:
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
    return reduce_rows(values.mean, q, axis=axis, where=where, keepdims=keepdims)


def epsilon_greedy(
    q: ArrayT | Numbers,
    epsilon: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """`epsilon * mean(q) + (1 - epsilon) * max(q)`: the value of epsilon-greedy.

    A non-expansion between the two, as little differentiable as the maximum (section 1).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        epsilon: in [0, 1], a number or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
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
    return reduce_rows(
        values.epsilon_greedy, q, epsilon, name="epsilon", axis=axis, where=where, keepdims=keepdims
    )


def boltzmann(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The Boltzmann softmax, `sum(q exp(beta q)) / sum(exp(beta q))` (section 1).

    Differentiable, and as near the maximum as wanted, but not a non-expansion: that is what gives
    it several fixed points in planning (section 4).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`. 0 gives the mean,
            infinity the maximum and minus infinity the minimum.
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
    return reduce_rows(
        values.boltzmann, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def mellowmax(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
    keepdims: bool = False,
) -> ArrayT:
    """Mellowmax, `log(mean(exp(omega q))) / omega` (section 5).

    A non-expansion for every omega, differentiable, and as near the maximum as wanted.

    A `prior` is the distribution that the mean is taken under, in place of the uniform one:
    `log(sum(prior * exp(omega q))) / omega`, the free energy of G-learning and of linearly solvable
    MDPs (section 8). It is a non-expansion too.

    Mask illegal actions with `where`. Filling their values with -1e9, as agents often do, is wrong
    here, whatever the number: a filled action adds nothing to the sum, but counts in the mean.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`. 0 gives the mean,
            infinity the maximum and minus infinity the minimum.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        prior: a weight from 0 for each action, `[actions]` for all rows or an array that broadcasts
            against `q`; weights are scaled to sum to 1. None for equal ones.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if an `omega` is NaN, a row has no action left, or a `prior` is not as above.

    Examples:
        >>> print(mellowmax([1.0, 2.0, 3.0], 5.0).round(6))
        2.78163
        >>> print(mellowmax([1.0, 2.0, 3.0], [-1e8, 1e-8, 1e8]).round(6))
        [1. 2. 3.]
        >>> print(mellowmax([1.0, 2.0, 3.0, -1e9], 5.0, where=[True, True, True, False]).round(6))
        2.78163
        >>> print(mellowmax([1.0, 2.0, 3.0, -1e9], 5.0).round(6))  # not the same
        2.724093
        >>> print(mellowmax([1.0, 1.5, 3.0], 2.0, prior=[0.5, 0.3, 0.2]).round(6))
        2.252155
    """
    check_parameter("omega", omega)
    return reduce_rows(
        values.mellowmax,
        q,
        omega,
        name="omega",
        axis=axis,
        where=where,
        prior=prior,
        keepdims=keepdims,
    )


def log_sum_exp(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """`log(sum(exp(beta q))) / beta`: the value of soft Q-learning and of the logit.

    It is mellowmax plus `log(n) / beta`, with `n` the number of actions: what the best policy
    earns with a bonus of `1 / beta` for each nat of its entropy. A non-expansion and
    differentiable, but above the maximum. Its gradient is `boltzmann_policy(q, beta)`.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`. Infinity gives the maximum and minus infinity the
            minimum. As it falls to 0 the value rises without end, and at 0 it is infinite.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(log_sum_exp([1.0, 2.0, 3.0], 5.0).round(6))
        3.001352
        >>> print(log_sum_exp([0.0, 0.0], [1.0, 10.0, 100.0]).round(6))
        [0.693147 0.069315 0.006931]
    """
    check_parameter("beta", beta)
    return reduce_rows(
        values.log_sum_exp, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def sparsemax(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The largest `sum(p q) + (1 - sum(p^2)) / (2 beta)` over all policies `p`.

    The value of `sparsemax_policy`, which is its gradient, with a bonus for a policy that spreads
    (the Tsallis entropy of order 2). A non-expansion and differentiable, above the maximum by at
    most `(1 - 1 / n) / (2 beta)`.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`. Infinity gives the maximum and minus infinity the
            minimum. As it falls to 0 the value rises without end, and at 0 it is infinite.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(sparsemax([0.0, 0.5, 1.0], [1.0, 100.0]).round(6))
        [1.0625 1.    ]
    """
    check_parameter("beta", beta)
    return reduce_rows(
        values.sparsemax, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def resmax(
    q: ArrayT | Numbers,
    eta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """`max(q) - sum(gap / (n + eta gap))` with `gap = max(q) - q`: what `resmax_policy` earns.

    A non-expansion without an exponential, at most `(n - 1) / eta` below the maximum. At a tie of
    three best actions or more it has no derivative, and its gradient is shared equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        eta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`. 0 gives the mean, infinity the maximum and minus
            infinity the minimum.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One value for each row, in the kind, dtype and device of `q`.

    Raises:
        ValueError: if an `eta` is NaN or a row has no action left.

    Examples:
        >>> print(resmax([0.0, 1.0], [0.0, 2.0, 1e6]).round(6))
        [0.5      0.75     0.999999]
    """
    check_parameter("eta", eta)
    return reduce_rows(values.resmax, q, eta, name="eta", axis=axis, where=where, keepdims=keepdims)


def maximum_gradient(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
    """The gradient of `maximum` with respect to `q`: the greedy policy, ties shared equally.

    Examples:
        >>> print(maximum_gradient([0.0, 1.0, 1.0]))
        [0.  0.5 0.5]
    """
    return map_rows(distributions.greedy, q, axis=axis, where=where)


def mean_gradient(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
    """The gradient of `mean` with respect to `q`: the uniform policy.

    Examples:
        >>> print(mean_gradient([0.0, 1.0]))
        [0.5 0.5]
    """
    return map_rows(distributions.uniform, q, axis=axis, where=where)


def epsilon_greedy_gradient(
    q: ArrayT | Numbers, epsilon: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The gradient of `epsilon_greedy` with respect to `q`: its policy, ties shared equally.

    Examples:
        >>> print(epsilon_greedy_gradient([0.0, 1.0], 0.5))
        [0.25 0.75]
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return map_rows(
        distributions.epsilon_greedy, q, epsilon, name="epsilon", axis=axis, where=where
    )


def epsilon_greedy_parameter_gradient(
    q: ArrayT | Numbers,
    epsilon: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `epsilon_greedy` with respect to `epsilon`: `mean(q) - max(q)`.

    Examples:
        >>> print(epsilon_greedy_parameter_gradient([0.0, 1.0], 0.5))
        -0.5
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return reduce_rows(
        values.epsilon_greedy_d_epsilon,
        q,
        epsilon,
        name="epsilon",
        axis=axis,
        where=where,
        keepdims=keepdims,
    )


def boltzmann_gradient(
    q: ArrayT | Numbers, beta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The gradient of `boltzmann` with respect to `q`: `policy * (1 + beta * (q - boltzmann))`.

    It sums to 1 but can be negative, which is why the operator is not a non-expansion.

    Examples:
        >>> print(boltzmann_gradient([0.0, 1.0], 5.0).round(4))
        [-0.0265  1.0265]
    """
    check_parameter("beta", beta)
    return map_rows(values.boltzmann_grad_q, q, beta, name="beta", axis=axis, where=where)


def boltzmann_parameter_gradient(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `boltzmann` with respect to `beta`: the variance of `q` under its policy.

    Examples:
        >>> print(boltzmann_parameter_gradient([0.0, 1.0], 0.0))
        0.25
    """
    check_parameter("beta", beta)
    return reduce_rows(
        values.boltzmann_d_beta, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def mellowmax_gradient(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """The gradient of `mellowmax` with respect to `q`: Boltzmann weights at `omega` (section 5.3).

    They are not the policy whose expectation mellowmax is: that is `mellowmax_policy`.

    Examples:
        >>> print(mellowmax_gradient([0.0, 1.0], 5.0).round(4))
        [0.0067 0.9933]
    """
    check_parameter("omega", omega)
    return map_rows(
        distributions.boltzmann, q, omega, name="omega", axis=axis, where=where, prior=prior
    )


def mellowmax_parameter_gradient(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `mellowmax` with respect to `omega`: `(boltzmann - mellowmax) / omega`.

    It is never negative, and at 0 it is half the variance of `q` (section 5.3).

    Examples:
        >>> print(mellowmax_parameter_gradient([0.0, 1.0], 0.0))
        0.125
    """
    check_parameter("omega", omega)
    return reduce_rows(
        values.mellowmax_d_omega,
        q,
        omega,
        name="omega",
        axis=axis,
        where=where,
        prior=prior,
        keepdims=keepdims,
    )


def log_sum_exp_parameter_gradient(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `log_sum_exp` with respect to `beta`: minus the entropy over `beta^2`.

    Examples:
        >>> print(log_sum_exp_parameter_gradient([0.0, 0.0], 2.0).round(6))
        -0.173287
    """
    check_parameter("beta", beta)
    return reduce_rows(
        values.log_sum_exp_d_beta, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def sparsemax_parameter_gradient(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `sparsemax` with respect to `beta`: `-(1 - sum(p^2)) / (2 beta^2)`.

    Examples:
        >>> print(sparsemax_parameter_gradient([0.0, 0.0], 2.0))
        -0.0625
    """
    check_parameter("beta", beta)
    return reduce_rows(
        values.sparsemax_d_beta, q, beta, name="beta", axis=axis, where=where, keepdims=keepdims
    )


def resmax_gradient(
    q: ArrayT | Numbers, eta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The gradient of `resmax` with respect to `q`: `n / (n + eta gap)^2`, the rest for the best.

    Examples:
        >>> print(resmax_gradient([0.0, 1.0], 2.0))
        [0.125 0.875]
    """
    check_parameter("eta", eta)
    return map_rows(values.resmax_grad_q, q, eta, name="eta", axis=axis, where=where)


def resmax_parameter_gradient(
    q: ArrayT | Numbers,
    eta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `resmax` with respect to `eta`: `sum((gap / (n + eta gap))^2)`.

    Examples:
        >>> print(resmax_parameter_gradient([0.0, 1.0], 2.0))
        0.0625
    """
    check_parameter("eta", eta)
    return reduce_rows(
        values.resmax_d_eta, q, eta, name="eta", axis=axis, where=where, keepdims=keepdims
    )
