"""The search for the temperature of mellowmax's policy."""

from __future__ import annotations

import numpy as np

import mellowmax as mm
from awkward import awkward_rows
from mellowmax._rows import root


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
