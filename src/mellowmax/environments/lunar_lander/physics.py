"""A step of a block of landers, from the engines to the reward. Random numbers are handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from . import contacts
from .bodies import ANGULAR_SLOP, HULL, SECONDS, VIEW
from .continuous import Flight, fly_on
from .engines import fire, gust
from .keep import keep
from .manifold import Manifold, no_manifold
from .solve import LegSolve, solve
from .state import Contact, Leg, Motion, Place, Point, Speed, State, Step
from .terrain import PAD_HEIGHT
from .touching import Shape, any_body, manifold_with, near_ground, nearby_edges
from .vectors import Array, Vector, anywhere, dot, pose_at, select

__all__ = ["World", "advance", "no_contact", "observation"]

REST_STEPS = 25
"""For how long nothing may move: half a second."""
REST_SPEED = 0.01
REST_SPIN = ANGULAR_SLOP
LEG_DOWN = 18 / 30

T = TypeVar("T")


class World(NamedTuple):
    """What a step needs to know of the world, as numbers."""

    gravity: Array
    wind: Array
    """The force of the strongest gust."""
    turbulence: Array
    """The torque of the strongest gust."""
    height: Array
    """How many metres are a 1 in the observed height."""


def advance(state: State, action: Array, one: Array, two: Array, world: World) -> Step:
    """One step of each lander of a block.

    Args:
        state: the landers; one whose episode is over stays as it is.
        action: 0 nothing, 1 left engine, 2 main engine, 3 right engine.
        one: a random number in [-1, 1), of the engine's dispersion.
        two: another.
        world: the world.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    active = ~state.over
    fired = keep(fire(state.hull, action, one, two))
    calm = state.right.on_ground | state.left.on_ground
    wind = jnp.where(calm, 0.0, gust(state.wind) * world.wind)
    turbulence = jnp.where(calm, 0.0, gust(state.turbulence) * world.turbulence)
    fall = SECONDS * world.gravity
    velocity = fired.speed.velocity
    hull = state.hull._replace(
        speed=Speed(
            Vector(velocity.x + SECONDS * HULL.inverse_mass * wind, velocity.y + fall),
            fired.speed.spin + SECONDS * HULL.inverse_inertia * turbulence,
        )
    )
    right, left = (_fall(leg, fall) for leg in (state.right, state.left))

    (right, left), solves, crash = _touch(hull.place, (right, left), state.terrain, active)
    moved, right_solve, left_solve, solved = solve(hull, solves[0], solves[1], active)
    still = solved
    for motion in (moved, right_solve.motion, left_solve.motion):
        slow = dot(motion.speed.velocity, motion.speed.velocity) <= REST_SPEED**2
        turns = motion.speed.spin * motion.speed.spin > REST_SPIN**2
        still = still & slow & ~turns
    rest = keep(jnp.where(still, state.rest + 1, 0))
    asleep = rest >= REST_STEPS

    flights = _fly_on(hull, moved, (right, left), (right_solve, left_solve), state, active & ~asleep)
    hull_flight, right_flight, left_flight = flights
    crash = crash | hull_flight.on_ground
    hull = Motion(hull_flight.end, hull_flight.speed)
    legs = [
        Leg(
            Motion(flight.end, flight.speed),
            solved_leg.joint,
            flight.contacts[0],
            flight.contacts[1],
            flight.on_ground,
        )
        for flight, solved_leg in (
            (right_flight, right_solve),
            (left_flight, left_solve),
        )
    ]
    new = state._replace(
        hull=hull,
        right=legs[0],
        left=legs[1],
        rest=rest,
        wind=jnp.where(calm, state.wind, state.wind + 1),
        turbulence=jnp.where(calm, state.turbulence, state.turbulence + 1),
    )
    seen = keep(observation(new, world.height))
    shaping = keep(_shaping(seen))
    reward = jnp.where(state.fresh, 0.0, shaping - state.shaping) - fired.fuel
    lost = crash | (jnp.abs(seen[0]) >= 1.0)
    reward = jnp.where(lost, -100.0, reward)
    reward = jnp.where(asleep, 100.0, reward)
    finite, reward, lost = keep((_is_finite(new), reward, lost))
    ended = (lost | asleep) & ~state.fresh | ~finite
    reward = jnp.where(finite, jnp.where(state.fresh, 0.0, reward), -100.0)
    new = new._replace(shaping=shaping, fresh=jnp.zeros_like(state.fresh), over=ended)
    new = select(active & finite, new, state._replace(over=state.over | ended))
    return Step(new, jnp.where(active, reward, 0.0), new.over)


def observation(state: State, height: Array) -> tuple[Array, ...]:
    """The eight numbers that are observed of a lander."""
    place, speed = state.hull
    origin = pose_at(place.centre, place.angle, HULL.centre).origin
    return (
        (origin.x - VIEW.x / 2) / (VIEW.x / 2),
        (origin.y - (PAD_HEIGHT + LEG_DOWN)) / height,
        speed.velocity.x * (VIEW.x / 2 * SECONDS),
        speed.velocity.y * (VIEW.y / 2 * SECONDS),
        place.angle,
        speed.spin * (20.0 * SECONDS),
        state.right.on_ground.astype(jnp.float32),
        state.left.on_ground.astype(jnp.float32),
    )


def _shaping(seen: Sequence[Array]) -> Array:
    """The closer to the pad, the slower and the more upright, the better."""
    x, y, velocity_x, velocity_y, angle, _, right, left = seen
    return (
        -100.0 * jnp.sqrt(x * x + y * y)
        - 100.0 * jnp.sqrt(velocity_x * velocity_x + velocity_y * velocity_y)
        - 100.0 * jnp.abs(angle)
        + 10.0 * right
        + 10.0 * left
    )


def _fall(leg: Leg, fall: Array) -> Leg:
    place, speed = leg.motion
    velocity = Vector(speed.velocity.x, speed.velocity.y + fall)
    return leg._replace(motion=Motion(place, Speed(velocity, speed.spin)))


def no_contact(like: Array) -> Contact:
    """The contact of a leg in the air."""
    none = jnp.full_like(like, -1, jnp.int32)
    point = Point(none, jnp.zeros_like(like), jnp.zeros_like(like))
    return Contact(none, point, point)


class _Found(NamedTuple):
    """Up to two edges that a body touches; what touches comes first."""

    contacts: tuple[Contact, Contact]
    manifolds: tuple[Manifold, Manifold]


def _touch(
    hull: Place, legs: tuple[Leg, Leg], terrain: Sequence[Array], active: Array
) -> tuple[tuple[Leg, Leg], tuple[LegSolve, LegSolve], Array]:
    """What touches the ground where it is now: contacts that begin, last and end."""
    none, nothing = no_contact(hull.angle), no_manifold(hull.angle)
    in_air = _Found((none, none), (nothing, nothing))
    bodies = [
        (hull, (none, none)),
        *((leg.motion.place, (leg.first, leg.second)) for leg in legs),
    ]

    def touch(shape: Shape, place: Place, old: tuple[Contact, Contact]) -> _Found:
        edges = nearby_edges(shape, place)
        one, two = (manifold_with(shape, place, edge, terrain) for edge in edges)
        first, second = (
            contacts.remember(old, edge, manifold)
            for edge, manifold in zip(edges, (one, two), strict=True)
        )
        return select(
            one.touches,
            _Found((first, second), (one, two)),
            _Found((second, first), (two, one)),
        )

    def look_at(i: Array, found: tuple[_Found, ...]) -> tuple[_Found, ...]:
        place, old = _with_number(i, bodies)
        shape = any_body(i == 0)
        near, _, _ = near_ground(shape, place, place, terrain)
        now = lax.cond(
            anywhere(active & near), lambda: touch(shape, place, old), lambda: in_air
        )
        return _replaced(i, found, now)

    start: tuple[_Found, ...] = (in_air, in_air, in_air)
    found = lax.fori_loop(jnp.int32(0), _bodies(active), look_at, start)
    solves = tuple(
        LegSolve(leg.motion, leg.joint, each.contacts, each.manifolds)
        for leg, each in zip(legs, found[1:], strict=True)
    )
    touched = tuple(
        leg._replace(
            first=each.contacts[0],
            second=each.contacts[1],
            on_ground=contacts.touch_events(
                leg.on_ground, (leg.first, leg.second), each.contacts
            ),
        )
        for leg, each in zip(legs, found[1:], strict=True)
    )
    return touched, solves, found[0].manifolds[0].touches  # type: ignore[return-value]


def _bodies(active: Array) -> Array:
    """How many bodies are looked at: three, or none.

    A compiler that knew would copy the loop. (Kernels know no choice between two plain numbers.)
    """
    return 3 * anywhere(active).astype(jnp.int32)


def _with_number(i: Array, bodies: Sequence[T]) -> T:
    """What belongs to one of the three bodies: 0 the hull, 1 and 2 the legs."""
    return select(i == 0, bodies[0], select(i == 1, bodies[1], bodies[2]))


def _replaced(i: Array, bodies: Sequence[T], new: T) -> tuple[T, ...]:
    return tuple(select(i == j, new, old) for j, old in enumerate(bodies))


def _fly_on(
    before: Motion,
    hull: Motion,
    legs: tuple[Leg, Leg],
    solved: tuple[LegSolve, LegSolve],
    state: State,
    active: Array,
) -> tuple[Flight, Flight, Flight]:
    """Each body's way with what it meets: the hull's, and the legs'."""
    like = before.place.angle
    zero = jnp.zeros_like(like)
    none = no_contact(like)
    no = jnp.zeros_like(active)
    missed = jnp.zeros_like(like, jnp.int32)
    flights = [
        Flight(before.place, hull.place, hull.speed, zero, (none, none), no, missed),
        *(
            Flight(
                leg.motion.place,
                new.motion.place,
                new.motion.speed,
                zero,
                new.contacts,
                leg.on_ground,
                missed,
            )
            for leg, new in zip(legs, solved, strict=True)
        ),
    ]

    def one(i: Array, flights: tuple[Flight, ...]) -> tuple[Flight, ...]:
        flight = fly_on(_with_number(i, flights), any_body(i == 0), state.terrain, active)
        return _replaced(i, flights, flight)

    hull_flight, right, left = lax.fori_loop(jnp.int32(0), _bodies(active), one, tuple(flights))
    return hull_flight, right, left


def _is_finite(state: State) -> Array:
    finite = ~jnp.zeros_like(state.over)
    for x in jax.tree.leaves((state.hull, state.right.motion, state.left.motion)):
        finite = finite & (jnp.abs(x) < 1e30)  # NaN is not
    return finite
