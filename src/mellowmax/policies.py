"""The policies: action values in, a distribution over the actions out.

Each is the policy that attains its operator: `sum(policy(q) * q) == operator(q)`. For mellowmax
that is the distribution of largest entropy among those that do (section 6): a Boltzmann policy
whose inverse temperature is solved for in each row. `boltzmann_policy` and `sparsemax_policy` are
the gradients of `log_sum_exp` and `sparsemax` too, whose values have a bonus besides.

All of them are differentiable; `mellowmax_policy` through its inverse temperature too, by the
implicit function theorem, to any order. `entropy` and `kl` are, too, where a probability is 0.
"""

from __future__ import annotations

from typing import cast

from array_api_compat import array_namespace

from ._rows.arguments import (
    broadcast,
    check_key,
    check_parameter,
    check_probabilities,
    check_uniform,
    in_one_library,
)
from ._rows.formulas import distributions
from ._rows.formulas.temperature import temperature, temperature_d_omega, temperature_grad_q
from ._rows.libraries.array_api import uniform
from ._rows.libraries.tracing import truth
from ._rows.rows import map_rows, move_axis, reduce_rows
from ._typing import Actions, Array, ArrayT, Key, Mask, Namespace, Numbers, Parameter, Prior

__all__ = [
    "boltzmann_log_policy",
    "boltzmann_policy",
    "choose",
    "entropy",
    "epsilon_greedy_log_policy",
    "epsilon_greedy_policy",
    "greedy_log_policy",
    "greedy_policy",
    "kl",
    "mellowmax_log_policy",
    "mellowmax_policy",
    "mellowmax_temperature",
    "mellowmax_temperature_gradient",
    "mellowmax_temperature_parameter_gradient",
    "resmax_log_policy",
    "resmax_policy",
    "sample",
    "sparsemax_log_policy",
    "sparsemax_policy",
    "uniform_log_policy",
    "uniform_policy",
]


def greedy_policy(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
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
    return map_rows(distributions.greedy, q, axis=axis, where=where)


def greedy_log_policy(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
    """The logarithm of `greedy_policy`: minus infinity for all but the best action.

    Examples:
        >>> print(greedy_log_policy([0.0, 1.0, 1.0]).round(4))
        [   -inf -0.6931 -0.6931]
    """
    return map_rows(distributions.log_greedy, q, axis=axis, where=where)


def uniform_policy(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
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
    return map_rows(distributions.uniform, q, axis=axis, where=where)


def uniform_log_policy(q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
    """The logarithm of `uniform_policy`.

    Examples:
        >>> print(uniform_log_policy([0.0, 1.0]).round(4))
        [-0.6931 -0.6931]
    """
    return map_rows(distributions.log_uniform, q, axis=axis, where=where)


def epsilon_greedy_policy(
    q: ArrayT | Numbers, epsilon: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """Uniform with probability `epsilon`, else greedy with ties shared equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        epsilon: in [0, 1], a number or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
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
    return map_rows(
        distributions.epsilon_greedy, q, epsilon, name="epsilon", axis=axis, where=where
    )


def epsilon_greedy_log_policy(
    q: ArrayT | Numbers, epsilon: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The logarithm of `epsilon_greedy_policy`.

    Examples:
        >>> print(epsilon_greedy_log_policy([0.0, 1.0], 0.1).round(4))
        [-2.9957 -0.0513]
    """
    check_parameter("epsilon", epsilon, 0.0, 1.0)
    return map_rows(
        distributions.log_epsilon_greedy, q, epsilon, name="epsilon", axis=axis, where=where
    )


def boltzmann_policy(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """Probabilities in proportion to `exp(beta q)`, or `prior * exp(beta q)` (section 2).

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.
        prior: a weight from 0 for each action, `[actions]` for all rows or an array that broadcasts
            against `q`; weights are scaled to sum to 1. None for equal ones.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(boltzmann_policy([0.0, 1.0], 2.0).round(4))
        [0.1192 0.8808]
    """
    check_parameter("beta", beta)
    return map_rows(
        distributions.boltzmann, q, beta, name="beta", axis=axis, where=where, prior=prior
    )


def boltzmann_log_policy(
    q: ArrayT | Numbers,
    beta: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """The logarithm of `boltzmann_policy`, finite where the probability itself underflows.

    Examples:
        >>> print(boltzmann_log_policy([0.0, 1.0], 2000.0))
        [-2000.     0.]
    """
    check_parameter("beta", beta)
    return map_rows(
        distributions.log_boltzmann, q, beta, name="beta", axis=axis, where=where, prior=prior
    )


def mellowmax_temperature(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
    keepdims: bool = False,
) -> ArrayT:
    """The inverse temperature `b` at which the Boltzmann policy's expected value is mellowmax.

    It solves `sum(exp(b (q - mm)) (q - mm)) = 0`, with mellowmax as `mm` (section 6), and lies
    between 0 and `omega`. If all values are equal, every `b` solves it, and the limit, `omega / 2`,
    is returned. If an action at minus infinity pulls mellowmax below the mean of the others, the
    limit is 0, and the smallest number of the sign of `omega` is returned.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; None for all.
        prior: a weight from 0 for each action, `[actions]` for all rows or an array that broadcasts
            against `q`; weights are scaled to sum to 1. None for equal ones.
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
    return reduce_rows(
        temperature,
        q,
        omega,
        name="omega",
        axis=axis,
        where=where,
        prior=prior,
        keepdims=keepdims,
    )


def mellowmax_temperature_gradient(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """The gradient of `mellowmax_temperature` with respect to `q`.

    It is `(w - pi * (1 + b * (q - mm))) / Var_pi(q)` with Boltzmann weights `w` at `omega` and the
    policy `pi`: the derivative of the root by the implicit function theorem. It sums to 0. Where
    all values are equal the root has no derivative, and this is 0.

    Examples:
        >>> print(mellowmax_temperature_gradient([0.0, 1.0], 5.0).round(4))
        [ 0.7354 -0.7354]
    """
    check_parameter("omega", omega)
    return map_rows(temperature_grad_q, q, omega, name="omega", axis=axis, where=where, prior=prior)


def mellowmax_temperature_parameter_gradient(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
    keepdims: bool = False,
) -> ArrayT:
    """The derivative of `mellowmax_temperature` with respect to `omega`.

    It is the derivative of mellowmax over the variance of `q` under the policy, and 1/2 where all
    values are equal.

    Examples:
        >>> print(mellowmax_temperature_parameter_gradient([0.0, 1.0], 0.0))
        0.5
    """
    check_parameter("omega", omega)
    return reduce_rows(
        temperature_d_omega,
        q,
        omega,
        name="omega",
        axis=axis,
        where=where,
        prior=prior,
        keepdims=keepdims,
    )


def mellowmax_policy(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """The maximum-entropy policy whose expected value is mellowmax (section 6).

    A Boltzmann policy at the inverse temperature `mellowmax_temperature(q, omega)`. Its expected
    value is mellowmax to rounding for every finite `q` and every `omega`. With a `prior` it is the
    policy nearest to the prior, in the Kullback-Leibler divergence from it, that earns the
    mellowmax of that prior.

    An action that is not legal is to be left out by `where`. Under other policies a value of -1e9
    does the same; here it counts in mellowmax's mean, which falls so low that the others become
    nearly equal.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        omega: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.
        prior: a weight from 0 for each action, `[actions]` for all rows or an array that broadcasts
            against `q`; weights are scaled to sum to 1. None for equal ones.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if an `omega` is NaN or a row has no action left.

    Examples:
        >>> print(mellowmax_policy([0.0, 0.05, 0.1], 100.0).round(4))
        [0.0305 0.1574 0.8121]
        >>> legal = [True, True, True, False]
        >>> print(mellowmax_policy([0.3, 0.4, 0.5, 9.9], 5.0, where=legal).round(4))
        [0.255  0.3266 0.4183 0.    ]
        >>> print(mellowmax_policy([0.3, 0.4, 0.5, -1e9], 5.0).round(4))  # not the same
        [0.3333 0.3333 0.3333 0.    ]
        >>> print(mellowmax_policy([1.0, 1.5, 3.0], 2.0, prior=[0.5, 0.3, 0.2]).round(4))
        [0.2172 0.2089 0.5738]
    """
    check_parameter("omega", omega)
    return map_rows(
        distributions.mellowmax, q, omega, name="omega", axis=axis, where=where, prior=prior
    )


def mellowmax_log_policy(
    q: ArrayT | Numbers,
    omega: Parameter,
    *,
    axis: int = -1,
    where: Mask = None,
    prior: Prior = None,
) -> ArrayT:
    """The logarithm of `mellowmax_policy`, finite where the probability itself underflows.

    Examples:
        >>> print(mellowmax_log_policy([0.0, 1.0], 5.0).round(4))
        [-1.9857 -0.1477]
    """
    check_parameter("omega", omega)
    return map_rows(
        distributions.log_mellowmax, q, omega, name="omega", axis=axis, where=where, prior=prior
    )


def sparsemax_policy(
    q: ArrayT | Numbers, beta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The point of the simplex nearest to `beta q`: actions far below the best get exactly 0.

    `max(threshold - beta gap, 0)` with `gap = max(q) - q` and the threshold at which it sums to 1.
    It is the gradient of `sparsemax`.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        beta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if a `beta` is NaN or a row has no action left.

    Examples:
        >>> print(sparsemax_policy([0.0, 0.5, 1.0], 1.0))
        [0.   0.25 0.75]
    """
    check_parameter("beta", beta)
    return map_rows(distributions.sparsemax, q, beta, name="beta", axis=axis, where=where)


def sparsemax_log_policy(
    q: ArrayT | Numbers, beta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The logarithm of `sparsemax_policy`: minus infinity for the actions that it leaves out.

    Examples:
        >>> print(sparsemax_log_policy([0.0, 0.5, 1.0], 1.0).round(4))
        [   -inf -1.3863 -0.2877]
    """
    check_parameter("beta", beta)
    return map_rows(distributions.log_sparsemax, q, beta, name="beta", axis=axis, where=where)


def resmax_policy(
    q: ArrayT | Numbers, eta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """Inverse gap weighting: `1 / (n + eta gap)` with `gap = max(q) - q`, the rest for the best.

    What it earns is `resmax`. It has no exponential: a gap that is ten times as wide leaves a tenth
    of the probability. Ties share the rest equally.

    Args:
        q: action values, `[..., actions, ...]` with the actions along `axis`.
        eta: any number, infinity included, or an array that broadcasts against the rows, whose
            shape is that of `q` without `axis`.
        axis: where the actions are.
        where: actions that count, broadcast against `q`; the others get exactly 0.

    Returns:
        Probabilities in the shape, kind, dtype and device of `q`.

    Raises:
        ValueError: if an `eta` is NaN or a row has no action left.

    Examples:
        >>> print(resmax_policy([0.0, 1.0], 2.0))
        [0.25 0.75]
    """
    check_parameter("eta", eta)
    return map_rows(distributions.resmax, q, eta, name="eta", axis=axis, where=where)


def resmax_log_policy(
    q: ArrayT | Numbers, eta: Parameter, *, axis: int = -1, where: Mask = None
) -> ArrayT:
    """The logarithm of `resmax_policy`.

    Examples:
        >>> print(resmax_log_policy([0.0, 1.0], 2.0).round(4))
        [-1.3863 -0.2877]
    """
    check_parameter("eta", eta)
    return map_rows(distributions.log_resmax, q, eta, name="eta", axis=axis, where=where)


def entropy(policy: ArrayT, *, axis: int = -1, keepdims: bool = False) -> ArrayT:
    """The entropy of a policy in nats, `-sum(policy * log(policy))`.

    An action of probability 0 adds nothing, and its derivative is 0: the gradient with respect to
    action values is right too where one of them is minus infinity, or was left out.

    Args:
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One number for each row, in the kind, dtype and device of `policy`.

    Examples:
        >>> import numpy as np
        >>> print(entropy(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).round(6))
        [0.693147 0.      ]
    """
    axis = check_probabilities("policy", policy, axis)
    xp: Namespace = array_namespace(policy)
    p = _in_single_precision(xp, policy)
    some = p > 0
    parts = xp.where(some | (p != p), p * xp.log(xp.where(some, p, 1.0)), 0.0)
    return _total(xp, -parts, policy, axis, keepdims)


def kl(policy: ArrayT, prior: ArrayT, *, axis: int = -1, keepdims: bool = False) -> ArrayT:
    """How far a policy is from a prior, `sum(policy * log(policy / prior))` in nats.

    The Kullback-Leibler divergence: 0 if they are the same, and infinite if the policy takes an
    action that the prior never does. An action of probability 0 under the policy adds nothing, and
    its derivative is 0. Each part is computed as `p log(p / r) + r - p`, which is never negative
    and sums to the same: nothing cancels where the two are nearly equal.

    Args:
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        prior: those to compare with, of the same shape or one that broadcasts to it.
        axis: where the actions are.
        keepdims: leave `axis` in the result, with size 1.

    Returns:
        One number for each row, in the kind, dtype and device of `policy`.

    Examples:
        >>> import numpy as np
        >>> print(kl(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])).round(6))
        0.693147
    """
    axis = check_probabilities("policy", policy, axis)
    check_probabilities("prior", prior, axis)
    policy, prior = in_one_library({"policy": policy, "prior": prior})
    shape = broadcast("prior", tuple(prior.shape), "`policy`", tuple(policy.shape))
    xp: Namespace = array_namespace(policy)
    p, r = (xp.broadcast_to(_in_single_precision(xp, each), shape) for each in (policy, prior))
    some = (p > 0) & (r > 0)
    a, b = xp.where(some, p, 1.0), xp.where(some, r, 1.0)
    near = xp.abs(a - b) < 0.5 * b
    ratio = xp.where(near, xp.log1p(xp.where(near, (a - b) / b, 0.0)), xp.log(a) - xp.log(b))
    parts = xp.where(some, a * ratio - (a - b), xp.where(p > 0, xp.inf, r + 0 * p))
    return _total(xp, parts, policy, axis, keepdims)


def _in_single_precision(xp: Namespace, x: Array) -> Array:
    """Half precision in single, and others as they are."""
    return xp.astype(x, xp.float32) if xp.finfo(x.dtype).bits < 32 else x


def _total(xp: Namespace, parts: Array, policy: ArrayT, axis: int, keepdims: bool) -> ArrayT:
    total = xp.sum(parts, axis=axis, keepdims=keepdims)
    total = xp.astype(total, policy.dtype, copy=False)
    return cast(ArrayT, total if total.ndim else total[()])


def sample(key: Key, policy: Array, *, axis: int = -1) -> Actions:
    """Draw one action from each row of a policy.

    Args:
        key: the library's own source of randomness: a `numpy.random.Generator` or seed, a
            `torch.Generator` or seed, or a JAX key.
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        axis: where the actions are.

    Returns:
        The index of an action for each row. An action of probability 0 is never drawn. While
        tracing, a row whose probabilities are not numbers, or all 0, gives -1.

    Raises:
        ValueError: if the probabilities of a row are not numbers, or are all 0.

    Examples:
        >>> import numpy as np
        >>> print(sample(np.random.default_rng(0), np.array([[0.0, 1.0], [1.0, 0.0]])))
        [1 0]
    """
    axis = check_probabilities("policy", policy, axis)
    xp: Namespace = array_namespace(policy)
    check_key(xp, key)
    shape = move_axis(xp, policy, axis, -1).shape[:-1]
    return _choose(xp, policy, uniform(xp, key, shape, _in_single_precision(xp, policy)), axis)


def choose(policy: Array, uniform: Array, *, axis: int = -1) -> Actions:
    """The action of each row at which the cumulative probability passes a uniform number.

    `sample` for those who draw their random numbers in bulk.

    Args:
        policy: probabilities, `[..., actions, ...]` with the actions along `axis`.
        uniform: a number from 0 to 1 for each row.
        axis: where the actions are.

    Returns:
        The index of an action for each row, never one of probability 0. While tracing, a row whose
        probabilities are not numbers, or all 0, gives -1.

    Raises:
        ValueError: if the probabilities of a row are not numbers, or are all 0, or if a number is
            not from 0 to 1.

    Examples:
        >>> import numpy as np
        >>> print(choose(np.array([[0.2, 0.8, 0.0], [0.2, 0.8, 0.0]]), np.array([0.1, 1.0])))
        [0 1]
    """
    axis = check_probabilities("policy", policy, axis)
    policy, uniform = check_uniform(policy, uniform, axis)
    return _choose(array_namespace(policy), policy, uniform, axis)


def _choose(xp: Namespace, policy: Array, uniform: Array, axis: int) -> Actions:
    policy = _in_single_precision(xp, policy)
    cumulative = xp.cumulative_sum(move_axis(xp, policy, axis, -1), axis=-1)
    total = xp.max(cumulative, axis=-1, keepdims=True)
    beyond = cumulative <= total * uniform[..., None]
    # Rounding may leave this true everywhere: stay below the total.
    below = xp.astype(beyond & (cumulative < total), xp.int32)
    action = xp.sum(below, axis=-1, keepdims=False)
    total = total[..., 0]
    fits = total > 0  # NaN does not
    all_fit = truth(xp.all(fits & (total < xp.inf)))
    if all_fit is False:
        got = float(total[~(fits & (total < xp.inf))][0])
        raise ValueError(f"`policy` must be probabilities, got a row that adds up to {got:g}")
    return action if all_fit else xp.where(fits, action, -1)
