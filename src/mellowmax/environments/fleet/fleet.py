"""Many Gymnasium environments side by side, in as many processes as there are cores."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ..._common import checks
from ..._common.checked_environment import FailedEnvironmentError
from ..._common.gymnasium_ids import make
from ..._common.sudden_end import before_sudden_end, forget
from ..._typing import Bools
from .records import Observations, copied, record_of, view
from .worker import DONE, RESET, REST, SIZE, STEP, Group, main

__all__ = ["Fleet"]


class Fleet(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A Gymnasium vector environment whose environments can rest.

    Gymnasium's own vector environments step every environment at every step, in one process or in
    a process for each. Here each of a few processes has a share of the environments. No environment
    is reset by itself. One whose action is -1 rests: it is not stepped, and its reward is 0.
    `reset(seed=..., options={"reset_mask": mask})` begins another episode. An episode depends on
    its seed and its actions alone.

    Args:
        environment: an id, or a function without arguments that makes an environment.
        num_envs: the number of environments.
        workers: the number of processes; 0 to have the environments in this one.

    Raises:
        ValueError: for an argument that is not as above.
        RuntimeError: when an environment fails, or returns what it has not declared.

    Examples:
        >>> fleet = Fleet("CartPole-v1", 3, workers=0)
        >>> observations, _ = fleet.reset(seed=[1, 2, 3])
        >>> observations, rewards, terminated, truncated, _ = fleet.step(np.array([0, 1, 0]))
        >>> print(observations.shape, rewards)
        (3, 4) [1. 1. 1.]
        >>> fleet.close()
    """

    def __init__(
        self,
        environment: str | Callable[[], gymnasium.Env[Any, Any]],
        num_envs: int,
        *,
        workers: int = 0,
    ) -> None:
        self.num_envs = checks.whole("num_envs", num_envs, 1)
        workers = min(checks.whole("workers", workers, 0), num_envs)
        one = functools.partial(make, environment) if isinstance(environment, str) else environment
        checks.function("environment", one, "the id of a Gymnasium environment, or what makes one")
        env = one()
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.metadata = {**env.metadata, "autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
        self.spec = env.spec
        env.close()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        # Neighbours are alike, such as the episodes of a run: each goes to another process.
        shares = [np.arange(k, num_envs, workers) for k in range(workers)]
        record = record_of(self.single_observation_space)
        self._group = None if workers else Group(one, num_envs)
        self._records = np.zeros(num_envs, record) if self._group is None else self._group.records
        self._observations = view(self.single_observation_space, self._records["observation"])
        self._workers: list[_Worker] = []
        try:
            self._workers += (_Worker(one, share, record) for share in shares)
            for worker in self._workers:
                worker.wait()
        except BaseException:
            self.close()
            raise

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | npt.NDArray[np.integer[Any]] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: a seed for each environment; a number `n` stands for `n`, `n + 1` and so on; None
                to draw the seeds.
            options: `{"reset_mask": mask}` says which environments begin an episode, if not all.

        Returns:
            The observations, and `{}`.
        """
        if seed is None:
            seed = [None] * self.num_envs
        if isinstance(seed, int):
            seed = range(seed, seed + self.num_envs)
        mask = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        drawn = [secrets.randbelow(2**31) if one is None else one for one in seed]
        seeds = np.where(mask, np.asarray(drawn, np.int64), REST)
        self._command(RESET, seeds)
        return copied(self._observations), {}

    def step(
        self, actions: npt.NDArray[np.integer[Any]]
    ) -> tuple[Observations, npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take an action in every environment, or none where it is -1."""
        self._command(STEP, np.asarray(actions, np.int64))
        names = ("reward", "terminated", "truncated")
        rewards, terminated, truncated = (self._records[name].copy() for name in names)
        return copied(self._observations), rewards, terminated, truncated, {}

    def _command(self, command: bytes, numbers: npt.NDArray[np.int64]) -> None:
        if self._group is not None:
            (self._group.reset if command == RESET else self._group.step)(numbers)
            return
        self._records["reward"] = 0.0
        needed = [worker for worker in self._workers if (numbers[worker.share] != REST).any()]
        for worker in needed:
            worker.command(command, numbers[worker.share])
        for worker in needed:
            self._records[worker.share] = worker.answer()

    def close_extras(self, **kwargs: object) -> None:
        """End the processes."""
        if self._group is not None:
            self._group.close()
        for worker in self._workers:
            worker.close()


class _Worker:
    """A process with a share of the environments: it is sent commands, and its answers are read."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        share: npt.NDArray[np.int64],
        record: np.dtype[Any],
    ) -> None:
        self.share = share
        self._received = bytearray(len(share) * record.itemsize)
        self._records = np.frombuffer(self._received, record)
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {main.__module__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            process_group=0,  # Ctrl-C in a terminal is for the process that commands
        )
        before_sudden_end(self._process.kill)
        assert self._process.stdin is not None
        assert isinstance(self._process.stdout, io.BufferedReader)
        self._commands, self._answers = self._process.stdin, self._process.stdout
        task = cloudpickle.dumps((make, len(share)))
        self._commands.write(SIZE.pack(len(task)) + task)
        self._commands.flush()

    def wait(self) -> None:
        sign = self._answers.read(1)
        if sign != DONE:
            error = self._answers.read().decode()
            raise FailedEnvironmentError(error or "an environment failed: its process has ended")

    def command(self, command: bytes, numbers: npt.NDArray[np.int64]) -> None:
        try:
            self._commands.write(command + numbers.tobytes())
            self._commands.flush()
        except BrokenPipeError:
            self.wait()  # which says why

    def answer(self) -> npt.NDArray[Any]:
        self.wait()
        self._answers.readinto(self._received)
        return self._records

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._commands.close()
        self._answers.close()
        self._process.wait()
        forget(self._process.kill)
