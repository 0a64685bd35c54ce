"""The derivatives of policies, by which equilibria are found and followed.

Boltzmann's policy has the derivative `beta (diag(pi) - pi pi')`, with a prior or without.
Mellowmax's is a Boltzmann policy whose inverse temperature `b` moves with the values. With the
deviations `d = q - mm(q)`, their variance `V` under the policy, and the weights `w` of mellowmax's
gradient,

    db/dq_j = (w_j - pi_j - b pi_j d_j) / V
    dpi_i/dq_j = b pi_i (delta_ij - pi_j) + pi_i d_i db/dq_j

where all values are equal `b` is half of omega, and the last term is 0. Policies of other softmaxes
are differentiated by JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .._common import checks
from .._common.extras import needed_by
from .._typing import Bools, Floats
from ..softmax import Boltzmann, FreeEnergy, LogSumExp, Mean, Mellowmax, Softmax

__all__ = ["LOGIT", "check_smooth", "policy_and_jacobian"]

LOGIT = (Boltzmann, LogSumExp, FreeEnergy)
"""The softmaxes with Boltzmann's policy, with a prior or without."""
_BLOCK = 128

_TIED = 1e-7  # omega times the range of a row, below which its values are taken for equal


def check_smooth(softmax: object) -> Softmax:
    """The softmax, if its policy can be followed.

    Raises:
        ValueError: if it cannot; the sentence says why.
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    assert isinstance(softmax, Softmax)
    if not softmax.smooth_policy:
        raise ValueError(
            f"`softmax` must have a policy that moves smoothly with the action values, to be "
            f"followed, got {softmax}; a class of your own says so by `smooth_policy = True`"
        )
    if any(isinstance(x, float) and not np.isfinite(x) for x in vars(softmax).values()):
        raise ValueError(
            f"`softmax` must have a finite parameter, since its policy jumps where actions tie "
            f"otherwise, got {softmax}"
        )
    return softmax


def policy_and_jacobian(softmax: Softmax, q: Floats, where: Bools | None) -> tuple[Floats, Floats]:
    """The policy for `q`, `[..., A]`, and its derivative `[..., A, A]`.

    Args:
        softmax: with one parameter, or an array that broadcasts against the rows.
        q: action values, `[..., A]`.
        where: the actions that count.
    """
    if isinstance(softmax, LOGIT):
        policy = np.asarray(softmax.policy(q, where=where))
        return policy, _at_a_temperature(policy, softmax.beta)
    if isinstance(softmax, Mellowmax):
        return _mellowmax(softmax, q, where)
    policy = np.asarray(softmax.policy(q, where=where))
    if isinstance(softmax, Mean):
        return policy, np.zeros((*q.shape, q.shape[-1]))
    return policy, _by_jax(softmax, q, where)


def _at_a_temperature(policy: Floats, beta: Floats | float) -> Floats:
    """The Jacobian of `exp(beta q)`, normalised, at a fixed `beta`."""
    scaled = policy * np.asarray(beta)[..., None]
    return np.asarray(scaled[..., :, None] * (_eye(policy.shape[-1]) - policy[..., None, :]))


_eye = functools.cache(np.eye)


def _mellowmax(softmax: Mellowmax, q: Floats, where: Bools | None) -> tuple[Floats, Floats]:
    log_policy = np.asarray(softmax.log_policy(q, where=where))
    policy = np.exp(log_policy)
    there = policy > 0
    prior = 1.0 if softmax.prior is None else np.asarray(softmax.prior, np.float64)
    finite = np.where(there, log_policy - np.log(np.where(there, prior, 1.0)), 0.0)
    values = np.where(there, q, (policy * q).sum(-1, keepdims=True))
    best, worst = values.argmax(-1)[..., None], values.argmin(-1)[..., None]
    width, rise = (
        (np.take_along_axis(x, best, -1) - np.take_along_axis(x, worst, -1))[..., 0]
        for x in (values, finite)
    )
    omega = np.asarray(softmax.omega, np.float64)
    tied = abs(omega) * width < _TIED
    b = np.where(tied, omega / 2, rise / np.where(tied, 1.0, width))
    deviation = values - (policy * values).sum(-1, keepdims=True)
    variance = (policy * deviation**2).sum(-1)
    weights = np.asarray(softmax.gradient(q, where=where))
    change = weights - policy - b[..., None] * policy * deviation
    change = change / np.where(tied, np.inf, variance)[..., None]
    result = _at_a_temperature(policy, b)
    return policy, result + (policy * deviation)[..., :, None] * change[..., None, :]


def _by_jax(softmax: Softmax, q: Floats, where: Bools | None) -> Floats:
    """The Jacobian of any policy, `[..., N, A, A]`, by a compiled program."""
    with needed_by("mellowmax.games", "jax"):
        import jax
    lead = q.shape[:-2]
    many = q.reshape(-1, *q.shape[-2:])
    room = -len(many) % _BLOCK if lead else 0  # so that few sizes are compiled
    with jax.enable_x64(True):
        columns = _program()(softmax, np.pad(many, [(0, room), (0, 0), (0, 0)]), where)
        result = np.asarray(columns, np.float64)[: len(many)]
    return result.reshape(*lead, *result.shape[1:])


@functools.cache
def _program() -> Callable[[Softmax, Floats, Bools | None], Any]:
    import jax

    @jax.jit
    def jacobian(softmax: Softmax, q: jax.Array, where: jax.Array | None) -> Any:
        # Column by column: each row has its own policy, so that one direction serves all rows.
        def column(direction: jax.Array) -> Any:
            return jax.jvp(lambda x: softmax.policy(x, where=where), (q,), (direction,))[1]

        directions = jax.numpy.broadcast_to(jax.numpy.eye(q.shape[-1]), (*q.shape, q.shape[-1]))
        return jax.vmap(column, -1, -1)(directions)

    return cast(Callable[[Softmax, Floats, Bools | None], Any], jacobian)
