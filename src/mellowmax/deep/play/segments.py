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
    """The round of one or more segments of the lanes that have not trained enough.

    Args:
        block: what was before.
        learners: those of all lanes.
        learned: what all lanes have learned by then, the episodes under way, and whether what a
            lane has learned is finite, `[W]`.
        ended: has an episode ended with a step? `[W, segments, T, E]`.
        returns: the sum of the rewards of its episode so far, `[W, segments, T, E]`.
        lengths: the length of its episode so far, `[W, segments, T, E]`.

    Raises:
        FloatingPointError: when it is not.
    """
    log, (states, playing, finite) = block.log, learned
    ends, totals, counts = map(np.asarray, (ended, returns, lengths))
    runs, of_segment = len(log.done), learners.environments * learners.steps
    before, after = (
        np.asarray(x.updates).astype(np.int64) * of_segment for x in (block.states, states)
    )
    if (wrong := ~np.asarray(finite)[:runs]).any():
        lane = int(wrong.argmax())
        raise DivergedError(block.first + lane, "weight or a reward", f"after {after[lane]} steps")
    at = lanes, *_ = np.nonzero(ends)  # in the order of their ends
    return Round(
        lanes.astype(np.int32),
        computed=ends.size,
        returns=totals[at][:, None],
        lengths=counts[at][:, None],
        states=states,
        playing=playing,
        steps=after - before,
    )
