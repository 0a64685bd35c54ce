"""Networks of your own: what a learner's `network` may be, and the form in which it is trained.

A `network` is a function of a key, the shapes of an observation and the number of outputs. It draws
an Equinox module, which is called with one observation and returns its outputs, `[n_outputs]`:

    >>> class Squared(eqx.Module):
    ...     layer: eqx.nn.Linear
    ...
    ...     def __init__(self, key, observation, n_actions):
    ...         self.layer = eqx.nn.Linear(*observation.shape, n_actions, key=key)
    ...
    ...     def __call__(self, observation):
    ...         return self.layer(observation**2)
    >>> from mellowmax import Mellowmax
    >>> from mellowmax.deep import dqn
    >>> learner = dqn(Mellowmax(5.0), network=Squared)

The class itself is such a function. Modules have more in them than numbers to be trained, such as
activation functions, and JAX's transformations take arrays only. So a module is taken apart once,
when it is drawn: its floating arrays are data, and all else is a part of the structure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.shown import shown
from .._typing import PyTree
from .network import Mlp, mlp
from .observation import unmasked

__all__ = [
    "MakeNetwork",
    "Trainable",
    "check_draws",
    "check_network",
    "draw",
    "example",
    "form_of",
    "trainable",
]

MakeNetwork: TypeAlias = Callable[[jax.Array, PyTree, int], eqx.Module]
"""What draws a network: a function of a key, the shapes of an observation, and how many outputs."""


class _Rest:
    """What is in a module besides its floating arrays, with a hash that takes no time."""

    def __init__(self, module: eqx.Module) -> None:
        self.module = module
        leaves, tree = jax.tree.flatten(module)
        self._parts = (tree, tuple(leaves))
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Rest) and self._parts == other._parts)


class Trainable(eqx.Module):
    """A module whose arrays are all numbers to be trained; it is called as the module is.

    Examples:
        >>> network = trainable(eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0)))
        >>> len(jax.tree.leaves(network)), network(jnp.zeros(4)).shape
        (4, (2,))
    """

    arrays: PyTree
    """The floating arrays of the module, and None in place of all else."""
    rest: _Rest = eqx.field(static=True)

    @property
    def module(self) -> Any:
        """The module itself."""
        return eqx.combine(self.arrays, self.rest.module)

    def __call__(self, observation: PyTree) -> jax.Array:
        """The outputs for one observation."""
        return self.module(observation)


def trainable(module: eqx.Module) -> Any:
    """A module in the form in which it is trained: itself, if it has floating arrays alone.

    Raises:
        ValueError: for a module that has other arrays too.
    """
    if all(map(_is_floating, jax.tree.leaves(module))):
        return module
    arrays, rest = eqx.partition(module, _is_floating)
    return Trainable(arrays, _checked_rest(rest))


def draw(network: MakeNetwork, key: jax.Array, observation: PyTree, n_outputs: int) -> Any:
    """A network as it is before it has learned, in the form in which it is trained.

    Args:
        network: the function that draws it.
        key: a JAX key.
        observation: the shapes and dtypes of an observation, or of a `Seen`.
        n_outputs: how many numbers it returns.

    Raises:
        TypeError: for what does not make a module that can be called.
        ValueError: for a module with another number of outputs.
    """
    observation = unmasked(observation)
    rest = check_network(network, observation, n_outputs)
    module = network(key, observation, n_outputs)
    return module if rest is None else Trainable(eqx.filter(module, _is_floating), rest)


def check_draws(network: object) -> None:
    """Raise unless something can be the `network` of a learner, whatever the environment.

    Raises:
        TypeError: for what is no function, or one that programs cannot be told apart by.
    """
    checks.function("network", network, "a function that draws a network, such as mlp(64, 2)")
    try:
        hash(network)
    except TypeError as error:
        rule = "`network` must be hashable, since a program is compiled for each"
        raise TypeError(f"{rule}, got {shown(network)}: {error}") from None


def check_network(network: MakeNetwork, observation: PyTree, n_outputs: int) -> _Rest | None:
    """What the networks that a function draws have besides floating arrays; None if nothing.

    It is found once for each form of observations: a function that is made anew whenever a network
    is drawn would be another part of the structure each time. Nothing is compiled.

    Raises:
        TypeError: as for `draw`.
        ValueError: as for `draw`.
    """
    if isinstance(network, Mlp):
        return None
    observation = unmasked(observation)
    leaves, tree = jax.tree.flatten(observation)
    return _found_rest(network, tuple(leaves), tree, n_outputs)


@functools.lru_cache(maxsize=64)
def _found_rest(
    network: MakeNetwork,
    leaves: tuple[jax.ShapeDtypeStruct, ...],
    tree: jax.tree_util.PyTreeDef,
    n_outputs: int,
) -> _Rest | None:
    observation = jax.tree.unflatten(tree, leaves)
    found: list[_Rest | None] = []

    def outputs(key: jax.Array, seen: PyTree) -> jax.Array:
        module = network(key, observation, n_outputs)
        checks.instance("network", module, eqx.Module, "a function that draws an Equinox module")
        checks.function("network", module, "a function that draws a module that can be called")
        arrays, rest = eqx.partition(module, _is_floating)
        found.append(_checked_rest(rest) if jax.tree.leaves(rest) else None)
        return eqx.combine(arrays, rest)(seen)

    key = jax.eval_shape(lambda: jax.random.key(0))
    got: Any = jax.eval_shape(outputs, key, observation)
    form = f"{got.dtype} {list(got.shape)}" if hasattr(got, "shape") else type(got).__name__
    if getattr(got, "shape", None) != (n_outputs,) or not jnp.isdtype(got.dtype, "real floating"):
        rule = f"`network` must return {n_outputs} floating numbers, as an array [{n_outputs}]"
        raise ValueError(f"{rule}, got {form}")
    return found[0]


def form_of(network: MakeNetwork, observation: PyTree, n_outputs: int) -> Any:
    """The network that a function draws, with shapes and dtypes in place of arrays."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    return jax.eval_shape(lambda key: draw(network, key, observation, n_outputs), key)


def example(network: MakeNetwork) -> Mlp:
    """What draws a network for any observation, to try an optimiser out."""
    return network if isinstance(network, Mlp) else mlp()


def _is_floating(leaf: object) -> bool:
    """Is it an array of floating numbers, or stands for one?"""
    return hasattr(leaf, "shape") and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))  # type: ignore[attr-defined]


def _checked_rest(rest: eqx.Module) -> _Rest:
    """What is not trained, if there is no array in it, which would be lost."""
    for leaf in jax.tree.leaves(rest):
        if isinstance(leaf, jax.Array | np.ndarray):
            rule = "`network` must have no arrays but those of floating numbers"
            raise ValueError(f"{rule}, got {leaf.dtype} {list(leaf.shape)}")
    try:
        return _Rest(rest)
    except TypeError as error:
        rule = "`network` must be of arrays, and of parts that are hashable"
        raise ValueError(f"{rule}, got {shown(error)}") from None
