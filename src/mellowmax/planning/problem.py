"""An MDP and a softmax as devices hold them, or as NumPy and SciPy do.

On a CPU the transitions are `[branch, state, action]`, and they are the MDP's own memory. An
accelerator gets `[branch, action, state]`, so that neighbouring threads read neighbouring numbers.
Without a mesh of devices, in main memory, they are a matrix (`linear.transitions`).
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .._common.parameters import map_parameters
from .._typing import Floats
from ..mdp import MDP
from ..mdp.operator import Operator
from ..softmax import Max, Softmax
from .arguments import prior_of_states
from .devices import STATES, fetch, on_every_device, place_array, place_scalar, states_last
from .linear.transitions import Transitions

__all__ = ["TOLERANCE", "Means", "Model", "Problem", "place"]

TOLERANCE = 1e-9
"""How far rounding may move the probability that an episode goes on."""
LARGE = 4_000_000
"""Branches from which a model on a CPU is large: a sweep takes 5 ms and more."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Means:
    """The operator of an MDP as a device holds it: `means @ v`, `[S, A]`."""

    arguments: tuple[Any, ...]  # the arrays that the function takes before the values
    scale: jax.Array  # [S, A], see `Operator`
    function: Callable[..., Any] = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(cls, operator: Operator, mesh: Mesh) -> Self:
        """Place what the function needs."""
        if mesh.size > 1:
            raise ValueError(f"`mesh` must have one device for an operator, got {mesh.size}")
        function: Any = operator.expectation
        arguments: tuple[Any, ...] = ()
        if isinstance(function, functools.partial) and not function.keywords:
            function, arguments = function.func, function.args
        placed = jax.device_put(arguments, mesh.devices.flat[0])
        return cls(placed, place_array(operator.scale, mesh), function)

    def __matmul__(self, v: jax.Array) -> jax.Array:
        """In double precision, whatever that of `v`, since the function may have numbers of it."""
        means = self.function(*self.arguments, v.astype(np.float64))
        return (self.scale * means).astype(v.dtype)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
    """An MDP as devices hold it; `[S, A]` stands for `[A, S]` where `axis` is 0.

    In main memory the arrays are NumPy's.
    """

    probabilities: Any  # [K, S, A], dense [S, A, S], `Means`, or in main memory `Transitions`
    successors: jax.Array | None  # [K, S, A]
    rewards: jax.Array  # [S, A]
    allowed: jax.Array | None  # [S, A]
    terminal: jax.Array  # [S]
    discount: jax.Array | float  # a number
    axis: int = dataclasses.field(metadata={"static": True})  # the axis of the actions
    ends: bool = dataclasses.field(metadata={"static": True})  # does a branch end the episode?
    endless: bool = dataclasses.field(metadata={"static": True})  # is there no end at all?
    large: bool = dataclasses.field(
        metadata={"static": True}
    )  # does a sweep take long, for a call?

    @property
    def pairs(self) -> P:
        """How an array `[S, A]` is spread over devices."""
        return P(STATES) if self.axis == 1 else P(None, STATES)


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What a solve is about: an MDP and a softmax, and both on the devices of a mesh."""

    mdp: MDP
    softmax: Softmax
    mesh: Mesh | None
    """The devices; None for main memory, where functions run as they are, by NumPy and SciPy."""
    model: Model
    """The MDP on the devices."""
    placed_softmax: Softmax
    """The softmax on the devices."""

    @property
    def greedy(self) -> bool:
        """Is the softmax's value the maximum?"""
        return isinstance(self.softmax, Max)

    @classmethod
    def of(cls, mdp: MDP, softmax: Softmax, mesh: Mesh | None) -> Self:
        """Place an MDP and a softmax, which may have a parameter for each state."""

        def placed_parameter(x: npt.ArrayLike, inner: int) -> Any:
            array = np.asarray(x)
            if not inner and not array.ndim:
                return float(array) if mesh is None else np.float64(array)
            by_state = prior_of_states(array, mdp) if inner else array
            return by_state if mesh is None else place_array(by_state, mesh)

        placed = map_parameters(placed_parameter, softmax)
        return cls(mdp, softmax, mesh, place(mdp, mesh), placed)

    def call(
        self, function: Callable[..., Any], outputs: Any, *arguments: object, donate: bool = False
    ) -> Any:
        """Run `function(model, softmax, *arguments)` as one compiled program on all devices.

        Args:
            function: written for the states of one device; see `on_every_device`.
            outputs: how each result is spread over the devices.
            *arguments: the further ones.
            donate: may the results take the memory of the first of these?
        """
        if self.mesh is None:
            with np.errstate(all="ignore"):  # as in programs
                return function(self.model, self.placed_softmax, *arguments)
        program = on_every_device(function, self.mesh, outputs, 2 if donate else None)
        return program(self.model, self.placed_softmax, *arguments)

    def action_values(self, start: float | Floats) -> Floats:
        """A number or `[S, A]` as `[S, A]`, with 0 where there is no action."""
        return np.where(self.mdp.available, start, 0.0)

    def place_pairs(self, array: Floats) -> Any:
        """An array `[S, A]` on the devices, laid out as the model's are."""
        if self.mesh is None:
            return array
        placed = place_array(array, self.mesh)
        return placed if self.model.axis == 1 else states_last(placed, self.mesh)

    def fetch(self, array: jax.Array, shift: float = 0.0) -> Floats:
        """A result `[S]` or `[S, A]`, shifted by a number, in a NumPy array of the caller's own."""
        if self.mesh is None:
            return np.asarray(array) + shift
        if array.ndim == 2 and self.model.axis == 0:
            array = jnp.swapaxes(array, 0, 1)
        return fetch(array, self.mdp.n_states) + shift  # a copy anyway, so that this is free


def place(mdp: MDP, mesh: Mesh | None) -> Model:
    """An MDP on the devices of a mesh; it stays there as long as the MDP is alive."""
    models = _placed.setdefault(mdp, {})
    if mesh not in models:
        models[mesh] = _in_memory(mdp) if mesh is None else _place(mdp, mesh)
    return models[mesh]


_placed: weakref.WeakKeyDictionary[MDP, dict[Mesh | None, Model]] = weakref.WeakKeyDictionary()


def _in_memory(mdp: MDP) -> Model:
    ends = mdp.successors is not None and bool(np.any(mdp.successors == mdp.n_states))
    arrays: dict[str, Any] = {
        "probabilities": Transitions.of(mdp),
        "successors": None,
        "rewards": mdp.expected_rewards,
        "allowed": mdp.allowed,
        "terminal": mdp.terminal,
    }
    return Model(
        **arrays,
        discount=mdp.discount,
        axis=1,
        ends=False,  # what ends is no entry of the matrix
        endless=not ends and not mdp.terminal.any(),
        large=False,
    )


def _place(mdp: MDP, mesh: Mesh) -> Model:
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    flip = mdp.successors is not None and not on_cpu

    def by_pair(array: npt.NDArray[Any]) -> jax.Array:
        placed = place_array(array, mesh)
        return states_last(placed, mesh) if flip else placed

    def by_branch(array: npt.NDArray[Any]) -> jax.Array:
        placed = place_array(np.moveaxis(array, -1, 0), mesh, axis=1)
        return states_last(placed, mesh) if flip else placed

    extra = -mdp.n_states % mesh.size  # states that `place_array` adds
    probabilities: Any
    successors, ends, endless = None, False, not mdp.terminal.any()
    if isinstance(mdp.probabilities, Operator):
        probabilities = Means.of(mdp.probabilities, mesh)
        endless = endless and bool((mdp.goes_on >= 1 - TOLERANCE)[mdp.available].all())
    elif mdp.successors is not None:
        probabilities, successors = by_branch(mdp.probabilities), by_branch(mdp.successors)
        ends = bool(np.any(mdp.successors == mdp.n_states))
        if ends and mesh.size > 1:  # the end stays the number after the last state
            end = jnp.int32(mdp.n_states)
            successors = jnp.where(successors == end, end + jnp.int32(extra), successors)
    else:
        padding = [(0, 0), (0, 0), (0, extra)]
        dense = np.pad(mdp.probabilities, padding) if mesh.size > 1 else mdp.probabilities
        probabilities = place_array(dense, mesh)
    return Model(
        probabilities,
        successors,
        by_pair(mdp.expected_rewards),
        None if mdp.allowed is None else by_pair(mdp.allowed),
        place_array(mdp.terminal, mesh),
        place_scalar(mdp.discount, mesh),
        axis=0 if flip else 1,
        ends=ends,
        endless=endless and not ends,
        large=on_cpu and mdp.probabilities.size >= LARGE,
    )
