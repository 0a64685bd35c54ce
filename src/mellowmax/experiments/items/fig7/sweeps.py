"""How many sweeps value iteration takes on the two-state MDP, by two rules for its end.

By the rule of Algorithm 2, a sweep is the last one if it changes every value by less than a
tolerance. By the other rule, it is the last one if every value is then within a tolerance of its
limit. The two differ where sweeps change little: there, small changes add up to a long way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...._typing import Bools, Floats
from ....mdp import MDP
from ....planning.batch import Batch, value_iteration
from ....softmax import SOFTMAXES, Softmax
from ...data import OPERATORS

__all__ = ["RULES", "SWEEPS", "count_sweeps"]

RULES = ("change", "distance")
"""When a run ends: a sweep changes little, or the values are near their limits."""
SWEEPS = ("in-place", "synchronous")
"""Each value replaced at once, as in Algorithm 2, or all of a sweep together."""

_END = 1e-12  # after a sweep that changes less, the values are taken for their limits
_TIMES = 10  # as many times the most sweeps, to find the limits


def count_sweeps(
    mdp: MDP,
    operator: str,
    parameters: Floats,
    initial: Floats,
    *,
    tolerances: list[float],
    limit: int,
    rule: str = "change",
    sweeps: str = "in-place",
) -> npt.NDArray[np.int64]:
    """Sweeps until a run ends, `[tolerances, runs]`; `limit` for those that reach it.

    Args:
        mdp: the two-state MDP.
        operator: the paper's name of it: max, boltz or mm.
        parameters: of each run.
        initial: the initial values of s1, `[runs, 2]`.
        tolerances: the paper's delta, or the distance from the limits, in descending order.
        limit: the most sweeps.
        rule: one of `RULES`.
        sweeps: one of `SWEEPS`.
    """
    batch = Batch.of([mdp])[np.zeros(len(parameters), np.int64)]

    def run(least: list[float], most: int) -> tuple[npt.NDArray[np.int64], Bools, Floats]:
        result = value_iteration(
            batch,
            _softmax(operator, parameters),
            tolerances=least,
            initial=initial[:, None],
            max_iterations=most,
            method=sweeps,
        )
        return result.iterations.astype(np.int64), result.converged, result.q[:, 0]

    if rule == "change":
        counts, converged, _ = run(tolerances, limit)
    else:
        _, (ended,), ends = run([_END], _TIMES * limit)
        counts = _until_near(mdp, operator, parameters, initial, ends, tolerances, limit, sweeps)
        converged = ended & (counts > 0)
    return np.where(converged, counts, limit)


def _softmax(operator: str, parameters: Floats) -> Softmax:
    kind = SOFTMAXES[OPERATORS[operator]]
    return kind() if operator == "max" else kind(parameters)  # type: ignore[call-arg]


def _until_near(
    mdp: MDP,
    operator: str,
    parameters: Floats,
    initial: Floats,
    ends: Floats,
    tolerances: list[float],
    limit: int,
    sweeps: str,
) -> npt.NDArray[np.int64]:
    """Sweeps until the larger distance from the limits is below each tolerance, 0 for never."""
    counts = np.zeros((len(tolerances), len(parameters)), np.int64)
    rising = np.asarray(tolerances)[::-1]
    met = np.zeros(len(parameters), np.int64)  # how many tolerances each run has met
    left, q = np.arange(len(parameters)), np.array(initial, np.float64)
    for done in range(1, limit + 1):
        q = _sweep(mdp, _softmax(operator, parameters[left]), q, sweeps)
        away = abs(q - ends[left]).max(-1)
        now = len(rising) - np.searchsorted(rising, away, side="right")
        further = now > met[left]
        for run, first, last in zip(left[further], met[left][further], now[further], strict=True):
            counts[first:last, run] = done
        met[left] = np.maximum(met[left], now)
        going = met[left] < len(rising)
        if not going.any():
            break
        left, q = left[going], q[going]
    return counts


def _sweep(mdp: MDP, softmax: Softmax, q: Floats, sweeps: str) -> Floats:
    """One sweep over the two actions of s1, `[runs, 2]`."""
    transitions, rewards = mdp.to_numpy()
    flow = mdp.discount * transitions[0, :, 0]
    if sweeps == "synchronous":
        return np.asarray(rewards[0] + flow * np.asarray(softmax.value(q))[:, None])
    for action in range(q.shape[1]):
        q = q.copy()
        q[:, action] = rewards[0, action] + flow[action] * np.asarray(softmax.value(q))
    return q
