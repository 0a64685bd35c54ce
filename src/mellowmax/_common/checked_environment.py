"""Gymnasium environments that must do what they declare.

NumPy would broadcast an observation of another shape, and take the text 'False' for true. Nothing
here imports JAX: environments may run in processes of their own.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from .extras import needed_by

with needed_by("Gymnasium environments", "gymnasium"):
    import gymnasium
    from gymnasium import spaces

__all__ = ["MASK", "FailedEnvironmentError", "check_batch", "checked", "failure", "mask_in"]

P = ParamSpec("P")
T = TypeVar("T")

MASK = "action_mask"
"""Where the `info` of an environment has the actions that it allows."""
NUMBERS = "fiub"
"""The kinds of NumPy's dtypes that are real numbers."""


class FailedEnvironmentError(RuntimeError):
    """An environment has raised an error, or returned what it has not declared."""


def failure(error: Exception) -> FailedEnvironmentError:
    """What an environment has raised, in one line."""
    said = " ".join(str(error).split())
    return FailedEnvironmentError(f"an environment failed: {type(error).__name__}: {said}")


def checked(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """An environment whose answers are checked; one that is checked already is returned."""
    inner: gymnasium.Env[Any, Any] = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, _Checked):
            return env
        inner = inner.env
    return _Checked(env)


class _Checked(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose answers are checked.

    Raises:
        FailedEnvironmentError: when it fails, or returns what it has not declared.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        said = _asked(self.env.reset, seed=seed, options=options)
        observation, info = _parts("reset", said, "an observation and `info`", 2)
        _check_observation(self.env.observation_space, observation)
        return observation, info

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        said = _asked(self.env.step, action)
        what = "an observation, a reward, `terminated`, `truncated` and `info`"
        observation, reward, terminated, truncated, info = _parts("step", said, what, 5)
        _check_observation(self.env.observation_space, observation)
        ends = _flag("terminated", terminated), _flag("truncated", truncated)
        return observation, _number("reward", reward), *ends, info

    def render(self) -> gymnasium.core.RenderFrame | list[gymnasium.core.RenderFrame] | None:
        """Show itself."""
        return _asked(self.env.render)


def check_batch(
    count: int, shape: tuple[int, ...], observations: object, rewards: object = None, *ends: object
) -> None:
    """Raise unless a vector environment of this many has returned what it should.

    Args:
        count: how many environments.
        shape: of an observation.
        observations: of all of them.
        rewards: theirs; None after a reset, which earns nothing.
        ends: `terminated` and `truncated`.
    """
    wanted = [("observations", "numbers", NUMBERS, (count, *shape), observations)]
    if rewards is not None:
        wanted.append(("rewards", "numbers", NUMBERS, (count,), rewards))
    for name, flags in zip(("terminated", "truncated"), ends, strict=False):
        wanted.append((f"`{name}`", "booleans", "b", (count,), flags))
    for what, words, kinds, whole, values in wanted:
        array = _array(values)
        if array.shape != whole or array.dtype.kind not in kinds:
            _refuse(f"return {what} that are {words} with the shape {whole}", values)


def mask_in(info: dict[str, Any], shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """The actions that an environment allows, of one environment or of many.

    Args:
        info: the last thing that `reset` and `step` return.
        shape: of the mask; the last axis is that of the actions.

    Raises:
        FailedEnvironmentError: unless it says so of each.
    """
    given = info.get(MASK)
    mask = _array(given)
    if mask.shape != shape or mask.dtype.kind not in "iub" or not np.isin(mask, (0, 1)).all():
        _refuse(f"give `info['{MASK}']` with {shape[-1]} entries of 0 and 1", given)
    return mask.astype(np.bool_)


def _asked(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """The answer of an environment."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        raise failure(error) from error


def _parts(method: str, said: object, what: str, count: int) -> tuple[Any, ...]:
    """What a method has returned, in its parts."""
    if not (isinstance(said, tuple) and len(said) == count):
        _refuse(f"return {what} from `{method}`", said)
    return said


def _check_observation(space: spaces.Space[Any], observation: Any) -> None:
    """Raise unless an observation is one of its space; those of a Box may be beyond its bounds."""
    if isinstance(space, spaces.Box):
        array = _array(observation)
        if array.shape != space.shape or array.dtype.kind not in NUMBERS:
            shape = f"numbers with the shape {space.shape}"
            _refuse(f"return observations of {shape}, as its observation space says", observation)
    elif isinstance(space, spaces.Dict | spaces.Tuple):
        whole = isinstance(space, spaces.Dict)
        parts: Mapping[Any, spaces.Space[Any]]
        parts = space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        fits = isinstance(observation, dict if whole else tuple | list)
        if not fits or (set(observation) if whole else set(range(len(observation)))) != set(parts):
            _refuse(f"return observations in {space}, its observation space", observation)
        for name, part in parts.items():
            _check_observation(part, observation[name])
    elif not space.contains(observation):
        _refuse(f"return observations in {space}, its observation space", observation)


def _number(name: str, value: object) -> float:
    """A real number; an array with no axes is one."""
    if isinstance(value, float):
        return value
    array = _array(value)
    if array.ndim or array.dtype.kind not in NUMBERS:
        _refuse(f"return a number as `{name}`", value)
    return float(array)


def _flag(name: str, value: object) -> bool:
    """True or False; 0 and 1 stand for them."""
    if isinstance(value, bool):
        return value
    array = _array(value)
    if array.ndim or array.dtype.kind not in "iub" or array not in (0, 1):
        _refuse(f"return True or False as `{name}`", value)
    return bool(array)


def _array(value: object) -> np.ndarray[Any, Any]:
    """The value as a NumPy array; a ragged list becomes an array of objects."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(0, object)


def _refuse(rule: str, value: object) -> NoReturn:
    got = reprlib.repr(value)
    if isinstance(value, np.ndarray) and value.ndim:
        got = f"an array of {value.dtype} with the shape {value.shape}"
    sentence = f"`environment` must {rule}, got {got}"
    raise FailedEnvironmentError(" ".join(sentence.split()))
