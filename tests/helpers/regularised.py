"""Regularised softmaxes in a few lines each, written independently of the library's own.

Their values have a bonus beyond what their policies earn, and their policies are the gradients of
their values.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from mellowmax import Softmax


class Regularised(Softmax):
    """A value and its gradient, which is the policy; the bonus follows from these two."""

    non_expansion = True

    def gradient(self, q, *, axis=-1, where=None):
        return self.policy(q, axis=axis, where=where)

    def log_policy(self, q, *, axis=-1, where=None):
        policy = self.policy(q, axis=axis, where=where)
        with np.errstate(divide="ignore"):
            return array_namespace(policy).log(policy)


@dataclasses.dataclass(frozen=True)
class Entropic(Regularised):
    """log(sum rho e^(beta q)) / beta; log-sum-exp, if every action has the weight 1."""

    beta: Any
    weight: float = dataclasses.field(default=1.0, metadata={"static": True})
    """Of every action: 1 over their number for a uniform prior."""

    def gap(self, n_actions):
        return max(0.0, -float(np.log(self.weight) / np.min(self.beta)))

    def largest_bonus(self, n_actions):
        return max(0.0, float(np.log(n_actions * self.weight) / np.min(self.beta)))

    def value(self, q, *, axis=-1, where=None):
        xp, top, beta, e = self._exponentials(q, axis, where)
        return top + xp.log(self.weight * xp.sum(e, axis=axis)) / beta

    def policy(self, q, *, axis=-1, where=None):
        xp, _, _, e = self._exponentials(q, axis, where)
        return e / xp.sum(e, axis=axis, keepdims=True)

    def _exponentials(self, q, axis, where):
        q = np.asarray(q) if isinstance(q, list) else q
        xp = array_namespace(q)
        q = q if where is None else xp.where(where, q, -xp.inf)
        top = xp.max(q, axis=axis)
        beta = xp.broadcast_to(xp.asarray(self.beta, dtype=q.dtype), top.shape)
        above = q - xp.expand_dims(top, axis=axis)
        return xp, top, beta, xp.exp(xp.expand_dims(beta, axis=axis) * above)


@dataclasses.dataclass(frozen=True)
class Sparse(Regularised):
    """max <policy, q> + (1 - |policy|^2) / (2 beta): the projection of beta q to the simplex."""

    beta: float

    def gap(self, n_actions):
        return 0.0

    def largest_bonus(self, n_actions):
        return (1 - 1 / n_actions) / (2 * self.beta)

    def value(self, q, *, axis=-1, where=None):
        xp, policy = array_namespace(q), self.policy(q, axis=axis, where=where)
        earned = xp.sum(xp.where(policy > 0, policy * q, 0.0), axis=axis)
        return earned + (1 - xp.sum(policy**2, axis=axis)) / (2 * self.beta)

    def policy(self, q, *, axis=-1, where=None):
        xp = array_namespace(q)
        z = self.beta * (q if where is None else xp.where(where, q, -1e9))
        z = xp.moveaxis(z - xp.max(z, axis=axis, keepdims=True), axis, -1)
        falling = -xp.sort(-z, axis=-1)
        rank = xp.cumsum(xp.ones_like(z), axis=-1)
        over = xp.cumsum(falling, axis=-1) - 1  # by how much the largest add up to more than 1
        counts = falling * rank > over
        taken = xp.sum(xp.astype(counts, z.dtype), axis=-1, keepdims=True)
        last = xp.min(xp.where(counts, over, xp.inf), axis=-1, keepdims=True)  # it falls
        return xp.moveaxis(xp.maximum(z - last / taken, 0.0), -1, axis)
