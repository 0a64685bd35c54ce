"""What plays episodes: one small interface, so that nobody else needs to know how they are played.

Rollouts play batches of episodes for up to 32 runs side by side, each with a policy of its own, and
yield every batch when it is whole. They never learn: `play` calls the function `policies` for the
present policies whenever a batch begins. Training updates them in between, evaluation leaves them
as they are.

`FunctionalRollouts` play environments that are pure JAX functions, `GymnasiumRollouts` play any
Gymnasium environment with discrete actions. What an episode is depends on the policy, the key of
its batch and its place in the batch alone. Nothing is left over from one batch to the next, so a
run can be stopped after any batch and resumed later.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from ..._typing import Integers
from ..episodes import Episodes
from ..network import Policy

__all__ = ["EVERY_LANE", "LAUNCHED_AT_ONCE", "WIDTH", "Played", "Rollouts", "batch_keys", "name_of"]

WIDTH = 32
"""How many lanes there are on a CPU, whether a run is in each of them or not. Matrix products and
exponentials round differently at other widths, and a run must give the same numbers whatever runs
are beside it."""
LAUNCHED_AT_ONCE: Any = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,"
    "DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL",
    "xla_gpu_graph_min_graph_size": 1,
}
"""Options of compiling, which matter on a GPU alone: the small kernels of a program, and its loops,
are launched together. Launched one by one, most of the time of a step is that of launching."""
EVERY_LANE = np.arange(WIDTH, dtype=np.int32)


class Played(NamedTuple):
    """A whole batch of episodes of some lanes."""

    lanes: Integers
    """`[L]`: which lanes have played it. Those without a run may be among them, and numbers of
    lanes that there are not."""
    episodes: Episodes
    """With an axis of `L` lanes first. They may be overwritten when the next are asked for."""
    computed: int = 0
    """How many steps were computed since the last batch that was yielded, steps that count for
    nothing included; 0 if nobody counts them."""


@runtime_checkable
class Rollouts(Protocol):
    """Plays batches of episodes in an environment.

    An object of this kind says how episodes are played and holds nothing that changes, so one
    object serves many threads at once.
    """

    @property
    def n_observations(self) -> int:
        """The size of an observation."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""

    @property
    def max_steps(self) -> int:
        """The step limit of an episode."""

    @property
    def discount(self) -> float:
        """The environment's own discount, or 0.99 where it has none."""

    @property
    def name(self) -> str:
        """Tells the environment from others: a checkpoint is resumed where it is the same."""

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """Play batches of episodes, as many as each run still needs.

        Args:
            policies: gives the present policies of all lanes, a `Policy` whose arrays have an axis
                of lanes first. It is called whenever a batch begins, after everything that
                was yielded before has been dealt with.
            keys: the key of each lane's run, from which `batch_keys` makes that of a batch.
            done: how many batches each run has played before; one number for each lane that has a
                run.
            until: how many batches it will have played at the end.
            batch: how many episodes a batch has.

        Yields:
            A batch of one or more lanes when it is whole. What playing needs is let go of at the
            end, or when the generator is closed.
        """


def batch_keys(keys: jax.Array, numbers: jax.Array) -> jax.Array:
    """The key of a batch of each run, from the keys of the runs and the numbers of the batches."""
    result: jax.Array = jax.vmap(jax.random.fold_in)(keys, numbers)
    return result


def name_of(environment: object) -> str:
    """What a checkpoint calls an environment, to tell it from others.

    An id is its own name. A function, a class or a module has its full name. Anything else has the
    full name of its type, with a digest of the numbers in it, if there are any.

    Examples:
        >>> import numpy as np
        >>> name_of("CartPole-v1"), name_of(np), name_of(np.load)
        ('CartPole-v1', 'numpy', 'numpy.load')
    """
    if isinstance(environment, str):
        return environment
    if inspect.ismodule(environment):
        return environment.__name__
    kind = environment if callable(environment) else type(environment)
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    kinds = (np.ndarray, np.generic, jax.Array, int, float)
    numbers = [x for x in jax.tree.leaves(environment) if isinstance(x, kinds)]
    digest = hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in numbers))
    return f"{name} {digest.hexdigest()[:16]}" if numbers else name
