"""A regularised softmax in a few lines, as a user would write it.

Its value has a bonus beyond what its policy earns, and the policy is the gradient of the value.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from mellowmax import Softmax


@dataclasses.dataclass(frozen=True)
class Entropic(Softmax):
    """log(sum rho e^(beta q)) / beta; log-sum-exp, if every action has the weight 1."""

    beta: Any
    weight: float = dataclasses.field(default=1.0, metadata={"static": True})
    """Of every action: 1 over their number for a uniform prior."""

    non_expansion = True

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

    def gradient(self, q, *, axis=-1, where=None):
        return self.policy(q, axis=axis, where=where)

    def log_policy(self, q, *, axis=-1, where=None):
        policy = self.policy(q, axis=axis, where=where)
        with np.errstate(divide="ignore"):
            return array_namespace(policy).log(policy)

    def _exponentials(self, q, axis, where):
        q = np.asarray(q) if isinstance(q, list) else q
        xp = array_namespace(q)
        q = q if where is None else xp.where(where, q, -xp.inf)
        top = xp.max(q, axis=axis)
        beta = xp.broadcast_to(xp.asarray(self.beta, dtype=q.dtype), top.shape)
        above = q - xp.expand_dims(top, axis=axis)
        return xp, top, beta, xp.exp(xp.expand_dims(beta, axis=axis) * above)
