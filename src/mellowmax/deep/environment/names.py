"""The names by which checkpoints tell environments, and functions, from others."""

from __future__ import annotations

import functools
import hashlib
import inspect

import jax
import numpy as np

__all__ = ["name_of"]


def name_of(environment: object) -> str:
    """The name by which a checkpoint tells an environment from others.

    The name of an id is the id. A function, a class or a module has its full name. Any other object
    has the full name of its type, followed by a digest of its numbers if it has any. A partial
    function has its arguments in its name.

    Examples:
        >>> import numpy as np
        >>> name_of("CartPole-v1"), name_of(np), name_of(np.load)
        ('CartPole-v1', 'numpy', 'numpy.load')
        >>> name_of(functools.partial(np.load, "x", mmap_mode=None))
        "numpy.load('x', mmap_mode=None)"
    """
    if isinstance(environment, functools.partial):
        given = [*map(_name_of_argument, environment.args)]
        given += [f"{name}={_name_of_argument(x)}" for name, x in environment.keywords.items()]
        return f"{name_of(environment.func)}({', '.join(given)})"
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


def _name_of_argument(value: object) -> str:
    """The name of an argument: what one would type, if that says it all."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else name_of(value)
