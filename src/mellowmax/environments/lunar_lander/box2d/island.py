"""A step of the whole lander: velocities by sequential impulses, then positions, then rest.

Hinges first, then contacts, 180 times over; the impulses of the last step are the first guess. Then
the bodies move, and what overlaps or has come apart is put right in up to 60 passes, contacts
first.

Two things save time and change nothing that can be seen. A lander whose velocities have changed by
less than `SETTLED` within `CHUNK` iterations is done: what would go on is that each motor gains the
same impulse against its limit, which `joints.settled` adds at once. And a block of landers without
first or second contacts skips them. That the hull's own contacts are not solved changes nothing
either: a touch of the hull ends the episode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arrays.legs import Both, apart, beside, of_each
from ..arrays.materialise import keep
from ..arrays.vectors import Array, anywhere, dot, select
from ..game.bodies import LEFT, LEG, LINEAR_SLOP, MAX_ROTATION, MAX_TRANSLATION, RIGHT
from ..state import Contact, Joint, Motion, Place, Speed
from . import contacts, joints
from .contacts import ContactRow, Pressed, friction_on, weight_of
from .joints import JointRow
from .manifold import Manifold

__all__ = [
    "CHUNK",
    "POSITION_ITERATIONS",
    "VELOCITY_ITERATIONS",
    "Manifolds",
    "Pushed",
    "Settled",
    "integrate",
    "solve_positions",
    "solve_velocities",
]

VELOCITY_ITERATIONS = 180
POSITION_ITERATIONS = 60
CHUNK = 6
"""How many iterations there are between two looks at whether a lander is done."""
SETTLED = 1e-6
HINGES = (RIGHT, LEFT)
LEG_WEIGHT = weight_of(LEG)

T = TypeVar("T")


class Pushed(NamedTuple):
    """A lander once the velocities are solved."""

    hull: Speed
    legs: tuple[Speed, Speed]
    joints: tuple[Joint, Joint]
    pressed: tuple[tuple[Pressed, Pressed], ...]
    """Of both legs, by the first and the second contact."""
    solved: Array
    """Was no iteration left out?"""


class Settled(NamedTuple):
    """A lander once the positions are solved."""

    hull: Place
    legs: tuple[Place, Place]
    fits: Array
    """Are all positions right?"""


class _Impulses(NamedTuple):
    """What the iterations change."""

    hull: Speed
    legs: tuple[Speed, Speed]
    joints: tuple[Joint, Joint]
    pressed: tuple[Both, ...]
    """By the first and the second contact."""


Manifolds: TypeAlias = tuple[tuple[Manifold, Manifold], ...]
"""Of both legs, by the first and the second contact; none for landers in free flight."""


def solve_velocities(
    hull: Motion,
    legs: tuple[Motion, Motion],
    joints_before: tuple[Joint, Joint],
    contacts_before: tuple[tuple[Contact, ...], tuple[Contact, ...]],
    manifolds: Manifolds,
    active: Array,
    most: int = VELOCITY_ITERATIONS,
) -> Pushed:
    """The velocities that keep legs on hinges and out of the ground, and the impulses that do it.

    Args:
        hull: the hull, with the velocities that gravity and engines have given it.
        legs: the legs, likewise.
        joints_before: their hinges, with the impulses of the last step.
        contacts_before: the contacts of each leg, likewise.
        manifolds: how each of the contacts touches.
        active: which landers are solved at all.
        most: how many iterations there may be, whole chunks.
    """
    touching = _touching(manifolds, active)
    rows: list[JointRow] = []
    contact_rows: list[list[ContactRow]] = [[] for _ in manifolds]
    hinges: list[Joint] = []
    pressed: list[list[Pressed]] = [[] for _ in manifolds]
    speeds: list[Speed] = []
    hull_speed = hull.speed
    for i, (hinge, leg) in enumerate(zip(HINGES, legs, strict=True)):
        row, joint = joints.prepare(hinge, joints_before[i], hull.place, leg.place)
        speed = leg.speed
        for j, contact in enumerate(contacts_before[i]):
            contact_row = contacts.prepare(
                manifolds[j][i],
                friction_on(contact.edge, LEG.friction),
                leg.place.centre,
                LEG_WEIGHT,
            )
            first, speed = contacts.warm_start(contact_row, contact, speed, LEG_WEIGHT)
            contact_rows[j].append(contact_row)
            pressed[j].append(first)
        hull_speed, speed = joints.warm_start(row, joint, hull_speed, speed)
        rows.append(row)
        hinges.append(joint)
        speeds.append(speed)

    rows_of_both = [beside(*of_legs) for of_legs in contact_rows]

    def press(row: ContactRow, now: tuple[Pressed, Speed]) -> tuple[Pressed, Speed]:
        """One pass over a contact of a leg."""
        return contacts.press(row, *now, LEG_WEIGHT)

    def iterate(now: _Impulses) -> _Impulses:
        hull, legs, hinges = now.hull, list(now.legs), list(now.joints)
        for i in (1, 0):
            hinges[i], hull, legs[i] = joints.pull(HINGES[i], rows[i], hinges[i], hull, legs[i])
        pressed, speeds = [], (legs[0], legs[1])
        if manifolds:
            both = beside(*speeds)
            for j, row in enumerate(rows_of_both):
                old = of_each(lambda *each: each, now.pressed[j], both)
                new = _if(touching[j], functools.partial(of_each, press, row, old), old)
                pressed.append(of_each(lambda each: each[0], new))
                both = of_each(lambda each: each[1], new)
            speeds = apart(both)
        return _Impulses(hull, speeds, (hinges[0], hinges[1]), tuple(pressed))

    def chunk(carry: tuple[Array, Array, _Impulses]) -> tuple[Array, Array, _Impulses]:
        done, going, now = carry

        first, last = np.int32(0), np.int32(CHUNK)
        new = lax.fori_loop(first, last, lambda _, x: iterate(x), now)
        done = done + CHUNK
        rest = (VELOCITY_ITERATIONS - done).astype(jnp.float32)
        change = keep(_change((now.hull, now.legs), (new.hull, new.legs)))
        ended = [
            joints.settled(row, joint, (joint.motor - old.motor) * (1 / CHUNK), rest)
            for row, joint, old in zip(rows, new.joints, now.joints, strict=True)
        ]
        ended = keep(ended)
        ends = keep((change <= SETTLED) & ended[0][1] & ended[1][1])
        finished = new._replace(joints=(ended[0][0], ended[1][0]))
        new = select(going, select(ends, finished, new), now)
        return done, going & ~ends, new

    def goes_on(carry: tuple[Array, Array, _Impulses]) -> Array:
        done, going, _ = carry
        return (done < most) & anywhere(going)

    begun = _Impulses(
        hull_speed,
        (speeds[0], speeds[1]),
        (hinges[0], hinges[1]),
        tuple(beside(*of_legs) for of_legs in pressed),
    )
    final: _Impulses
    _, going, final = lax.while_loop(goes_on, chunk, (jnp.int32(0), active, begun))
    solved = jnp.ones_like(active) if most == VELOCITY_ITERATIONS else ~going
    of_legs = tuple(apart(both) for both in final.pressed)
    return Pushed(final.hull, final.legs, final.joints, of_legs, solved)


def _touching(manifolds: Manifolds, active: Array) -> tuple[Array, ...]:
    """Has any lander of the block a first contact, and has any a second one?"""
    return tuple(anywhere(active & (right.touches | left.touches)) for right, left in manifolds)


def _if(condition: Array, function: Callable[[], T], otherwise: T) -> T:
    """What a function gives if anything in the block needs it."""
    result: T = lax.cond(condition, function, lambda: otherwise)
    return result


def _change(before: Any, after: Any) -> Array:
    """The greatest change of any number."""
    differences = [
        jnp.abs(a - b) for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True)
    ]
    greatest = differences[0]
    for difference in differences[1:]:
        greatest = jnp.maximum(greatest, difference)
    return greatest


def integrate(place: Place, speed: Speed, seconds: float | Array) -> tuple[Speed, Place]:
    """Let a body move for some time, no further than a body may within a step."""
    way = seconds * speed.velocity
    square = dot(way, way)
    far = square > MAX_TRANSLATION**2
    ratio = MAX_TRANSLATION / jnp.sqrt(select(far, square, 1.0))
    velocity = select(far, speed.velocity * ratio, speed.velocity)
    turn = seconds * speed.spin
    fast = turn * turn > MAX_ROTATION**2
    ratio = MAX_ROTATION / select(fast, jnp.abs(turn), 1.0)
    spin = select(fast, speed.spin * ratio, speed.spin)
    moved = Place(place.centre + seconds * velocity, place.angle + seconds * spin)
    return Speed(velocity, spin), moved


def solve_positions(
    hull: Place,
    legs: tuple[Place, Place],
    limits: tuple[Array, Array],
    manifolds: Manifolds,
    active: Array,
    most: int = POSITION_ITERATIONS,
) -> Settled:
    """The bodies once nothing overlaps and no hinge is apart, as far as 60 passes lead.

    Args:
        hull: where the hull is.
        legs: where the legs are.
        limits: the limit that each hinge is at.
        manifolds: how the legs touched the ground when the step began.
        active: which landers are solved at all.
        most: how many passes there may be.
    """
    touching = _touching(manifolds, active)
    manifolds_of_both = [beside(*of_legs) for of_legs in manifolds]

    def push_out(manifold: Manifold, now: tuple[Place, Array]) -> tuple[Place, Array]:
        """One pass over a contact of a leg: where it is then, and did it fit?"""
        leg, fits = now
        place, deepest = contacts.correct_position(manifold, leg, LEG_WEIGHT, 0.2)
        return place, fits & (deepest >= -3 * LINEAR_SLOP)

    def one_pass(carry: Any) -> Any:
        done, going, hull, legs = carry
        new_hull, new_legs, right = hull, list(legs), jnp.ones_like(going)
        if manifolds:
            now = beside(*((leg, right) for leg in legs))
            for here, manifold in zip(touching, manifolds_of_both, strict=True):
                now = _if(here, functools.partial(of_each, push_out, manifold, now), now)
            (new_legs[0], right), (new_legs[1], left) = apart(now)
            right = right & left
        for i in (1, 0):
            new_hull, new_legs[i], fits = joints.correct_position(
                HINGES[i], limits[i], new_hull, new_legs[i]
            )
            new_hull, new_legs[i], right = keep((new_hull, new_legs[i], right & fits))
        hull, legs = select(going, (new_hull, tuple(new_legs)), (hull, legs))
        return done + 1, going & ~right, hull, legs

    def goes_on(carry: Any) -> Array:
        done, going, _, _ = carry
        return (done < most) & anywhere(going)

    start = (jnp.int32(0), active, hull, legs)
    _, going, hull, legs = lax.while_loop(goes_on, one_pass, start)
    return Settled(hull, legs, ~going)
