"""Is there one gain? What never ends, and comes to one set of states."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..._typing import Bools, Floats
from ...mdp import MDP, labels
from ...mdp.operator import Operator
from ..linear.transitions import rows_of
from ..problem import TOLERANCE

__all__ = ["check_never_ends", "check_one_closed_set", "closed_sets", "raise_several_gains"]

UNICHAIN = "`mdp` must be unichain for an average reward"


def check_never_ends(mdp: MDP) -> None:
    """Raise if an episode can end."""
    rule = "`mdp` must go on forever for an average reward"
    if mdp.terminal.any():
        raise ValueError(
            f"{rule}, got the terminal {mdp.name_of_state(int(mdp.terminal.argmax()))}"
        )
    ends = mdp.available & (mdp.goes_on < 1 - TOLERANCE)
    if ends.any():
        state, action = divmod(int(ends.argmax()), mdp.n_actions)
        named = labels.named("action", action, mdp.action_labels)
        raise ValueError(f"{rule}, got an end in {mdp.name_of_state(state)}, {named}")


def check_one_closed_set(mdp: MDP) -> None:
    """Raise if there are two sets of states that no action leaves; an operator is not known."""
    if isinstance(mdp.probabilities, Operator):
        return
    closed = closed_sets(mdp, mdp.available)
    if len(closed) > 1:
        one, other = sorted(int(members[0]) for members in closed[:2])
        names = f"with {mdp.name_of_state(one)} and with {mdp.name_of_state(other)}"
        raise ValueError(f"{UNICHAIN}, got two sets of states that nothing leaves, {names}")


def raise_several_gains(mdp: MDP, change: Floats) -> NoReturn:
    """Raise where the change `[S]` of sweeps has come to rest."""
    low, high = int(change.argmin()), int(change.argmax())
    least = f"{change[low]:.6g} from {mdp.name_of_state(low)}"
    most = f"{change[high]:.6g} from {mdp.name_of_state(high)}"
    raise ValueError(f"{UNICHAIN}, got {least} and {most}")


def closed_sets(mdp: MDP, taken: Bools) -> list[npt.NDArray[Any]]:
    """The sets of states that nothing leaves, with the actions `[S, A]` that are taken.

    From everywhere a policy that takes all of these comes to one of them, and stays there.
    """
    graph = _graph(mdp, taken)
    _, of_state = connected_components(graph, directed=True, connection="strong")
    leads_from = of_state[np.repeat(np.arange(mdp.n_states), np.diff(graph.indptr))]
    is_left = np.zeros(of_state.max() + 1, np.bool_)
    is_left[leads_from[leads_from != of_state[graph.indices]]] = True
    return [np.flatnonzero(of_state == number) for number in np.flatnonzero(~is_left)[:2]]


def _graph(mdp: MDP, taken: Bools) -> csr_array:
    """Which state may lead to which."""
    if mdp.successors is None:
        return csr_array(((mdp.probabilities > 0) & taken[..., None]).any(1))
    rows = rows_of(mdp)
    counts = np.diff(rows.indptr)
    leads = rows.indices[np.repeat(taken.reshape(-1), counts)]
    starts = np.zeros(mdp.n_states + 1, rows.indptr.dtype)
    np.cumsum((counts.reshape(taken.shape) * taken).sum(1), out=starts[1:])
    shape = (mdp.n_states, mdp.n_states)
    return csr_array((np.ones(len(leads), np.bool_), leads, starts), shape)
