"""Checks of the arguments that every way of planning takes."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh

from .._common import checks
from ..mdp import MDP
from ..softmax import Softmax
from .devices import STATES, mesh_of_one

__all__ = ["check_callback", "check_softmax", "mesh_of"]


def check_softmax(softmax: object, mdp: MDP) -> None:
    """Raise unless it is a softmax with one parameter, or one for each state."""
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    for leaf in jax.tree.leaves(softmax):
        if np.ndim(leaf) and len(leaf) != mdp.n_states:
            raise ValueError(
                f"`softmax` must have one parameter, or one for each of the {mdp.n_states} states, "
                f"got the shape {np.shape(leaf)}"
            )


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
