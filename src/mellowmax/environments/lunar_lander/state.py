"""The state of a lander, the inputs of a step and its result, as named tuples."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..._typing import DType, PyTree
from .arrays.vectors import Array, Vector
from .game.terrain import EDGES

__all__ = [
    "Contact",
    "Dispersion",
    "Inputs",
    "Joint",
    "Leg",
    "Motion",
    "Place",
    "Point",
    "Speed",
    "State",
    "Step",
    "World",
    "no_contact",
    "state_dtypes",
]


class Place(NamedTuple):
    """The position of a body."""

    centre: Vector
    """The centre of mass."""
    angle: Array


class Speed(NamedTuple):
    """The velocity of a body."""

    velocity: Vector
    """The velocity of the centre of mass."""
    spin: Array
    """The angular velocity."""


class Motion(NamedTuple):
    """The position and the velocity of a body."""

    place: Place
    speed: Speed


class Joint(NamedTuple):
    """The impulses of a revolute joint in the last step, which warm-start the next one."""

    impulse: Vector
    """The impulse that holds the anchors together."""
    limit_impulse: Array
    """The angular impulse of the limit."""
    motor_impulse: Array
    """The angular impulse of the motor."""
    limit_state: Array
    """-1 at the lower limit, 1 at the upper one, 0 between them."""


class Point(NamedTuple):
    """A point of contact and its impulses in the last step."""

    feature: Array
    """The features that touch there, by which the next step recognises the point; -1 for no point.
    """
    normal_impulse: Array
    tangent_impulse: Array
    """The impulse of friction."""


class Contact(NamedTuple):
    """The contact of a leg with an edge of the terrain."""

    edge: Array
    """The number of the edge, 10 for the floor; -1 for no contact."""
    first: Point
    second: Point


class Leg(NamedTuple):
    """A leg, its joint with the hull, and its contacts with up to two edges."""

    motion: Motion
    joint: Joint
    first: Contact
    second: Contact
    on_ground: Array
    """The observed flag. As in Gymnasium it becomes False when a contact ends, even if another one
    remains."""
    newest: Array
    """The edge that the leg came near to last, plus 16 if it is near two; -1 if it is near none."""


class State(NamedTuple):
    """The state of one lander; `vmap`ped, every array has an axis of landers."""

    hull: Motion
    right: Leg
    """The leg at +x, leg 0 of the observation."""
    left: Leg
    terrain: tuple[Array, ...]
    """The height of the ground at x = 0, 2, ..., 20."""
    shaping: Array
    """The potential whose change is the reward."""
    rest: Array
    """The number of steps since anything last moved."""
    wind: Array
    """The position in the pattern of gusts."""
    turbulence: Array
    """The position in the pattern of turbulence."""
    fresh: Array
    """Is the next step that of `reset`? The legs are then not yet where the joints hold them."""
    over: Array
    """Has the episode ended? Then nothing changes any more."""
    broken: Array
    """Did it end because a number became infinite or NaN? The rest is then the state before that.
    """


class World(NamedTuple):
    """The parameters of a lander's world, as arrays."""

    gravity: Array
    wind: Array
    """The force of the strongest gust."""
    turbulence: Array
    """The torque of the strongest gust."""
    height: Array
    """The height in metres that is observed as 1."""


class Dispersion(NamedTuple):
    """Random numbers in [-1, 1) by which the nozzle of an engine is off in a step."""

    along: Array
    """The offset along the axis of the hull."""
    across: Array
    """The offset across it."""


class Inputs(NamedTuple):
    """What a step takes besides the state."""

    action: Array | npt.NDArray[np.int32]
    """0 nothing, 1 left engine, 2 main engine, 3 right engine."""
    dispersion: Dispersion
    world: World


class Step(NamedTuple):
    """The result of a step."""

    state: PyTree
    """A `State`, or in `environment` the packed numbers of one."""
    reward: Array
    terminated: Array


def no_contact(like: Array) -> Contact:
    """The contact of a leg in the air."""
    none = jnp.full_like(like, -1, jnp.int32)
    point = Point(none, jnp.zeros_like(like), jnp.zeros_like(like))
    return Contact(none, point, point)


def state_dtypes() -> State:
    """A state whose leaves are the dtypes of its numbers."""
    number: DType = np.float32
    whole: DType = np.int32
    truth: DType = np.bool_
    vector = Vector(number, number)
    motion = Motion(Place(vector, number), Speed(vector, number))
    point = Point(whole, number, number)
    contact = Contact(whole, point, point)
    leg = Leg(motion, Joint(vector, number, number, whole), contact, contact, truth, whole)
    terrain = (number,) * (EDGES + 1)
    return State(motion, leg, leg, terrain, number, *3 * (whole,), *3 * (truth,))
