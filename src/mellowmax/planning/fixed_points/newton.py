"""Newton's method for the fixed points of one MDP, and the box of values that holds them all.

A step of Newton's method for `v = f(q(v))` solves `(I - J) step = f(q(v)) - v`. Where `f` is the
maximum that is policy iteration: `I - J` belongs to the greedy policy, and the step goes to the
value of it.

The value of an attained softmax is an average of action values, so that it lies between their
minimum and their maximum. Both of these give monotone sweeps with one fixed point each, and every
fixed point of `f` lies between the two: in a box that the sweep maps into itself.

With a bonus `B`, a fixed point is what its policy earns and the expected discounted sum of the
bonuses that it is paid. So it lies in the box widened by the largest and the smallest bonus, each
times the largest expected discounted number of steps from that state. A bonus is at most
`Softmax.largest_bonus`. It is at least `-Softmax.gap`, since the policy earns the maximum at most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._fixed_points.newton import undamped_newton
from ..._typing import Floats
from ...softmax import Max, Mellowmax, Softmax
from .sweep_map import SweepMap

__all__ = [
    "EXTREMES",
    "BonusRange",
    "Box",
    "bonus_range",
    "box",
    "counting_steps",
    "only_fixed_point",
]

EXTREMES: tuple[Softmax, Softmax] = (Mellowmax(-np.inf), Max())
"""The minimum and the maximum, whose fixed points are the ends of the box."""


class Box(NamedTuple):
    """Between what the fixed points of each state lie, `[S]`."""

    low: Floats
    high: Floats
    proved: bool
    """Do they? Not for sure where a softmax gives no bound on its bonus."""


def box(model: SweepMap, *softmaxes: Softmax) -> Box:
    """What any policy gives each state at least and at most, with the bonus of any softmax."""
    lowest, highest = (only_fixed_point(model, extreme) for extreme in EXTREMES)
    low, high, proved = lowest, highest, True
    for softmax in softmaxes:
        if not softmax.attained:
            paid = bonus_range(model, softmax, [softmax], lowest, highest)
            steps = only_fixed_point(counting_steps(model), Max())
            low = np.minimum(low, lowest + paid.least * steps)
            high = np.maximum(high, highest + paid.most * steps)
            proved = proved and paid.proved
    return Box(low, high, proved)


class BonusRange(NamedTuple):
    """The least and the largest bonus of a softmax, `[N]`: one for each of N MDPs."""

    least: Floats
    most: Floats
    proved: bool
    """Are they bounds, or only what was seen?"""


def counting_steps(model: SweepMap) -> SweepMap:
    """The model with a reward of 1 for each step: its values are expected numbers of steps."""
    live = np.where(model.terminal, 0.0, 1.0)[..., None]
    return dataclasses.replace(model, rewards=np.broadcast_to(live, model.rewards.shape))


def bonus_range(
    model: SweepMap, softmax: Softmax, each: Sequence[Softmax], low: Floats, high: Floats
) -> BonusRange:
    """The bonuses of a softmax, by its own bounds; where it has none, those seen in the box.

    Args:
        model: of one MDP, or of N of them.
        softmax: with parameters that fit the model's state values.
        each: the softmax of each MDP.
        low: `[S]`, or `[N, S]`, the lower end of the box of what policies earn.
        high: the upper end.
    """
    n_actions = model.rewards.shape[-1]
    least = np.array([-one.gap(n_actions) for one in each])
    most = np.array([max(one.largest_bonus(n_actions), 0.0) for one in each])
    bounded = np.isfinite(least) & np.isfinite(most)
    if not bounded.all():
        equal = np.zeros(model.rewards.shape)
        seen = [softmax.bonus(q, where=model.allowed) for q in (model.q(low), model.q(high), equal)]
        least = np.where(bounded, least, np.minimum(np.min(seen, axis=(0, -1)), 0.0))
        most = np.where(bounded, most, np.maximum(np.max(seen, axis=(0, -1)), 0.0))
    return BonusRange(least, most, bool(bounded.all()))


def only_fixed_point(model: SweepMap, softmax: Softmax) -> Floats:
    """The state values of the one fixed point of a softmax that is a non-expansion, `[S]`.

    Newton's method converges from anywhere for every convex or concave softmax. For others it is
    tried again after more and more sweeps, which contract and so lead near to the fixed point.
    """
    v, sweep = np.zeros(len(model.rewards)), model.under(softmax)
    for sweeps in (0, 100, 1_000, 10_000):
        for _ in range(sweeps):
            v = v + sweep.residual(v)
        v, done = undamped_newton(sweep, v)
        if done:
            break
    return v
