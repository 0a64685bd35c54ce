"""The loop of a learner in an environment."""

from __future__ import annotations

from ..dqn import Dqn
from ..reinforce import Reinforce
from ..rollouts.functional import FunctionalRollouts
from ..rollouts.gymnasium import GymnasiumRollouts
from ..rollouts.rollouts import Rollouts
from .batches import BatchLoop
from .compiled import CompiledLoop
from .loop import Loop
from .stepped import SteppedLoop

__all__ = ["make_loop"]


def make_loop(learner: Reinforce | Dqn, rollouts: Rollouts) -> Loop:
    """How a learner plays and learns in an environment.

    Raises:
        ValueError: for rollouts of one's own, which play whole episodes, and a learner that learns
            while it plays.
    """
    if isinstance(learner, Reinforce):
        return BatchLoop(rollouts, learner.batch)
    if isinstance(rollouts, FunctionalRollouts):
        return CompiledLoop(rollouts, learner)
    if isinstance(rollouts, GymnasiumRollouts):
        return SteppedLoop(rollouts)
    rule = "`environment` must be a functional one or Gymnasium's for `dqn`, which learns while it"
    raise ValueError(f"{rule} plays, got {rollouts!r}")
