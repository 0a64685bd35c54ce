"""Training many runs at once, whatever the learner.

Runs are divided into blocks, and a `Worker` trains each block in a thread. How the runs of a block
play is up to a player, one of four in `play`: the learner learns from whole episodes or from single
steps, and the environment is functional or Gymnasium's. The rest is the same for all of them, and
is here and in `worker`: the grid of settings, the numbering of runs, logs, checkpoints, progress,
and devices. The learner knows nothing of environments.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.locks import only_one
from .._common.parameters import map_parameters, parameter_shapes
from .._common.runs import (
    devices_of,
    gather_settings,
    key_data,
    run_numbers,
    setting_of_each_run,
    settings_shape,
)
from .._common.threads import cores, side_by_side
from .._typing import Integers, Key, Shape
from .dqn import Dqn
from .environment import observation_of
from .environment.argument import Environment, environment_of
from .learner import Learner
from .log import EpisodeLog
from .play import player_of
from .play.player import WIDTH
from .ppo import Ppo
from .progress import ProgressReporter, TrainProgress
from .reinforce import Reinforce
from .result import DeepResult
from .sac import Sac
from .trainable import check_network
from .worker import Checkpoints, Lanes, Worker

__all__ = ["train"]

IN_FLIGHT = 2
"""How many blocks of each core are under way: while one learns or waits, others play."""


def train(
    learner: Reinforce | Dqn | Ppo | Sac | Learner,
    environment: Environment,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    runs: int | Sequence[int] = 1,
    seed: int | Key = 0,
    max_steps: int | None = None,
    bin: int = 1,
    solved_return: float | None = None,
    workers: int | None = None,
    action_mask: bool = False,
    devices: Sequence[jax.Device] | None = None,
    checkpoint: str | Path | None = None,
    seconds_between_checkpoints: float = 2.0,
    callback: Callable[[TrainProgress], bool | None] | None = None,
) -> DeepResult:
    """Train a learner in an environment, with many runs of every setting.

    The learner's parameters, learning rates and discounts may be arrays: they broadcast to a grid
    of settings, and every setting has the same `runs`. The numbers of a run depend only on its
    setting, its seed and its number, bit for bit: not on other settings and runs, nor on when it
    was stopped and resumed.

    Args:
        learner: from `reinforce`, `dqn`, `ppo` or `sac`.
        environment: the parameters of a functional environment of the library, such as
            `taxi.params()` of `mellowmax.environments`, or an `MDP`; the id of a Gymnasium
            environment with discrete actions, or a function without arguments that makes one; or a
            `FunctionalEnvironment` of your own functions, a `GymnasiumEnvironment`, a
            `VectorEnvironment`, or an object that plays its own episodes as `Rollouts` do.
        episodes: episodes of each run; for `reinforce`, a multiple of the learner's batch. None if
            `steps` are given, as they must be for `ppo`.
        steps: steps of each run, unfinished episodes included. A run of `reinforce` ends with the
            batch in which it has taken that many, one of `ppo` with the segment. None if `episodes`
            are given.
        runs: how many, or their numbers.
        seed: a whole number, a JAX key, or keys that broadcast to the grid of settings.
        max_steps: the step limit of an episode; None for the environment's own, or 1000.
            The classes above have their own.
        bin: how many episodes share an entry of the result, which is their mean: 1, or a multiple
            of the batch.
        solved_return: record when the mean return of the last 100 episodes first exceeds this;
            None for no record.
        workers: how many processes Gymnasium environments are spread over: for `reinforce` those of
            32 runs, and for other learners those of one run; 0 for this process, None for what
            suits the cores. The classes above have their own.
        action_mask: keep to the actions that a Gymnasium environment allows in
            `info["action_mask"]`? The actions that an MDP does not allow, and those that the
            `legal` of a functional environment leaves out, are never taken.
        devices: the devices that share the runs; None for all that this process has.
            `jax.devices()` includes those of other processes that `jax.distributed` has joined:
            each of them trains the runs of its own devices, and all of them return the whole
            result.
        checkpoint: a directory for the states of the runs, with replay buffers where there are
            such. A run whose checkpoint is there is resumed. A kill loses only the last seconds. No
            other process can train in the same directory at the same time.
        seconds_between_checkpoints: how often a checkpoint is written.
        callback: is called after each batch of episodes, for `dqn` and `sac` every few hundred
            steps, for `ppo` after a segment or a few. If it returns True, training stops; the
            episodes that were not played have the return NaN.

    Returns:
        The returns and lengths of all episodes, and the policies. If steps are counted, runs have
        different numbers of episodes: what one has fewer than another is NaN.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that does not fit, such as a checkpoint of another training, or
            one in which another process is training.
        DivergedError: a `FloatingPointError`, when what a run has learned, or a return, is not
            finite any more. The checkpoint has what was learned up to the batch before.
        RuntimeError: when a Gymnasium environment fails, or returns what it has not declared.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import reinforce, train
        >>> train(reinforce(Boltzmann(5.0)), "CartPole-v1", episodes=20, runs=3, workers=0)
        DeepResult(returns=(3, 20), lengths=(3, 20))
    """
    keep_compiled_programs()
    checks.instance("learner", learner, Learner, "made by `reinforce`, `dqn`, `ppo` or `sac`")
    n_episodes, n_steps, bin = _check_sizes(episodes, steps, bin, learner.batch)
    if n_steps is None and learner.learns_from == "segments":
        rule = "`steps` must be given for `ppo`, whose episodes end several at a time"
        raise ValueError(f"{rule}, got `episodes` of {episodes}")
    if solved_return is not None:
        checks.real("solved_return", solved_return)
    pause = checks.real(
        "seconds_between_checkpoints", seconds_between_checkpoints, 0.0, infinite=True
    )
    if callback is not None:
        checks.function("callback", callback, "a function or None")
    directory = None if checkpoint is None else checks.file_path("checkpoint", checkpoint)
    settings = settings_shape(parameter_shapes(learner))
    numbers = run_numbers(runs)
    setting = setting_of_each_run(settings, len(numbers))
    everyone = devices_of(devices)
    made = environment_of(
        environment,
        max_steps,
        workers,
        default_workers=_workers(learner, setting.size),
        action_mask=action_mask,
    )
    if (network := getattr(learner, "network", None)) is not None:
        check_network(network, observation_of(made), made.n_actions)
    player = player_of(learner.learns_from, made)
    width = player.width(learner, len(setting), everyone)
    if learner.discount is None:
        assert dataclasses.is_dataclass(learner)
        learner = dataclasses.replace(learner, discount=made.discount)
    lanes = Lanes(
        map_parameters(lambda x, inner: gather_settings(x, settings, setting, inner), learner),
        key_data(seed, settings)[setting],
        np.tile(numbers, len(setting) // len(numbers)),
    )
    shares = _shares(len(setting), width, everyone)
    owners = [device.process_index for _, device in shares]
    here = jax.process_index()
    log = functools.partial(
        EpisodeLog.empty,
        episodes=n_episodes,
        batch=learner.batch,
        bin=bin,
        solved_return=solved_return,
        steps=n_steps,
    )
    with contextlib.ExitStack() as held:
        checkpoints = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            if here == min(owners):  # one lock for all processes of this training
                held.enter_context(only_one("checkpoint", directory))
            name = environment if isinstance(environment, str) else made.name
            checkpoints = Checkpoints(directory, name, pause)
        workers_here = [
            Worker(lanes, first, width, device, player, log, checkpoints)
            for first, device in shares
            if device.process_index == here
        ]
        reporter = ProgressReporter(callback, [worker.state.log for worker in workers_here])
        at_once = _at_once(len(workers_here), everyone)
        side_by_side(lambda worker: worker.train(reporter), workers_here, at_once, reporter.stop)
    result = _gather(workers_here, len(setting), np.repeat(owners, width)[: len(setting)])
    return _shaped(result, (*settings, len(numbers)))


def _check_sizes(
    episodes: int | None, steps: int | None, bin: int, batch: int
) -> tuple[int | None, int | None, int]:
    """The episodes or the steps of a run, and the episodes of a bin, in whole batches and bins."""
    if (episodes is None) == (steps is None):
        rule = "exactly one of `episodes` and `steps` must be given"
        raise ValueError(f"{rule}, got {episodes!r} and {steps!r}")
    if episodes is None:
        n_steps, bin = checks.whole("steps", steps, 1), checks.whole("bin", bin, 1)
        if bin != 1 and bin % batch:
            rule = f"`bin` must be 1, or a multiple of the batch of {batch}"
            raise ValueError(f"{rule}, got {bin}")
        return None, n_steps, bin
    n_episodes = checks.whole("episodes", episodes, batch)
    if n_episodes % batch:
        rule = f"`episodes` must be a multiple of the batch of {batch}"
        raise ValueError(f"{rule}, got {episodes}")
    bin = checks.whole("bin", bin, 1)
    if bin != 1 and (bin % batch or n_episodes % bin):
        rule = f"`bin` must be 1, or a multiple of the batch of {batch} that divides"
        raise ValueError(f"{rule} the {episodes} episodes, got {bin}")
    return n_episodes, None, bin


def _shares(lanes: int, width: int, devices: Sequence[jax.Device]) -> list[tuple[int, jax.Device]]:
    """The first lane of each block, and the device that trains it."""
    shares = list(zip(range(0, lanes, width), itertools.cycle(devices)))
    owners = [device.process_index for _, device in shares]
    idle = {jax.process_index(), *(device.process_index for device in devices)}.difference(owners)
    if idle:
        rule = f"`devices` must leave some of the {lanes} runs, {width} at a time, to each"
        raise ValueError(f"{rule} process, got none for process {min(idle)}")
    return shares


def _workers(learner: Learner, runs: int) -> int:
    """The number of processes of a block's Gymnasium environments, if `workers` is None."""
    if learner.learns_from != "episodes":  # a block is one run
        return min(1, runs - 1)
    return max(1, cores() // min(IN_FLIGHT * cores(), -(-runs // WIDTH)))


def _at_once(blocks: int, devices: Sequence[jax.Device]) -> int:
    """The number of blocks under way at a time: one for each accelerator, several for a core."""
    wanted = IN_FLIGHT * cores() if devices[0].platform == "cpu" else len(devices)
    return max(1, min(wanted, blocks))


def _gather(workers: list[Worker], lanes: int, owners: Integers) -> DeepResult:
    """The results of all lanes, from the workers of this process and of others.

    Args:
        workers: those of this process.
        lanes: the number of lanes of all blocks.
        owners: the number of the process that each lane was trained by.
    """
    alone = (owners == jax.process_index()).all()

    def of_all(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The arrays of all processes, with an axis of them first."""
        if alone:
            return array[None]
        from jax.experimental.multihost_utils import process_allgather

        return np.asarray(process_allgather(array))

    def joined(*parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        whole = np.zeros((lanes, *parts[0].shape[1:]), parts[0].dtype)
        for worker, part in zip(workers, parts, strict=True):
            whole[worker.first : worker.first + worker.runs] = part
        return whole if alone else of_all(whole)[owners, np.arange(lanes)]

    logs = [worker.state.log for worker in workers]
    asked = logs[0].solved_return is not None
    most = int(of_all(np.array(max(log.entries for log in logs))).max())
    return DeepResult(
        joined(*(log.mean_returns(most) for log in logs)),
        joined(*(log.mean_lengths(most) for log in logs)),
        joined(*(log.solved for log in logs)) if asked else None,
        jax.tree.map(joined, *(worker.policies() for worker in workers)),
    )


def _shaped(result: DeepResult, shape: Shape) -> DeepResult:
    """A result with axes of settings and runs in place of the axis of lanes."""

    def shaped(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return x.reshape(*shape, *x.shape[1:])

    fields = (getattr(result, field.name) for field in dataclasses.fields(result))
    return DeepResult(*jax.tree.map(shaped, tuple(fields)))
