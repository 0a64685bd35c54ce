"""A step of the whole lander: velocities by sequential impulses, then positions, then rest.

Hinges first, then contacts, 180 times over; the impulses of the last step are the first guess. Then
the bodies move, and what overlaps or has come apart is put right in up to 60 passes, contacts first.

Two things save time and change nothing that can be seen. A lander whose velocities have changed by
less than `SETTLED` within an iteration is done: what would go on is that each motor gains the same
impulse against its limit, which `joints.settled` adds at once. And hinges and contacts are solved
for a whole block of landers, with no contacts, with one for each leg, or with two, as the block
needs. That the hull's own contacts are not solved changes nothing either: a touch of the hull ends
the episode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import contacts, joints
from .bodies import LEFT, LEG, LINEAR_SLOP, MAX_ROTATION, MAX_TRANSLATION, RIGHT, SECONDS
from .contacts import ContactRow, Pressed, friction_on, weight_of
from .joints import JointRow
from .keep import keep, repeat
from .manifold import Manifold
from .state import Contact, Joint, Motion, Place, Speed
from .vectors import Array, anywhere, dot, select

__all__ = ["LegSolve", "integrate", "solve"]

VELOCITY_ITERATIONS = 180
POSITION_ITERATIONS = 60
CHUNK = 6
"""How many iterations there are between two looks at whether a lander is done."""
SETTLED = 1e-6
HINGES = (RIGHT, LEFT)
LEG_WEIGHT = weight_of(LEG)


class LegSolve(NamedTuple):
    """A leg, as the solver takes and gives it."""

    motion: Motion
    joint: Joint
    contacts: tuple[Contact, Contact]
    manifolds: tuple[Manifold, Manifold]


class _Impulses(NamedTuple):
    """What the iterations change."""

    hull: Speed
    legs: tuple[Speed, Speed]
    joints: tuple[Joint, Joint]
    pressed: tuple[tuple[Pressed, ...], ...]


def solve(
    hull: Motion, right: LegSolve, left: LegSolve, active: Array
) -> tuple[Motion, LegSolve, LegSolve, Array]:
    """Move a lander over a step.

    Args:
        hull: the hull, with the velocities that gravity and engines have given it.
        right: a leg, likewise, with its contacts.
        left: the other.
        active: which landers are solved at all.

    Returns:
        The hull and the legs, and whether all positions are right.
    """
    legs = (right, left)

    def with_contacts(count: int) -> Any:
        return lambda: _solve(hull, legs, active, count)

    def some() -> Any:
        two = anywhere(active & (right.manifolds[1].touches | left.manifolds[1].touches))
        return lax.cond(two, with_contacts(2), with_contacts(1))

    one = anywhere(active & (right.manifolds[0].touches | left.manifolds[0].touches))
    hull, (right, left), solved = lax.cond(one, some, with_contacts(0))
    return hull, right, left, solved


def _solve(
    hull: Motion, legs: tuple[LegSolve, LegSolve], active: Array, count: int
) -> tuple[Motion, tuple[LegSolve, LegSolve], Array]:
    hull_speed, speeds, hinges, pressed = _solve_velocities(hull, legs, active, count)
    legs = tuple(
        leg._replace(
            joint=hinge,
            contacts=tuple(
                _stored(leg.contacts[i], pressed_leg[i]) if i < count else leg.contacts[i]
                for i in range(2)
            ),
        )
        for leg, hinge, pressed_leg in zip(legs, hinges, pressed, strict=True)
    )  # type: ignore[assignment]
    hull_speed, hull_place = integrate(hull.place, hull_speed, SECONDS)
    moved = [
        integrate(leg.motion.place, speed, SECONDS) for leg, speed in zip(legs, speeds, strict=True)
    ]
    hull_place, places, solved = _solve_positions(
        hull_place, tuple(place for _, place in moved), legs, active, count
    )
    right, left = (
        leg._replace(motion=Motion(place, speed))
        for leg, place, (speed, _) in zip(legs, places, moved, strict=True)
    )
    return Motion(hull_place, hull_speed), (right, left), solved


def _stored(contact: Contact, pressed: Pressed) -> Contact:
    first, second = contact.first, contact.second
    return contact._replace(
        first=first._replace(normal=pressed.first, tangent=pressed.first_tangent),
        second=second._replace(normal=pressed.second, tangent=pressed.second_tangent),
    )


def _solve_velocities(
    hull: Motion, legs: tuple[LegSolve, LegSolve], active: Array, count: int
) -> _Impulses:
    rows: list[JointRow] = []
    contact_rows: list[tuple[ContactRow, ...]] = []
    hinges: list[Joint] = []
    pressed: list[tuple[Pressed, ...]] = []
    speeds: list[Speed] = []
    hull_speed = hull.speed
    for hinge, leg in zip(HINGES, legs, strict=True):
        row, joint = joints.prepare(hinge, leg.joint, hull.place, leg.motion.place)
        speed = leg.motion.speed
        of_leg = []
        begun = []
        for contact, manifold in zip(leg.contacts[:count], leg.manifolds[:count], strict=True):
            contact_row = contacts.prepare(
                manifold,
                friction_on(contact.edge, LEG.friction),
                leg.motion.place.centre,
                LEG_WEIGHT,
            )
            first, speed = contacts.warm_start(contact_row, contact, speed, LEG_WEIGHT)
            of_leg.append(contact_row)
            begun.append(first)
        hull_speed, speed = joints.warm_start(row, joint, hull_speed, speed)
        rows.append(row)
        contact_rows.append(tuple(of_leg))
        hinges.append(joint)
        pressed.append(tuple(begun))
        speeds.append(speed)

    def iterate(now: _Impulses) -> _Impulses:
        hull, speeds, hinges, pressed = (
            now.hull,
            list(now.legs),
            list(now.joints),
            [list(each) for each in now.pressed],
        )
        for i in (1, 0):
            hinges[i], hull, speeds[i] = joints.pull(HINGES[i], rows[i], hinges[i], hull, speeds[i])
        for i in (1, 0):
            for j in range(count):
                pressed[i][j], speeds[i] = contacts.press(
                    contact_rows[i][j], pressed[i][j], speeds[i], LEG_WEIGHT
                )
        return _Impulses(
            hull,
            (speeds[0], speeds[1]),
            (hinges[0], hinges[1]),
            tuple(tuple(each) for each in pressed),
        )

    def chunk(carry: tuple[Array, Array, _Impulses]) -> tuple[Array, Array, _Impulses]:
        done, going, now = carry

        def again(pair: tuple[_Impulses, Any, Any]) -> tuple[_Impulses, Any, Any]:
            last, _, _ = pair
            motors = tuple(joint.motor for joint in last.joints)
            return iterate(last), (last.hull, last.legs), motors

        motors = tuple(joint.motor for joint in now.joints)
        loop = (now, (now.hull, now.legs), motors)
        new, before, motors = repeat(CHUNK, again, loop)
        done = done + CHUNK
        rest = (VELOCITY_ITERATIONS - done).astype(jnp.float32)
        change = keep(_change(before, (new.hull, new.legs)))
        ended = [
            joints.settled(row, joint, motor, rest)
            for row, joint, motor in zip(rows, new.joints, motors, strict=True)
        ]
        ended = keep(ended)
        ends = keep((change <= SETTLED) & ended[0][1] & ended[1][1])
        finished = new._replace(joints=(ended[0][0], ended[1][0]))
        new = select(going, select(ends, finished, new), now)
        return done, going & ~ends, new

    def goes_on(carry: tuple[Array, Array, _Impulses]) -> Array:
        done, going, _ = carry
        return (done < VELOCITY_ITERATIONS) & anywhere(going)

    begun_all = _Impulses(
        hull_speed, (speeds[0], speeds[1]), (hinges[0], hinges[1]), tuple(pressed)
    )
    return lax.while_loop(goes_on, chunk, (jnp.int32(0), active, begun_all))[2]


def _change(before: Any, after: Any) -> Array:
    """The greatest change of any number."""
    differences = [
        jnp.abs(a - b)
        for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True)
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
    ratio = MAX_TRANSLATION / jnp.sqrt(jnp.where(far, square, 1.0))
    velocity = select(far, speed.velocity * ratio, speed.velocity)
    turn = seconds * speed.spin
    fast = turn * turn > MAX_ROTATION**2
    ratio = MAX_ROTATION / jnp.where(fast, jnp.abs(turn), 1.0)
    spin = jnp.where(fast, speed.spin * ratio, speed.spin)
    moved = Place(place.centre + seconds * velocity, place.angle + seconds * spin)
    return Speed(velocity, spin), moved


def _solve_positions(
    hull: Place,
    legs: tuple[Place, ...],
    solved_legs: tuple[LegSolve, LegSolve],
    active: Array,
    count: int,
) -> tuple[Place, tuple[Place, ...], Array]:
    """The bodies once nothing overlaps and no hinge is apart, as far as 60 passes lead."""

    def one_pass(carry: Any) -> Any:
        done, going, hull, legs = carry
        new_hull, new_legs = hull, list(legs)
        right = jnp.ones_like(going)
        for i in (1, 0):
            for manifold in solved_legs[i].manifolds[:count]:
                new_legs[i], deepest = contacts.correct_position(
                    manifold, new_legs[i], LEG_WEIGHT, 0.2
                )
                right = right & (deepest >= -3 * LINEAR_SLOP)
        for i in (1, 0):
            at = solved_legs[i].joint.at
            new_hull, new_legs[i], fits = joints.correct_position(
                HINGES[i], at, new_hull, new_legs[i]
            )
            new_hull, new_legs[i], right = keep((new_hull, new_legs[i], right & fits))
        hull, legs = select(going, (new_hull, tuple(new_legs)), (hull, legs))
        return done + 1, going & ~right, hull, legs

    def goes_on(carry: Any) -> Array:
        done, going, _, _ = carry
        return (done < POSITION_ITERATIONS) & anywhere(going)

    start = (jnp.int32(0), active, hull, legs)
    _, going, hull, legs = lax.while_loop(goes_on, one_pass, start)
    return hull, legs, ~going


