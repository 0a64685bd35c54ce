"""A step of landers, from the engines to where they are. Random numbers are handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from .arrays.materialise import keep
from .arrays.vectors import Array, Vector, dot, select
from .box2d.collision import Touch, any_near_ground, came_near, touch
from .box2d.contacts import Pressed, no_contact, stored
from .box2d.continuous import Flown, fly_on
from .box2d.island import (
    POSITION_ITERATIONS,
    VELOCITY_ITERATIONS,
    Manifolds,
    Pushed,
    integrate,
    solve_positions,
    solve_velocities,
)
from .game.bodies import ANGULAR_SLOP, HULL, LEG, SECONDS
from .game.engines import fire, gust
from .game.reward import REST_STEPS, Told, judge, obeyed
from .state import Contact, Joint, Leg, Motion, Place, Speed, State, Step

__all__ = ["AtOnce", "Free", "Placed", "Runner", "advance", "soar"]

REST_SPEED = 0.01
REST_SPIN = ANGULAR_SLOP
FEW_PASSES = 5
"""Of the positions, in free flight. A launched lander needs three, all others nearly always one."""

T = TypeVar("T")


class Free(NamedTuple):
    """A step in free flight."""

    step: Step
    meets: Array
    """May it meet the ground, or need many passes? Then nothing has happened to it yet."""
    slow: Array
    """If not, do its velocities need more iterations than there may be? Likewise."""


class Placed(NamedTuple):
    """A lander once it has moved and its positions are solved."""

    speeds: tuple[Speed, Speed, Speed]
    """Of hull, right and left leg."""
    ends: tuple[Place, Place, Place]
    rest: Array
    fits: Array
    """Are all positions right?"""


class _Reached(NamedTuple):
    """A body where a step begins."""

    place: Place
    contacts: tuple[Contact, Contact]
    """Of a leg: for a hull they do not count."""
    on_ground: Array
    """Likewise."""
    newest: Array
    """Likewise."""


class _Leaving(NamedTuple):
    """A body once the solvers are done with it."""

    start: Place
    end: Place
    speed: Speed
    contacts: tuple[Contact, Contact]
    """Of a leg: for a hull they do not count."""
    pressed: tuple[Pressed, Pressed]
    on_ground: Array


class Runner(Protocol):
    """What calls the parts of a step: at once, or in a kernel each."""

    def landers(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives for a row of landers."""

    def bodies(self, function: Callable[..., T], three: Any, *shared: Any) -> tuple[T, T, T]:
        """What a function gives for a row of bodies: for hulls, right legs and left legs.

        Args:
            function: of the truth about whether it is a hull, of the body, and of what is shared.
            three: of hull, right and left leg.
            shared: what is the same for the three.
        """

    def finish(self, function: Callable[..., T], *arguments: Any) -> T:
        """`landers`, for the last of the parts."""


class AtOnce:
    """Each part is a plain call; three rows of bodies become one."""

    def landers(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives for a row of landers."""
        return function(*arguments)

    def bodies(self, function: Callable[..., T], three: Any, *shared: Any) -> tuple[T, T, T]:
        """What a function gives for a row of bodies."""
        no = jnp.zeros_like(jax.tree.leaves(three)[0], jnp.bool_)
        of_all = (_row(x, x, x) for x in shared)
        row = function(_row(~no, no, no), _row(*three), *of_all)
        parts = (jax.tree.map(lambda x, i=i: x.reshape(3, -1)[i], row) for i in range(3))
        first, second, third = parts
        return first, second, third

    def finish(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives for a row of landers."""
        return function(*arguments)


def soar(state: State, told: Told, most: int = VELOCITY_ITERATIONS) -> Free:
    """One step of each of a row of landers of which none meets the ground.

    One that may meet it stays as it is, as does one whose positions need many passes, and one whose
    episode is over.

    Args:
        state: the landers.
        told: what they are told.
        most: how many iterations of the velocities there may be; one that needs more stays too.
    """
    active = ~state.over
    touched = jnp.zeros_like(active)
    for leg in (state.right, state.left):
        touched = touched | (leg.first.edge >= 0) | (leg.second.edge >= 0)
    active = active & ~touched
    starts = (state.hull.place, state.right.motion.place, state.left.motion.place)
    legs = (state.right, state.left)
    motions = (legs[0].motion, legs[1].motion)
    grounds = (legs[0].on_ground, legs[1].on_ground)
    joints = (legs[0].joint, legs[1].joint)
    gusts = (state.wind, state.turbulence)
    none = ((), ())
    pushed = _push(
        state.hull, motions, joints, grounds, gusts, told, state.fresh, none, (), ~active, most
    )
    speeds = (pushed.hull, pushed.legs)
    placed = _settle(starts, *speeds, pushed.joints, (), state.rest, ~active, FEW_PASSES)
    ways = tuple(zip(starts, placed.ends, strict=True))
    meets = touched | ~placed.fits | any_near_ground(ways, (HULL, LEG, LEG), state.terrain)
    hull, right, left = map(Motion, placed.ends, placed.speeds)
    newest = [came_near(leg.newest, leg.motion.place, state.terrain) for leg in legs]
    new = state._replace(
        hull=hull,
        right=state.right._replace(motion=right, joint=pushed.joints[0], newest=newest[0]),
        left=state.left._replace(motion=left, joint=pushed.joints[1], newest=newest[1]),
        rest=placed.rest,
    )
    meets = keep(meets & ~state.over)
    slow = ~pushed.solved & ~meets
    step = judge(state, new, told, jnp.zeros_like(active))
    waits = Step(state, jnp.zeros_like(step.reward), state.over)
    return Free(select(meets | slow, waits, step), meets, slow)


def advance(state: State, told: Told, run: Runner) -> Step:
    """One step of each of a row of landers, with all that they meet.

    Args:
        state: the landers; one whose episode is over stays as it is.
        told: what they are told.
        run: what calls the parts.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    legs = (state.right, state.left)
    starts = (state.hull.place, *(leg.motion.place for leg in legs))
    old = tuple((leg.first, leg.second) for leg in legs)
    grounds = tuple(leg.on_ground for leg in legs)
    newest = tuple(leg.newest for leg in legs)
    of_all = ((x[0], *x) for x in (old, grounds, newest))
    reached = tuple(map(_Reached, starts, *of_all))
    of_hull, *of_legs = run.bodies(_meet, reached, state.terrain, state.over)
    manifolds = tuple(tuple(found.manifolds[i] for found in of_legs) for i in range(2))
    pushed = run.landers(
        _push,
        state.hull,
        tuple(leg.motion for leg in legs),
        tuple(leg.joint for leg in legs),
        grounds,
        (state.wind, state.turbulence),
        told,
        state.fresh,
        tuple(found.contacts for found in of_legs),
        manifolds,
        state.over,
    )
    placed = run.landers(
        _settle,
        starts,
        pushed.hull,
        pushed.legs,
        pushed.joints,
        manifolds,
        state.rest,
        state.over,
    )
    leaving = tuple(
        _Leaving(
            starts[body],
            placed.ends[body],
            placed.speeds[body],
            of_legs[leg].contacts,
            (pushed.pressed[0][leg], pushed.pressed[1][leg]),
            of_legs[leg].on_ground,
        )
        for body, leg in enumerate((0, 0, 1))
    )
    flown = run.bodies(_leave, leaving, state.terrain, placed.rest, state.over)
    touches = of_hull.manifolds[0].first.feature
    newest = tuple(found.newest for found in of_legs)
    return run.finish(_end, state, told, flown, pushed.joints, newest, placed.rest, touches)


def _meet(is_hull: Array, body: _Reached, terrain: Sequence[Array], over: Array) -> Touch:
    """What bodies touch where a step begins."""
    none = no_contact(body.place.angle)
    old = select(is_hull, (none, none), body.contacts)
    newest = select(is_hull, -1, came_near(body.newest, body.place, terrain))
    return touch(is_hull, body.place, old, body.on_ground & ~is_hull, newest, terrain, ~over)


def _push(
    hull: Motion,
    legs: tuple[Motion, Motion],
    joints: tuple[Joint, Joint],
    grounds: tuple[Array, Array],
    gusts: tuple[Array, Array],
    told: Told,
    fresh: Array,
    contacts: tuple[tuple[Contact, ...], tuple[Contact, ...]],
    manifolds: Manifolds,
    over: Array,
    most: int = VELOCITY_ITERATIONS,
) -> Pushed:
    """Engines, wind and gravity, then hinges and contacts."""
    world = told.world
    fired = keep(fire(hull, obeyed(told, fresh), told.one, told.two))
    calm = grounds[0] | grounds[1]
    wind = select(calm, 0.0, gust(gusts[0]) * world.wind)
    turbulence = select(calm, 0.0, gust(gusts[1]) * world.turbulence)
    fall = SECONDS * world.gravity
    velocity = fired.velocity
    speed = Speed(
        Vector(velocity.x + SECONDS * HULL.inverse_mass * wind, velocity.y + fall),
        fired.spin + SECONDS * HULL.inverse_inertia * turbulence,
    )
    falling = (_fall(legs[0], fall), _fall(legs[1], fall))
    moving = hull._replace(speed=speed)
    return solve_velocities(moving, falling, joints, contacts, manifolds, ~over, most)


def _settle(
    starts: Sequence[Place],
    hull: Speed,
    legs: tuple[Speed, Speed],
    joints: tuple[Joint, Joint],
    manifolds: Manifolds,
    rest: Array,
    over: Array,
    most: int = POSITION_ITERATIONS,
) -> Placed:
    """Bodies move, positions are solved, and for how long nothing has moved is counted."""
    moved = [
        keep(integrate(place, speed, SECONDS))
        for place, speed in zip(starts, (hull, *legs), strict=True)
    ]
    (speed, right, left), (end, right_end, left_end) = zip(*moved, strict=True)
    limits = (joints[0].at, joints[1].at)
    settled = solve_positions(end, (right_end, left_end), limits, manifolds, ~over, most)
    still = settled.fits
    for velocity, spin in (speed, right, left):
        still = still & (dot(velocity, velocity) <= REST_SPEED**2) & ~(spin * spin > REST_SPIN**2)
    ends = (settled.hull, *settled.legs)
    rest = keep(select(still, rest + 1, 0))
    return Placed((speed, right, left), ends, rest, settled.fits)


def _leave(
    is_hull: Array, body: _Leaving, terrain: Sequence[Array], rest: Array, over: Array
) -> Flown:
    """The way of bodies through the step."""
    none = no_contact(body.start.angle)
    first, second = (
        stored(contact, pressed)
        for contact, pressed in zip(body.contacts, body.pressed, strict=True)
    )
    return fly_on(
        is_hull,
        body.start,
        body.end,
        body.speed,
        select(is_hull, (none, none), (first, second)),
        body.on_ground & ~is_hull,
        terrain,
        ~over & (rest < REST_STEPS),
    )


def _end(
    state: State,
    told: Told,
    flown: tuple[Flown, Flown, Flown],
    joints: tuple[Joint, Joint],
    newest: tuple[Array, Array],
    rest: Array,
    touches: Array,
) -> Step:
    """The landers at the end of the step."""
    hull, *legs = flown
    right, left = (
        Leg(Motion(end.place, end.speed), joint, *end.contacts, end.on_ground, near)
        for end, joint, near in zip(legs, joints, newest, strict=True)
    )
    new = state._replace(hull=Motion(hull.place, hull.speed), right=right, left=left, rest=rest)
    return judge(state, new, told, (touches >= 0) | hull.on_ground)


def _fall(motion: Motion, fall: Array) -> Motion:
    place, (velocity, spin) = motion
    return Motion(place, Speed(Vector(velocity.x, velocity.y + fall), spin))


def _row(*parts: T) -> T:
    """Rows one after another."""
    row: T = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    return row
