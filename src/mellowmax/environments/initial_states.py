"""Where episodes begin: the distribution of the initial state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp.validate import ROW_SUM_TOLERANCE

__all__ = ["initial_states"]


def initial_states(mdp: MDP, start: ArrayLike | None) -> tuple[npt.NDArray[np.int32], Floats]:
    """The states where an episode can begin, and their probabilities.

    Args:
        mdp: the model.
        start: a state; `[S]`, a probability for each state; or None for every state that is not
            terminal, with equal probability.

    Raises:
        ValueError: for anything else, and for a state where the episode is over already.
    """
    if start is None:
        states = np.flatnonzero(~mdp.terminal)
        if not states.size:
            raise ValueError("`mdp` must have a state that is not terminal, got none")
        probabilities = np.full(states.size, 1 / states.size)
    elif checks.array("start", start).ndim == 0:
        states = np.array([checks.whole("start", start, 0, mdp.n_states - 1)])
        probabilities = np.ones(1)
    else:
        given = checks.numbers("start", start)
        if given.shape != (mdp.n_states,):
            rule = f"`start` must be a state or have the shape ({mdp.n_states},)"
            raise ValueError(f"{rule}, got {given.shape}")
        checks.raise_where(~(given >= 0), "`start` must not be negative", given)  # NaN too
        if not abs(given.sum() - 1) <= ROW_SUM_TOLERANCE:
            raise ValueError(f"`start` must sum to 1, got {given.sum():.10g}")
        states = np.flatnonzero(given)
        probabilities = given[states] / given.sum()
    ends = states[mdp.terminal[states]]
    if ends.size:
        raise ValueError(f"`start` must be where no episode ends, got state {ends[0]}")
    return states.astype(np.int32), probabilities
