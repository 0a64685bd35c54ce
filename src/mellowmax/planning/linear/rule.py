"""Which form of the matrix suits which MDP."""

from __future__ import annotations

import numpy as np

from ...mdp import MDP
from ...mdp.operator import Operator
from .banded import Banded
from .dense import Dense
from .entries import entries_of
from .form import Form
from .gauss_seidel import GaussSeidel
from .transitions import once, rows_of

__all__ = ["FEW_STATES", "direct_form", "is_numbered", "swept_form"]

FEW_STATES = 400
"""The most states for which the matrix is dense: its factorisation takes about a millisecond."""
SAMPLE = 2000
"""The number of pairs of a state and an action that are looked at."""
NEAR = 1 / 16
"""A step is to a near state if it is no further than this part of all states."""
ALONE = 3 / 4
"""States are taken as numbered at random if at least this part of the probability leads to far
states that hardly anything else leads to."""


@once
def direct_form(mdp: MDP) -> Form | None:
    """The form for which a factorisation is quick; None where there is none."""
    if isinstance(mdp.probabilities, Operator):
        return None
    if mdp.n_states <= FEW_STATES:
        return Dense.of(mdp)
    return Banded.of(mdp) if mdp.successors is not None else None


@once
def swept_form(mdp: MDP) -> GaussSeidel:
    """The form of a sparse MDP for sweeps through the states."""
    return GaussSeidel(entries_of(mdp), mdp.discount)


@once
def is_numbered(mdp: MDP) -> bool:
    """Do the numbers of the states of a sparse MDP have a meaning, as far as a sample shows?

    If most steps lead to near states, or to some that many lead to, sweeps in the order of the
    numbers carry values far. If they lead anywhere, as at random, they do not.
    """
    rows, n = rows_of(mdp), mdp.n_states
    step = max(1, rows.shape[0] // min(SAMPLE, max(20, n // (10 * mdp.n_branches))))
    sample = rows[::step]
    states = np.repeat(np.arange(0, rows.shape[0], step) // mdp.n_actions, np.diff(sample.indptr))
    far = np.abs(sample.indices - states) > NEAR * n
    leads, mass = sample.indices[far], sample.data[far]
    alone = np.bincount(leads, minlength=n)[leads] <= 2
    return float(mass[alone].sum()) < ALONE * float(sample.data.sum())
