"""Former names of arguments, which still work and warn."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["former_argument"]

P = ParamSpec("P")
T = TypeVar("T")


def former_argument(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take an argument by its former name too, with a warning.

    Examples:
        >>> @former_argument("n_observations", "observation")
        ... def size(observation):
        ...     return observation
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     size(n_observations=4), str(caught[0].message)
        (4, '`n_observations` is now `observation`; the old name will go')
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def taking_both(*args: P.args, **options: P.kwargs) -> T:
            if old in options:
                message = f"`{old}` is now `{new}`; the old name will go"
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                options[new] = options.pop(old)
            return function(*args, **options)

        return taking_both

    return decorate
