"""Checks of the arguments that every way of planning takes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh

from .._common import checks
from .._common.parameters import map_parameters
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..softmax import Softmax
from .devices import STATES, mesh_of_one

__all__ = [
    "arrays_of_each_step",
    "check_callback",
    "check_softmax",
    "mesh_of",
    "of_each_step",
    "prior_of_states",
]


def check_softmax(softmax: object, mdp: MDP) -> None:
    """Raise unless it is a softmax whose parameters are numbers, or one for each state.

    A prior is one for all states, or one for each.
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")

    def check(x: npt.ArrayLike, inner: int) -> None:
        shape, states, actions = np.shape(x), mdp.n_states, mdp.n_actions
        if inner:
            if shape not in ((actions,), (states, actions)):
                rule = f"must have a prior with the shape ({actions},) or ({states}, {actions})"
                raise ValueError(f"`softmax` {rule}, got the shape {shape}")
            prior_of_states(np.asarray(x), mdp)
        elif shape and shape[0] != states:
            raise ValueError(
                f"`softmax` must have one parameter, or one for each of the {states} states, "
                f"got the shape {shape}"
            )

    map_parameters(check, softmax)


def prior_of_states(prior: Floats, mdp: MDP) -> Floats:
    """A prior `[S, A]`: that of a state without actions does not matter, and is of ones.

    Raises:
        ValueError: for a state that has no weight on an action that can be taken.
    """
    weights = np.broadcast_to(prior.astype(np.float64), mdp.available.shape)
    none = ~np.any(mdp.available & (weights > 0), axis=1)
    wrong = np.asarray(none & mdp.available.any(1))
    if wrong.any():
        rule = "must have a weight above 0 for an action that can be taken"
        raise ValueError(f"`prior` {rule}, got none in state {int(np.argmax(wrong))}")
    return np.where(np.expand_dims(none, 1), 1.0, weights)


def check_callback(callback: object) -> None:
    """Raise unless it is a function or None."""
    if callback is not None:
        checks.function("callback", callback, "a function or None")


def mesh_of(mesh: Mesh | None) -> Mesh:
    """The mesh given, or that of JAX's default device."""
    checks.instance("mesh", mesh, Mesh | None, "a jax.sharding.Mesh or None")
    if mesh is None:
        chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
        return mesh_of_one(chosen or jax.local_devices()[0])
    if mesh.axis_names != (STATES,):
        raise ValueError(f"`mesh` must have the one axis {STATES!r}, got {mesh.axis_names}")
    return mesh


def of_each_step(name: str, given: object, kind: type, rule: str, steps: int) -> list[Any]:
    """The object of each step, from one for all or a list."""
    if isinstance(given, kind):
        return [given] * steps
    found = checks.instances(name, given, kind, f"{rule}, or a list of them")
    if len(found) != steps:
        raise ValueError(f"`{name}` must have one for each of {steps} steps, got {len(found)}")
    return found


def arrays_of_each_step(name: str, given: ArrayLike, ndim: int, steps: int) -> list[ArrayLike]:
    """The array of each step, from one for all, or from one of `ndim` axes, the first for time."""
    array = checks.array(name, given)
    if array.ndim < ndim:
        return [given] * steps
    found = list(array)
    if len(found) != steps:
        raise ValueError(f"`{name}` must have {steps} steps, got {len(found)}")
    return found
