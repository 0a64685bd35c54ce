"""A reader's own MDP for the page.

One with a single state that is not terminal, and two actions in it, has the form of figure 1: the
page computes with it as with the paper's. For any other the library solves it for parameters over a
range, and the page shows values, policies and inverse temperatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._common import checks
from .._typing import Floats
from ..mdp import MDP
from ..policies import mellowmax_temperature
from ..softmax import Boltzmann, Mellowmax, Softmax
from .numbers import percent, rounded
from .page import Block

__all__ = ["LEVELS", "MOST_NUMBERS", "model"]

MOST_NUMBERS = 20_000
"""Pairs of a state and an action of a model that a page can show."""
LARGEST_VALUE = 1e100
"""The largest value of such a model: sums and squares of larger ones overflow."""
LEVELS = 25
"""How many parameters it is solved for."""
LARGEST_DISCOUNT = 0.999
LARGEST_REWARD = 1000.0
"""What the page can scrub to."""

Report = Callable[[float], None]


def model(mdp: MDP, name: str, report: Report = lambda share: None) -> Block:
    """The block of the page for an MDP.

    Args:
        mdp: the model.
        name: what the page calls it.
        report: called with the share that is done, from 0 to 1.

    Raises:
        ValueError: for a model that is too large to be shown, or whose values are.

    Examples:
        >>> from mellowmax.mdp import two_state
        >>> model(two_state(), "figure 1")["kind"]
        'two-state'
    """
    checks.instance("mdp", mdp, MDP, "an MDP")
    checks.text("name", name)
    checks.function("report", report)
    return _live(mdp, name) or _solved(mdp, name, report)


def _live(mdp: MDP, name: str) -> Block | None:
    """The MDP in the form that the page computes with; None if it has another form."""
    states = np.flatnonzero(~mdp.terminal)
    if len(states) != 1 or mdp.discount > LARGEST_DISCOUNT:
        return None
    [state] = states.tolist()
    actions = np.flatnonzero(mdp.available[state])
    if len(actions) != 2:
        return None
    transitions, _ = mdp.to_numpy()
    a, b = actions.tolist()
    rewards, stays = mdp.expected_rewards[state], transitions[state, :, state]
    numbers = {"ra": rewards[a], "pa": stays[a], "rb": rewards[b], "pb": stays[b]}
    if max(abs(numbers["ra"]), abs(numbers["rb"])) > LARGEST_REWARD:
        return None
    mdp_block = {key: float(value) for key, value in numbers.items()}
    return {"kind": "two-state", "name": name, "mdp": {**mdp_block, "discount": mdp.discount}}


def _solved(mdp: MDP, name: str, report: Report) -> Block:
    pairs = mdp.n_states * mdp.n_actions
    if pairs > MOST_NUMBERS:
        rule = f"`model` must have at most {MOST_NUMBERS} pairs of a state and an action"
        got = f"{mdp.n_states} states and {mdp.n_actions} actions"
        raise ValueError(f"{rule} to be shown, got {got}")
    parameters = _parameters(mdp)
    operators = []
    for half, family in enumerate((Mellowmax, Boltzmann)):
        levels = []
        for i, parameter in enumerate(parameters):
            levels.append(_level(mdp, family(parameter), parameter))
            report((half + (i + 1) / len(parameters)) / 2)
        operators.append({"name": family.__name__, "parameters": parameters, "levels": levels})
    return {
        "kind": "model",
        "name": name,
        "states": mdp.n_states,
        "actions": mdp.n_actions,
        "discount": mdp.discount,
        "terminal": np.flatnonzero(mdp.terminal).tolist(),
        "operators": operators,
    }


def _level(mdp: MDP, softmax: Softmax, parameter: float) -> Block:
    """Values, policies and inverse temperatures at one parameter."""
    from ..planning import solve

    solution = solve(mdp, softmax, throw=False)
    if isinstance(softmax, Mellowmax):
        temperatures = np.asarray(mellowmax_temperature(solution.q, parameter, where=mdp.allowed))
    else:
        temperatures = np.full(mdp.n_states, parameter)
    return {
        "value": rounded(solution.value),
        "policy": percent(solution.policy),
        "temperature": rounded(temperatures),
        "converged": bool(solution.converged),
    }


def _parameters(mdp: MDP) -> Sequence[float]:
    """From nearly the mean to nearly the maximum, by how far apart the optimal values are."""
    from ..planning import solve
    from ..softmax import Max

    q = solve(mdp, Max(), throw=False).q
    q = np.where(mdp.available, q, np.nan)
    live: Floats = q[~mdp.terminal]
    largest = float(np.nanmax(abs(live), initial=0.0))
    if largest > LARGEST_VALUE:
        rule = f"`model` must have values of at most {LARGEST_VALUE:g} to be shown"
        raise ValueError(f"{rule}, got {largest:g}")
    gaps = np.nanmax(live, axis=1) - np.nanmin(live, axis=1) if len(live) else np.zeros(0)
    gaps = gaps[gaps > 1e-9 * max(1.0, largest)]
    gap = float(np.median(gaps)) if len(gaps) else 1.0
    return [float(f"{x:.3g}") for x in np.geomspace(0.1 / gap, 300.0 / gap, LEVELS)]
