"""Training many runs at once: blocks of runs side by side, each with a source of episodes."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.runs import (
    gather_settings,
    key_data,
    run_keys,
    run_numbers,
    setting_of_each_run,
    settings_shape,
)
from .._common.threads import cores, side_by_side
from .._rows.arguments import check_parameter
from ..environments import tabular
from ..mdp import MDP
from .checkpoint import Stand, described, load, path_of, save
from .network import Policy
from .reinforce import Reinforce, State
from .result import Progress, Training
from .rollouts.functional import Functional
from .rollouts.gymnasium import Vector
from .rollouts.rollouts import WIDTH, Source

__all__ = ["source_of", "train"]

IN_FLIGHT = 2
"""How many blocks for each core are under way: while one learns or waits, others play."""
INITIAL = 2**32 - 1
"""What a run's key is folded with for its first weights; batches have the numbers from 0 on."""


def train(
    learner: Reinforce,
    environment: Any,
    *,
    episodes: int,
    runs: int | Sequence[int] = 1,
    seed: Any = 0,
    max_steps: int | None = None,
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    seconds_between_checkpoints: float = 2.0,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Training:
    """Let runs learn in an environment, for every setting.

    The learner's parameters, learning rates and discounts may be arrays: they broadcast to a grid
    of settings, and every setting has the same `runs`. What a run learns depends on its setting,
    its seed and its number alone, bit for bit: not on the settings and runs beside it, nor on when
    it was stopped and gone on with.

    Args:
        learner: from `reinforce`.
        environment: the parameters of a functional environment, such as `taxi.params()` of
            `mellowmax.environments`, or an `MDP`; the id of a Gymnasium environment with discrete
            actions, or a function without arguments that makes one.
        episodes: how many a run plays: a multiple of the learner's batch.
        runs: how many, or their numbers.
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
        workers: how many processes the Gymnasium environments of 32 runs are spread over; 0 for
            this process, None for what suits the cores.
        checkpoint: a directory where what has been learned is kept; a run whose checkpoint is there
            is gone on with. Nothing is lost but the last seconds when the process is killed.
        seconds_between_checkpoints: how often.
        callback: is called after each batch of episodes; what returns True stops, and the episodes
            that were not played have the return NaN.

    Returns:
        The returns and lengths of all episodes, and the policies.

    Raises:
        ValueError: for an argument that does not fit, such as a checkpoint of another training.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.deep import reinforce, train
        >>> train(reinforce(Mellowmax(5.0)), "CartPole-v1", episodes=20, runs=3, workers=0)
        Training(returns=(3, 20), lengths=(3, 20))
    """
    if not isinstance(learner, Reinforce):
        raise ValueError(f"`learner` must be made by `reinforce`, got {learner!r}")
    n_episodes = checks.whole("episodes", episodes, learner.batch)
    if n_episodes % learner.batch:
        rule = f"`episodes` must be a multiple of the batch of {learner.batch}"
        raise ValueError(f"{rule}, got {episodes}")
    check_parameter("seconds_between_checkpoints", seconds_between_checkpoints, 0.0)
    if not (callback is None or callable(callback)):
        raise ValueError(f"`callback` must be a function or None, got {callback!r}")
    settings = settings_shape([np.shape(x) for x in jax.tree.leaves(learner)])
    numbers = run_numbers(runs)
    setting = setting_of_each_run(settings, len(numbers))
    lanes = _Lanes(
        jax.tree.map(lambda leaf: gather_settings(leaf, settings, setting), learner),
        key_data(seed, settings)[setting],
        np.tile(numbers, len(setting) // len(numbers)),
    )
    firsts = range(0, len(setting), WIDTH)
    at_once = min(IN_FLIGHT * cores(), len(firsts))
    if workers is None:
        workers = max(1, cores() // at_once)
    open_source = functools.partial(source_of, environment, max_steps, workers)
    source = open_source()  # which says what is wrong before any work
    source.close()
    keeper = None
    if checkpoint is not None:
        Path(checkpoint).mkdir(parents=True, exist_ok=True)
        keeper = _Keeper(Path(checkpoint), environment, seconds_between_checkpoints)
    blocks = [
        _Block(lanes.of_block(at), at, min(WIDTH, len(setting) - at), source, n_episodes, keeper)
        for at in firsts
    ]
    teller = _Teller(callback, [block.stand for block in blocks], learner.batch)

    def run(block: _Block) -> None:
        with contextlib.closing(open_source()) as source:
            block.run(source, teller)

    side_by_side(run, blocks, at_once, teller.stop)
    return _gathered(blocks, (*settings, len(numbers)))


def source_of(environment: Any, max_steps: int | None = None, workers: int = 0) -> Source:
    """Where the episodes of an environment come from: the arguments are those of `train`."""
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    if not isinstance(environment, tabular.Params):
        return Vector(environment, workers=workers, max_steps=max_steps)
    if environment.allowed is not None:
        rule = "`environment` must allow every action in every state"
        raise ValueError(f"{rule}, got {environment}, which does not")
    return Functional(tabular, environment, *([] if max_steps is None else [max_steps]))


class _Lanes(NamedTuple):
    """Every run of every setting, the runs of a setting side by side."""

    learners: Reinforce
    key_data: Any
    numbers: Any

    def of_block(self, first: int) -> _Lanes:
        """The lanes from one on; a block that is not full repeats its last."""
        chosen = np.minimum(first + np.arange(WIDTH), len(self.numbers) - 1)
        return jax.tree.map(lambda x: x[chosen], self)  # type: ignore[no-any-return]


class _Keeper(NamedTuple):
    """Where checkpoints are written, and how often."""

    directory: Path
    environment: Any
    seconds: float


class _Block:
    """A block of runs: what they have learned, and its checkpoint."""

    def __init__(
        self,
        lanes: _Lanes,
        first: int,
        runs: int,
        source: Source,
        episodes: int,
        keeper: _Keeper | None,
    ) -> None:
        self.learners = jax.tree.map(jnp.asarray, lanes.learners)
        self.keys = run_keys(jnp.asarray(lanes.key_data), jnp.asarray(lanes.numbers))
        self.episodes = episodes
        sizes = (source.n_observations, source.n_actions)
        states = _init(self.learners, self.keys, *sizes)
        self.stand = Stand.begin(states, runs, episodes)
        self.keeper = keeper
        if keeper is not None:
            self.path = path_of(keeper.directory, first)
            self.description = described(
                lanes.learners, keeper.environment, lanes.key_data, lanes.numbers, source
            )
            if self.path.exists():
                self.stand = load(self.path, self.description, self.stand)

    def run(self, source: Source, teller: _Teller) -> None:
        """Play on from where the block stands to the end, or until it is stopped."""
        stand, batch = self.stand, self.learners.batch
        advances = source.advance(
            self.learners, stand.states, self.keys, list(stand.done), self.episodes // batch
        )
        saved = -math.inf  # the first batch is kept at once
        for advance in advances:
            stand.take(advance, batch)
            stopped = teller.tell()
            if self.keeper is not None and time.monotonic() - saved >= self.keeper.seconds:
                save(self.path, self.description, stand)
                saved = time.monotonic()
            if stopped:
                break
        if self.keeper is not None:
            save(self.path, self.description, stand)

    def policies(self) -> Policy:
        """Those of the lanes that have a run."""
        policies = self.learners.policy(self.stand.states)
        runs = len(self.stand.done)
        return jax.tree.map(lambda x: np.asarray(x)[:runs], policies)  # type: ignore[no-any-return]


class _Teller:
    """Tells the callback how far all blocks have come, and the blocks when to stop."""

    def __init__(
        self, callback: Callable[[Progress], bool | None] | None, stands: list[Stand], batch: int
    ) -> None:
        self._callback, self._stands, self._batch = callback, stands, batch
        self._total = sum(stand.returns.size for stand in stands)
        self._before = self._count()
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = False

    def tell(self) -> bool:
        """Some batches have been played. Is it time to stop?"""
        with self._lock:
            if self._callback is not None and not self._stopped:
                self._stopped = bool(self._callback(self._progress()))
            return self._stopped

    def stop(self) -> None:
        """Let every block stop after its batch."""
        self._stopped = True

    def _count(self) -> int:
        return self._batch * sum(sum(stand.done) for stand in self._stands)

    def _progress(self) -> Progress:
        last = [
            stand.returns[lane, (done - 1) * self._batch : done * self._batch].mean()
            for stand in self._stands
            for lane, done in enumerate(stand.done)
            if done
        ]
        return Progress(
            episodes=self._count(),
            total=self._total,
            mean_return=float(np.mean(last)),
            seconds=time.monotonic() - self._since,
            played=self._count() - self._before,
        )


@functools.partial(jax.jit, static_argnums=(2, 3))
def _init(learners: Reinforce, keys: Any, n_observations: int, n_actions: int) -> State:
    def one(learner: Reinforce, key: Any) -> State:
        return learner.init(jax.random.fold_in(key, INITIAL), n_observations, n_actions)

    states: State = jax.vmap(one)(learners, keys)
    return states


def _gathered(blocks: list[_Block], shape: tuple[int, ...]) -> Training:
    """The runs of all blocks, with the axes of settings and runs first."""

    def joined(*parts: Any) -> Any:
        whole = np.concatenate(parts)
        return whole.reshape(*shape, *whole.shape[1:])

    return Training(
        joined(*(block.stand.returns for block in blocks)),
        joined(*(block.stand.lengths for block in blocks)),
        jax.tree.map(joined, *(block.policies() for block in blocks)),
    )
