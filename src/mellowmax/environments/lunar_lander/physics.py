"""A step of landers, from the engines to the reward. Random numbers are handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from . import contacts
from .bodies import ANGULAR_SLOP, HULL, SECONDS, VIEW
from .contacts import no_contact
from .continuous import fly_on
from .engines import fire, gust
from .keep import keep
from .solve import integrate, solve_positions, solve_velocities
from .state import Leg, Motion, Speed, State, Step
from .terrain import PAD_HEIGHT
from .touching import PAIR, came_near, touch
from .vectors import Array, Vector, dot, pose_at, select

__all__ = ["World", "advance", "observation"]

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


def _at_once(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def advance(
    state: State,
    action: Array,
    one: Array,
    two: Array,
    world: World,
    run: Callable[..., Any] = _at_once,
) -> Step:
    """One step of each of a row of landers.

    Args:
        state: the landers; one whose episode is over stays as it is.
        action: 0 nothing, 1 left engine, 2 main engine, 3 right engine.
        one: a random number in [-1, 1), of the engine's dispersion.
        two: another.
        world: the world.
        run: what calls the four long parts, each with arrays of one length: `touch` and `fly_on`
            for a row of bodies, `solve_velocities` and `solve_positions` for a row of landers.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    active = ~state.over
    fired = keep(fire(state.hull, select(state.fresh, 0, action), one, two))
    calm = state.right.on_ground | state.left.on_ground
    wind = select(calm, 0.0, gust(state.wind) * world.wind)
    turbulence = select(calm, 0.0, gust(state.turbulence) * world.turbulence)
    fall = SECONDS * world.gravity
    velocity = fired.speed.velocity
    hull = state.hull._replace(
        speed=Speed(
            Vector(velocity.x + SECONDS * HULL.inverse_mass * wind, velocity.y + fall),
            fired.speed.spin + SECONDS * HULL.inverse_inertia * turbulence,
        )
    )
    legs = (state.right, state.left)
    none, no = no_contact(fall), jnp.zeros_like(active)

    # A row of bodies: all hulls, all right legs, all left legs.
    is_hull, terrain = _row(~no, no, no), _row(*(3 * (state.terrain,)))
    start = _row(hull.place, *(leg.motion.place for leg in legs))
    old = _row((none, none), *((leg.first, leg.second) for leg in legs))
    newest = tuple(came_near(leg.newest, leg.motion.place, state.terrain) for leg in legs)
    ages = _row(jnp.zeros_like(newest[0]), *newest)
    touched = run(touch, is_hull, start, old, ages, terrain, _row(active, active, active))
    of_hull, *of_legs = _parts(touched)
    on_ground = contacts.touch_events(
        _row(no, *(leg.on_ground for leg in legs)), old, touched.contacts, ages & (PAIR - 1)
    )

    manifolds = tuple(tuple(found.manifolds[i] for found in of_legs) for i in range(2))
    pushed = run(
        solve_velocities,
        hull,
        tuple(_fall(leg.motion, fall) for leg in legs),
        tuple(leg.joint for leg in legs),
        tuple(found.contacts for found in of_legs),
        manifolds,
        active,
    )
    speed, end = keep(integrate(start, _row(pushed.hull, *pushed.legs), SECONDS))
    hull_end, *leg_ends = _parts(end)
    limits = tuple(joint.at for joint in pushed.joints)
    settled = run(solve_positions, hull_end, tuple(leg_ends), limits, manifolds, active)
    still = settled.fits
    for velocity, spin in _parts(speed):
        still = still & (dot(velocity, velocity) <= REST_SPEED**2) & ~(spin * spin > REST_SPIN**2)
    rest = keep(select(still, state.rest + 1, 0))
    asleep = rest >= REST_STEPS

    awake = active & ~asleep
    flown = run(
        fly_on,
        is_hull,
        start,
        _row(settled.hull, *settled.legs),
        speed,
        _row((none, none), *pushed.contacts),
        on_ground & ~is_hull,
        terrain,
        _row(awake, awake, awake),
    )
    hull_flown, *legs_flown = _parts(flown)
    crash = of_hull.manifolds[0].touches | hull_flown.on_ground
    right, left = (
        Leg(
            Motion(end.place, end.speed),
            joint,
            end.contacts[0],
            end.contacts[1],
            end.on_ground,
            near,
        )
        for end, joint, near in zip(legs_flown, pushed.joints, newest, strict=True)
    )
    zero = jnp.zeros_like(hull_flown.speed.spin)
    halted = Speed(Vector(zero, zero), zero)
    new = state._replace(
        # What rests is stopped, as can be seen in the last observation.
        hull=Motion(hull_flown.place, select(asleep, halted, hull_flown.speed)),
        right=right,
        left=left,
        rest=rest,
        wind=select(calm, state.wind, state.wind + 1),
        turbulence=select(calm, state.turbulence, state.turbulence + 1),
    )
    return _judge(state, new, fired.fuel, crash, asleep, world)


def _judge(
    state: State, new: State, fuel: Array, crash: Array, asleep: Array, world: World
) -> Step:
    """What a step has earned, and whether it was the last one."""
    active = ~state.over
    seen = keep(observation(new, world.height))
    shaping = keep(_shaping(seen))
    reward = select(state.fresh, 0.0, shaping - state.shaping) - fuel
    # No lander comes below the floor; one that is put there is lost, and does not fall for ever.
    lost = crash | (jnp.abs(seen[0]) >= 1.0) | (new.hull.place.centre.y < -VIEW.y)
    reward = select(lost, -100.0, reward)
    reward = select(asleep, 100.0, reward)
    finite, reward, lost = keep((_is_finite(new), reward, lost))
    ended = (lost | asleep) & ~state.fresh | ~finite
    reward = select(finite, select(state.fresh, 0.0, reward), -100.0)
    new = new._replace(shaping=shaping, fresh=jnp.zeros_like(state.fresh), over=ended)
    stays = state._replace(over=state.over | ended, broken=state.broken | (active & ~finite))
    new = select(active & finite, new, stays)
    return Step(new, select(active, reward, 0.0), new.over)


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


def _fall(motion: Motion, fall: Array) -> Motion:
    place, (velocity, spin) = motion
    return Motion(place, Speed(Vector(velocity.x, velocity.y + fall), spin))


def _row(*parts: T) -> T:
    """Rows one after another."""
    row: T = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    return row


def _parts(row: T) -> tuple[T, T, T]:
    """The three rows that make up one."""
    first, second, third = (jax.tree.map(lambda x, i=i: x.reshape(3, -1)[i], row) for i in range(3))
    return first, second, third


def _is_finite(state: State) -> Array:
    finite = ~jnp.zeros_like(state.over)
    for x in jax.tree.leaves((state.hull, state.right.motion, state.left.motion)):
        finite = finite & (jnp.abs(x) < 1e30)  # NaN is not
    return finite
