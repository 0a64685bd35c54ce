"""The search for the temperature of mellowmax's policy."""

from __future__ import annotations

import jax
import numpy as np

import mellowmax as mm
from helpers.awkward import awkward_rows
from mellowmax._rows.formulas import root


def test_few_steps_are_enough(monkeypatch):
    """No awkward row needs more than a fraction of the steps that are allowed."""
    steps = []

    def counting(xp, step, state, limit):
        taken = 0
        while True:
            taken += 1
            state, done = step(state)
            if xp.all(done) or taken == limit:
                steps.append(taken)
                return state

    monkeypatch.setattr(root, "iterate", counting)
    for n in (2, 3, 5, 18):
        for dtype in (np.float64, np.float32):
            q, omega = awkward_rows(np.random.default_rng(n), n, 3000, 30)
            mm.mellowmax_temperature(q.astype(dtype), omega.astype(dtype))
    assert max(steps) <= 20


def test_the_last_digit_of_a_row_does_not_hang_on_the_rows_beside_it():
    """Rows need different numbers of steps, and a loop takes as many as the slowest."""
    q, omega = awkward_rows(np.random.default_rng(0), 4, 64, 8)
    usual = np.random.default_rng(1).normal(size=q.shape)
    q = np.concatenate([q, usual]).astype(np.float32)
    omega = np.concatenate([omega, np.full(len(usual), 5.0)]).astype(np.float32)
    temperature = jax.jit(mm.mellowmax_temperature)
    together = np.asarray(temperature(q, omega))
    for i in range(0, len(q), 3):
        alone = temperature(np.broadcast_to(q[i], q.shape), np.broadcast_to(omega[i], omega.shape))
        np.testing.assert_array_equal(alone, together[i])
