"""A process of Gymnasium environments, driven by a `Fleet`: `python -m` this module.

It reads commands from its standard input and answers on its standard output, until the input ends;
so it ends with the process that started it, however that one ends. First comes what makes an
environment, pickled, and the number of environments. Then every command is a letter and a number
for each environment, and every answer a sign and a record of each environment, or what went wrong.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..._common.gymnasium_ids import make

__all__ = [
    "Group",
    "NOTHING",
    "RESET",
    "STEP",
    "WELL",
    "WRONG",
    "flat",
    "main",
    "record_of",
    "serve",
]

RESET, STEP = b"r", b"s"
WELL, WRONG = b".", b"!"
NOTHING = -1
"""In the place of a seed or an action: leave this environment alone."""
SIZE = struct.Struct("<q")


class Group:
    """A list of environments, and a record of where each of them is.

    Args:
        make: makes an environment.
        count: how many.
    """

    def __init__(self, make: Callable[[], Any], count: int) -> None:
        self.envs = [make() for _ in range(count)]
        space = self.envs[0].observation_space
        self.records = np.zeros(count, record_of(space))
        self._observations = self.records["observation"]

    def reset(self, seeds: npt.NDArray[np.int64]) -> None:
        """Begin an episode wherever a seed is given."""
        chosen = np.flatnonzero(seeds != NOTHING)
        for i in chosen.tolist():
            self._observations[i], _ = self.envs[i].reset(seed=int(seeds[i]))
        for name in ("reward", "terminated", "truncated"):
            self.records[name][chosen] = 0

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Take a step wherever an action is given."""
        chosen = np.flatnonzero(actions != NOTHING)
        observations, envs = self._observations, self.envs
        outcomes = []
        for i, action in zip(chosen.tolist(), actions[chosen].tolist(), strict=True):
            observations[i], reward, terminated, truncated, _ = envs[i].step(action)
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


def flat(environment: str | Callable[[], Any], **options: Any) -> Any:
    """An environment whose observations are vectors, and whose actions are counted from 0.

    A state that is a number becomes one-hot.

    Args:
        environment: an id, or what makes an environment.
        options: Gymnasium's own, for an id.

    Raises:
        ValueError: for an environment that there is not, whose observations have no one size, or
            whose actions are not discrete.
    """
    import gymnasium

    if isinstance(environment, str):
        env = make(environment, disable_env_checker=True, **options)
    elif callable(environment):
        env = environment()
    else:
        rule = (
            "`environment` must be the id of a Gymnasium environment or a function that makes one"
        )
        raise ValueError(f"{rule}, got {environment!r}")
    if not isinstance(env, gymnasium.Env):
        rule = "`environment` must make a Gymnasium environment"
        raise ValueError(f"{rule}, got one that makes {env!r}")
    seen, actions = env.observation_space, env.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        env.close()
        raise ValueError(f"`environment` must have discrete actions, got {actions}")
    if not seen.is_np_flattenable:
        env.close()
        raise ValueError(f"`environment` must have observations of one size, got {seen}")
    if actions.start != 0:
        counted = gymnasium.spaces.Discrete(actions.n)
        env = gymnasium.wrappers.TransformAction(env, lambda i: i + actions.start, counted)
    is_vector = isinstance(seen, gymnasium.spaces.Box) and len(seen.shape) == 1
    return env if is_vector else gymnasium.wrappers.FlattenObservation(env)


def record_of(space: Any) -> np.dtype[Any]:
    """What is kept of an environment with a space of observations."""
    return np.dtype(
        [
            ("observation", space.dtype, space.shape),
            ("reward", np.float64),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
        ],
        align=True,
    )


def serve(commands: BinaryIO, answers: BinaryIO) -> None:
    """Do what is commanded, until there are no more commands."""
    (size,) = SIZE.unpack(commands.read(SIZE.size))
    make, count = pickle.loads(commands.read(size))  # from the process that started this one
    try:
        group = Group(make, count)
        answers.write(WELL)
        answers.flush()
        while command := commands.read(1):
            numbers = np.frombuffer(commands.read(8 * count), np.int64)
            (group.reset if command == RESET else group.step)(numbers)
            answers.write(WELL)
            answers.write(group.records.tobytes())
            answers.flush()
    except BrokenPipeError:
        raise
    except Exception:
        answers.write(WRONG + traceback.format_exc().encode())
        answers.flush()


def main() -> None:
    """Serve on the standard input and output; what environments print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that commands
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, answers)
    except BrokenPipeError:  # nobody is there any more
        os._exit(0)


if __name__ == "__main__":
    main()
