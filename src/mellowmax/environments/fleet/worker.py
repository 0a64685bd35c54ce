"""A process of Gymnasium environments, which a `Fleet` starts and commands.

It reads commands from its standard input and answers on its standard output, until the input ends;
so it ends with the process that started it, however that one ends. First comes a function that
makes an environment, pickled, and the number of environments. Then every command is a letter and a
number for each environment. An answer is a sign and a record of each environment, or an error in
one line.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..._common.checked_environment import FailedEnvironmentError, checked, failure
from .records import record_of, view, write

if TYPE_CHECKING:
    import gymnasium

__all__ = [
    "DONE",
    "FAILED",
    "Group",
    "RESET",
    "REST",
    "SIZE",
    "STEP",
    "main",
    "serve",
]

RESET, STEP = b"r", b"s"
"""The commands."""
DONE, FAILED = b".", b"!"
"""The signs that an answer begins with."""
REST = -1
"""Stands for a seed or an action: the environment is left as it is."""
SIZE = struct.Struct("<q")
"""How the size of the pickled function is written."""


class Group:
    """A list of environments, and a record of what each of them returned last.

    Args:
        make: makes an environment.
        count: the number of environments.
    """

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], count: int) -> None:
        self.envs = [checked(make()) for _ in range(count)]
        space = self.envs[0].observation_space
        self.records = np.zeros(count, record_of(space))
        self._observations = view(space, self.records["observation"])

    def reset(self, seeds: npt.NDArray[np.int64]) -> None:
        """Begin an episode wherever a seed is given."""
        chosen = np.flatnonzero(seeds != REST)
        for i in chosen.tolist():
            write(self._observations, i, self.envs[i].reset(seed=int(seeds[i]))[0])
        for name in ("reward", "terminated", "truncated"):
            self.records[name][chosen] = 0

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Take a step wherever an action is given."""
        chosen = np.flatnonzero(actions != REST)
        observations, envs = self._observations, self.envs
        outcomes = []
        for i, action in zip(chosen.tolist(), actions[chosen].tolist(), strict=True):
            observation, reward, terminated, truncated, _ = envs[i].step(action)
            write(observations, i, observation)
            outcomes.append((reward, terminated, truncated))
        self.records["reward"] = 0.0
        if outcomes:
            for name, values in zip(
                ("reward", "terminated", "truncated"), zip(*outcomes, strict=True), strict=True
            ):
                self.records[name][chosen] = values

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()


def serve(commands: BinaryIO, answers: BinaryIO) -> None:
    """Carry out commands until there are no more."""
    head = commands.read(SIZE.size)
    task = commands.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else b""
    if not task or len(task) < SIZE.unpack(head)[0]:
        return  # the process that started this one has ended already
    make, count = pickle.loads(task)
    try:
        group = Group(make, count)
        answers.write(DONE)
        answers.flush()
        while command := commands.read(1):
            numbers = np.frombuffer(commands.read(8 * count), np.int64)
            if len(numbers) < count:
                return
            (group.reset if command == RESET else group.step)(numbers)
            answers.write(DONE)
            answers.write(group.records.tobytes())
            answers.flush()
    except BrokenPipeError:
        raise
    except Exception as error:
        failed = error if isinstance(error, FailedEnvironmentError) else failure(error)
        answers.write(FAILED + str(failed).encode())
        answers.flush()


def main() -> None:
    """Serve on the standard input and output; what environments print goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:  # the process that started this one has ended
        os._exit(0)
