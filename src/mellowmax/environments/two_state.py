"""The two-state MDP of figure 1 as an environment."""

from __future__ import annotations

from ..mdp import two_state
from . import tabular
from .tabular import observe, reset, step

__all__ = ["observe", "params", "reset", "step"]


def params(*, printed: bool = False, discount: float = 0.98) -> tabular.Params:
    """The parameters of `mellowmax.mdp.two_state` as an environment that begins in s1.

    Examples:
        >>> params()
        Params(states=2, actions=2, starts=1)
    """
    return tabular.params(two_state(printed=printed, discount=discount), start=0)
