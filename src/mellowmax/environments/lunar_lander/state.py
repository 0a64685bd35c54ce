"""What is kept of a lander from one step to the next: plain numbers in named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays.vectors import Array, Vector
from .game.terrain import EDGES

__all__ = [
    "Contact",
    "Joint",
    "Leg",
    "Motion",
    "Place",
    "Point",
    "Speed",
    "State",
    "Step",
    "kinds",
]


class Place(NamedTuple):
    """Where a body is."""

    centre: Vector
    """Of its mass."""
    angle: Array


class Speed(NamedTuple):
    """How a body moves."""

    velocity: Vector
    """Of its centre of mass."""
    spin: Array


class Motion(NamedTuple):
    """Where a body is and how it moves."""

    place: Place
    speed: Speed


class Joint(NamedTuple):
    """What a hinge remembers: the impulses of the last step, which the next one begins with."""

    pull: Vector
    """Of the anchor."""
    limit: Array
    """Of the limit of its angle."""
    motor: Array
    at: Array
    """-1 at its lower limit, 1 at its upper one, 0 between them."""


class Point(NamedTuple):
    """A point of contact, known again in the next step by the features that meet there."""

    feature: Array
    """-1 where there is no point."""
    normal: Array
    """The impulse across the contact."""
    tangent: Array
    """The impulse of friction."""


class Contact(NamedTuple):
    """A leg on an edge of the terrain."""

    edge: Array
    """Its number, 10 for the floor; -1 where there is no contact."""
    first: Point
    second: Point


class Leg(NamedTuple):
    """A leg, its hinge, and its contacts with up to two edges."""

    motion: Motion
    joint: Joint
    first: Contact
    second: Contact
    on_ground: Array
    """What is observed. As in Gymnasium, it is False once a contact has ended, if another lasts."""
    newest: Array
    """The edge that it came near to last, 16 more if it is near to two; -1 if to none."""


class State(NamedTuple):
    """One lander; `vmap`ped, every array has the axis of the landers."""

    hull: Motion
    right: Leg
    """The leg at +x, leg 0 of the observation."""
    left: Leg
    terrain: tuple[Array, ...]
    """The height of the ground at x = 0, 2, ..., 20."""
    shaping: Array
    """What the reward is the difference of."""
    rest: Array
    """For how many steps nothing has moved."""
    wind: Array
    """Where in the pattern of gusts it is."""
    turbulence: Array
    fresh: Array
    """Before the step that `reset` takes: the legs are not yet in their place."""
    over: Array
    """Has the episode ended? Then nothing changes any more."""
    broken: Array
    """Has it ended because a number was not finite any more? Then the rest is as it was before."""


class Step(NamedTuple):
    """What a step leads to."""

    state: Any
    """A `State`, or in `environment` its numbers."""
    reward: Array
    terminated: Array


def kinds() -> State:
    """A state whose leaves are the kinds of its numbers."""
    number, whole, truth = np.float32, np.int32, np.bool_
    vector = Vector(number, number)
    motion = Motion(Place(vector, number), Speed(vector, number))
    point = Point(whole, number, number)
    contact = Contact(whole, point, point)
    leg = Leg(motion, Joint(vector, number, number, whole), contact, contact, truth, whole)
    terrain = (number,) * (EDGES + 1)
    tree: Any = State(motion, leg, leg, terrain, number, *3 * (whole,), *3 * (truth,))
    state: State = tree
    return state
