"""The multi-passenger taxi of section 7.2 as an environment."""

from __future__ import annotations

from collections.abc import Sequence

from ..mdp import multi_passenger_taxi
from ..mdp.taxi import GRID, TaxiGrid
from . import tabular
from .tabular import observe, reset, step

__all__ = ["observe", "params", "reset", "step"]


def params(
    grid: Sequence[str] | str = GRID,
    *,
    slip: float = 0.1,
    rewards: Sequence[float] = (0.0, 1.0, 3.0, 15.0),
    discount: float = 0.99,
) -> tabular.Params:
    """The parameters of `mellowmax.mdp.multi_passenger_taxi` as an environment that begins in S.

    Examples:
        >>> params()
        Params(states=264, actions=4, starts=1)
    """
    mdp = multi_passenger_taxi(grid, slip=slip, rewards=rewards, discount=discount)
    return tabular.params(mdp, start=TaxiGrid.parse(grid).start_state)
