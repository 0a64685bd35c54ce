"""What the players of segments share: learning from a segment, and its round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..._typing import PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..episodes import Round
from ..ppo import Ppo, PpoState
from ..segments import Segment
from .player import DivergedError

__all__ = ["learn", "round_of"]


def learn(
    learner: Ppo, state: PpoState, key: jax.Array, segment: Segment
) -> tuple[PpoState, jax.Array]:
    """What a run has learned after a segment, and whether all of it is finite.

    Args:
        learner: the learner of the run.
        state: what it has learned before.
        key: the key of the run.
        segment: the segment.
    """
    of_segment = random_keys.segment(random_keys.learning(key), state.updates)
    learned = learner.update(state, segment, of_segment)
    finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(learned)]
    return learned, jnp.stack(finite).all()


def round_of(
    block: BlockState,
    learners: Ppo,
    learned: tuple[PyTree, PyTree, jax.Array],
    ended: npt.ArrayLike,
    returns: npt.ArrayLike,
    lengths: npt.ArrayLike,
) -> Round:
    """The round of a segment of every lane that has not trained enough.

    Args:
        block: what was before.
        learners: those of all lanes.
        learned: what all lanes have learned by then, the episodes under way, and whether what a
            lane has learned is finite, `[W]`.
        ended: has an episode ended with a step? `[W, T, E]`.
        returns: the sum of the rewards of its episode so far, `[W, T, E]`.
        lengths: the length of its episode so far, `[W, T, E]`.

    Raises:
        FloatingPointError: when it is not.
    """
    log, (states, playing, finite) = block.log, learned
    ends, totals, counts = map(np.asarray, (ended, returns, lengths))
    active = np.zeros(len(ends), np.bool_)
    active[: len(log.done)] = log.unfinished()
    taken = learners.environments * learners.steps
    if (wrong := active & ~np.asarray(finite)).any():
        lane = int(wrong.argmax())
        when = f"after {log.taken[lane] + taken} steps"
        raise DivergedError(block.first + lane, "weight or a reward", when)
    at = lanes, *_ = np.nonzero(ends & active[:, None, None])  # in the order of their ends
    return Round(
        lanes.astype(np.int32),
        computed=ends.size,
        returns=totals[at][:, None],
        lengths=counts[at][:, None],
        states=states,
        playing=playing,
        steps=np.where(active, taken, 0),
    )
