"""What a player is: it plays episodes for a block of runs, in a way that suits its learner.

All players have the same verbs: `width` is the number of lanes that play side by side, `begin`
makes their first episodes, and `play` goes on, round by round. After every round the caller takes
over the states, logs the episodes that have ended, reports, and saves the states, from which `play`
can go on later.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import jax
import numpy as np

from ..._typing import PyTree
from .. import keys
from ..checkpoint import BlockState
from ..environment import PlayableEnvironment, observation_of
from ..episodes import Round
from ..learner import Learner

if TYPE_CHECKING:
    from ..replay import ReplayState

__all__ = [
    "DivergedError",
    "EVERY_LANE",
    "LAUNCHED_AT_ONCE",
    "WIDTH",
    "Player",
    "check_finite",
    "first_states",
    "room",
]

WIDTH = 32
"""The number of lanes on a CPU, even where some have no run. Matrix products and exponentials round
differently at other widths, and a run must give the same numbers whatever other runs there are."""
EVERY_LANE = np.arange(WIDTH, dtype=np.int32)
LAUNCHED_AT_ONCE: dict[str, str | int] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,"
    "DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL",
    "xla_gpu_graph_min_graph_size": 1,
}
"""Compiler options, which matter on a GPU alone: the small kernels of a program, and its loops, are
launched together. Launched one by one, a step would spend most of its time on launches."""
SHARE_OF_MEMORY = 0.25
"""The part of an accelerator's memory that a block may use for episodes or replay buffers."""


class DivergedError(FloatingPointError):
    """A weight, a return or a reward of a run is not finite any more."""

    def __init__(self, lane: int, what: str, when: str) -> None:
        self.lane = lane
        """The number of the run, counted over all runs of all settings."""
        super().__init__(
            f"the training has diverged: run {lane} has a {what} that is not finite {when}; "
            "a smaller learning rate may help"
        )


LearnerT = TypeVar("LearnerT", contravariant=True)


class Player(Protocol[LearnerT]):
    """Plays for a block of runs, each in a lane of its own, and lets them learn."""

    @property
    def environment(self) -> PlayableEnvironment:
        """The environment that is played in."""

    def width(self, learner: LearnerT, lanes: int, devices: Sequence[jax.Device]) -> int:
        """The number of lanes of a block.

        Args:
            learner: the learner of all lanes.
            lanes: the number of lanes of all blocks.
            devices: those that share the blocks.
        """

    def begin(self, keys: jax.Array, learner: LearnerT) -> PyTree:
        """The first episodes of a block, as they are saved: arrays with an axis of lanes first.

        None for a player of whole episodes, which has none under way between two rounds.

        Args:
            keys: the keys of the lanes' runs.
            learner: the learner of all lanes.
        """

    def play(self, learners: LearnerT, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn until each run has trained enough, as the block's log says.

        Args:
            learners: those of all lanes.
            keys: the keys of their runs.
            block: where it begins. The caller puts the states and episodes of a round in here
                before it asks for the next one, which may overwrite the states of the round before.

        Raises:
            FloatingPointError: when a run has diverged. The block is as it was before that.
        """


def first_states(learners: Learner, runs: jax.Array, environment: PlayableEnvironment) -> PyTree:
    """The initial states of the learners of a block, by the keys of their runs."""
    leaves, tree = jax.tree.flatten(observation_of(environment))
    return _first_states(learners, runs, tree, tuple(leaves), environment.n_actions)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _first_states(
    learners: Learner,
    runs: jax.Array,
    tree: jax.tree_util.PyTreeDef,
    leaves: tuple[jax.ShapeDtypeStruct, ...],
    n_actions: int,
) -> PyTree:
    observation = jax.tree.unflatten(tree, leaves)

    def one(learner: Learner, run: jax.Array) -> PyTree:
        return learner.init(keys.first_weights(run), observation, n_actions)

    return jax.vmap(one)(learners, runs)


def room(device: jax.Device) -> float:
    """How many bytes of an accelerator's memory a block may use for episodes or buffers."""
    memory = (device.memory_stats() or {}).get("bytes_limit", 1 << 33)
    return float(SHARE_OF_MEMORY * memory)


def check_finite(states: ReplayState, block: BlockState) -> None:
    """Raise if a run of a block has diverged, as the states of learners of single steps say."""
    wrong = ~np.asarray(states.finite)[: len(block.log.done)]
    if wrong.any():
        lane = int(wrong.argmax())
        steps = int(np.asarray(states.replay.count)[lane])
        raise DivergedError(block.first + lane, "weight or a reward", f"after {steps} steps")
