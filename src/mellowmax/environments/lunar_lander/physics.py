"""A step of landers: engines, collision, solvers, continuous collision, reward.

`free_flight` is a step of landers that do not touch the ground. `full_step` is a step of any
lander, in five parts, each of which is one call on a CPU and one kernel on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from .arrays.legs import PAIR, LegLayout
from .arrays.materialise import materialise
from .arrays.vectors import Array, Vector, dot, select
from .box2d.broad_phase import any_near_ground, newest_edge
from .box2d.collision import Collision, collide
from .box2d.contacts import ContactImpulses, store_impulses
from .box2d.continuous import SweptBody, solve_toi
from .box2d.island import (
    Manifolds,
    VelocitySolution,
    integrate,
    solve_positions,
    solve_velocities,
)
from .box2d.settings import ANGULAR_SLOP, POSITION_ITERATIONS, VELOCITY_ITERATIONS
from .game.bodies import HULL, LEG, SECONDS
from .game.engines import fire, gust
from .game.reward import REST_STEPS, action_taken, outcome
from .state import Contact, Inputs, Joint, Leg, Motion, Place, Speed, State, Step, no_contact

__all__ = ["FreeFlight", "Inline", "Moved", "Runner", "free_flight", "full_step"]

SLEEP_SPEED = 0.01
SLEEP_SPIN = ANGULAR_SLOP
FREE_POSITION_ITERATIONS = 5
"""The position iterations in free flight. A launched lander needs three, any other nearly always
one."""

T = TypeVar("T")


class FreeFlight(NamedTuple):
    """A step in free flight. A lander for which a flag is true has not moved yet."""

    step: Step
    needs_contacts: Array
    """May the lander touch the ground, or does it need more position iterations?"""
    needs_iterations: Array
    """If not, does it need more velocity iterations?"""


class Moved(NamedTuple):
    """A lander after integration and the position solver."""

    speeds: tuple[Speed, Speed, Speed]
    """The velocities of hull, right and left leg."""
    places: tuple[Place, Place, Place]
    rest: Array
    """The number of steps since anything last moved."""
    solved: Array
    """Are all positions right?"""


class _CollidingBody(NamedTuple):
    """A body at the beginning of a step; the fields after `place` are not used for a hull."""

    place: Place
    contacts: tuple[Contact, Contact]
    on_ground: Array
    newest: Array


class _SolvedBody(NamedTuple):
    """A body after both solvers; the fields after `speed` are not used for a hull."""

    start: Place
    end: Place
    speed: Speed
    contacts: tuple[Contact, Contact]
    impulses: tuple[ContactImpulses, ContactImpulses]
    on_ground: Array


class Runner(Protocol):
    """Calls the parts of a step: each as a plain function, or each as a kernel."""

    @property
    def layout(self) -> LegLayout:
        """How the parts hold the values of both legs together."""

    def landers(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function of a row of landers."""

    def bodies(
        self, function: Callable[..., T], three: Sequence[object], *shared: object
    ) -> tuple[T, T, T]:
        """The results of a function of a row of bodies: for hulls, right legs and left legs.

        Args:
            function: takes a flag that says whether the body is a hull, the body, and what is
                shared.
            three: the hull, the right leg and the left leg.
            shared: arguments that are the same for the three.
        """

    def finish(self, function: Callable[..., T], *arguments: object) -> T:
        """Like `landers`, for the last part."""


class Inline:
    """Each part is a plain call; the three rows of bodies become one row."""

    layout = PAIR

    def landers(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function of a row of landers."""
        return function(*arguments)

    def bodies(
        self, function: Callable[..., T], three: Sequence[object], *shared: object
    ) -> tuple[T, T, T]:
        """The results of a function of a row of bodies: for hulls, right legs and left legs."""
        no = jnp.zeros_like(jax.tree.leaves(three)[0], jnp.bool_)
        of_all = (_concatenate(x, x, x) for x in shared)
        row = function(_concatenate(~no, no, no), _concatenate(*three), *of_all)
        parts = (jax.tree.map(lambda x, i=i: x.reshape(3, -1)[i], row) for i in range(3))
        first, second, third = parts
        return first, second, third

    def finish(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function of a row of landers."""
        return function(*arguments)


def free_flight(
    layout: LegLayout, state: State, inputs: Inputs, max_iterations: int = VELOCITY_ITERATIONS
) -> FreeFlight:
    """One step of each of a row of landers, if it does not touch the ground.

    A lander stays as it is if it may touch the ground, if its positions need many iterations, or if
    its episode is over.

    Args:
        layout: how the values of both legs are held together.
        state: the landers.
        inputs: the inputs of the step.
        max_iterations: how many velocity iterations are allowed. A lander that needs more stays as
            it is too.
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
    velocities = _velocities(
        layout,
        state.hull,
        motions,
        joints,
        grounds,
        gusts,
        inputs,
        state.fresh,
        none,
        (),
        ~active,
        max_iterations,
    )
    moved = _positions(
        layout,
        starts,
        velocities.hull,
        velocities.legs,
        velocities.joints,
        (),
        state.rest,
        ~active,
        FREE_POSITION_ITERATIONS,
    )
    ways = tuple(zip(starts, moved.places, strict=True))
    near = touched | ~moved.solved | any_near_ground(ways, (HULL, LEG, LEG), state.terrain)
    hull, right, left = map(Motion, moved.places, moved.speeds)
    newest = [newest_edge(leg.newest, leg.motion.place, state.terrain) for leg in legs]
    after = state._replace(
        hull=hull,
        right=state.right._replace(motion=right, joint=velocities.joints[0], newest=newest[0]),
        left=state.left._replace(motion=left, joint=velocities.joints[1], newest=newest[1]),
        rest=moved.rest,
    )
    near = materialise(near & ~state.over)
    unsolved = ~velocities.solved & ~near
    step = outcome(state, after, inputs, jnp.zeros_like(active))
    waits = Step(state, jnp.zeros_like(step.reward), state.over)
    return FreeFlight(select(near | unsolved, waits, step), near, unsolved)


def full_step(state: State, inputs: Inputs, run: Runner) -> Step:
    """One step of each of a row of landers, with all their contacts.

    Args:
        state: the landers; one whose episode is over stays as it is.
        inputs: the inputs of the step.
        run: calls the parts.

    Returns:
        The landers, their rewards, and whether their episodes have ended.
    """
    legs = (state.right, state.left)
    starts = (state.hull.place, *(leg.motion.place for leg in legs))
    old = tuple((leg.first, leg.second) for leg in legs)
    grounds = tuple(leg.on_ground for leg in legs)
    newest = tuple(leg.newest for leg in legs)
    of_all = ((x[0], *x) for x in (old, grounds, newest))
    colliding = tuple(map(_CollidingBody, starts, *of_all))
    of_hull, *of_legs = run.bodies(_collide, colliding, state.terrain, state.over)
    manifolds = tuple(tuple(found.manifolds[i] for found in of_legs) for i in range(2))
    velocities = run.landers(
        functools.partial(_velocities, run.layout),
        state.hull,
        tuple(leg.motion for leg in legs),
        tuple(leg.joint for leg in legs),
        grounds,
        (state.wind, state.turbulence),
        inputs,
        state.fresh,
        tuple(found.contacts for found in of_legs),
        manifolds,
        state.over,
    )
    moved = run.landers(
        functools.partial(_positions, run.layout),
        starts,
        velocities.hull,
        velocities.legs,
        velocities.joints,
        manifolds,
        state.rest,
        state.over,
    )
    solved = tuple(
        _SolvedBody(
            starts[body],
            moved.places[body],
            moved.speeds[body],
            of_legs[leg].contacts,
            (velocities.impulses[0][leg], velocities.impulses[1][leg]),
            of_legs[leg].on_ground,
        )
        for body, leg in enumerate((0, 0, 1))
    )
    swept = run.bodies(_sweep, solved, state.terrain, moved.rest, state.over)
    feature = of_hull.manifolds[0].first.feature
    newest = tuple(found.newest for found in of_legs)
    return run.finish(_end, state, inputs, swept, velocities.joints, newest, moved.rest, feature)


def _collide(
    is_hull: Array, body: _CollidingBody, terrain: Sequence[Array], over: Array
) -> Collision:
    """The contacts of bodies where a step begins."""
    none = no_contact(body.place.angle)
    old = select(is_hull, (none, none), body.contacts)
    newest = select(is_hull, -1, newest_edge(body.newest, body.place, terrain))
    return collide(is_hull, body.place, old, body.on_ground & ~is_hull, newest, terrain, ~over)


def _velocities(
    layout: LegLayout,
    hull: Motion,
    legs: tuple[Motion, Motion],
    joints: tuple[Joint, Joint],
    grounds: tuple[Array, Array],
    gusts: tuple[Array, Array],
    inputs: Inputs,
    fresh: Array,
    contacts: tuple[tuple[Contact, ...], tuple[Contact, ...]],
    manifolds: Manifolds,
    over: Array,
    max_iterations: int = VELOCITY_ITERATIONS,
) -> VelocitySolution:
    """The velocities after engines, wind and gravity, joints and contacts."""
    world = inputs.world
    fired = materialise(fire(hull, action_taken(inputs, fresh), inputs.dispersion))
    grounded = grounds[0] | grounds[1]
    wind = select(grounded, 0.0, gust(gusts[0]) * world.wind)
    turbulence = select(grounded, 0.0, gust(gusts[1]) * world.turbulence)
    fall = SECONDS * world.gravity
    velocity = fired.velocity
    speed = Speed(
        Vector(velocity.x + SECONDS * HULL.inverse_mass * wind, velocity.y + fall),
        fired.spin + SECONDS * HULL.inverse_inertia * turbulence,
    )
    falling = (_accelerate(legs[0], fall), _accelerate(legs[1], fall))
    moving = hull._replace(speed=speed)
    return solve_velocities(
        layout, moving, falling, joints, contacts, manifolds, ~over, max_iterations
    )


def _positions(
    layout: LegLayout,
    starts: Sequence[Place],
    hull: Speed,
    legs: tuple[Speed, Speed],
    joints: tuple[Joint, Joint],
    manifolds: Manifolds,
    rest: Array,
    over: Array,
    max_iterations: int = POSITION_ITERATIONS,
) -> Moved:
    """The positions after integration and the position solver, and for how long nothing moved."""
    moved = [
        materialise(integrate(place, speed, SECONDS))
        for place, speed in zip(starts, (hull, *legs), strict=True)
    ]
    (speed, right, left), (end, right_end, left_end) = zip(*moved, strict=True)
    limits = (joints[0].limit_state, joints[1].limit_state)
    positions = solve_positions(
        layout, end, (right_end, left_end), limits, manifolds, ~over, max_iterations
    )
    still = positions.solved
    for velocity, spin in (speed, right, left):
        still = still & (dot(velocity, velocity) <= SLEEP_SPEED**2) & ~(spin * spin > SLEEP_SPIN**2)
    places = (positions.hull, *positions.legs)
    rest = materialise(select(still, rest + 1, 0))
    return Moved((speed, right, left), places, rest, positions.solved)


def _sweep(
    is_hull: Array, body: _SolvedBody, terrain: Sequence[Array], rest: Array, over: Array
) -> SweptBody:
    """Bodies at the end of the step, after continuous collision."""
    none = no_contact(body.start.angle)
    first, second = (
        store_impulses(contact, impulses)
        for contact, impulses in zip(body.contacts, body.impulses, strict=True)
    )
    return solve_toi(
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
    inputs: Inputs,
    swept: tuple[SweptBody, SweptBody, SweptBody],
    joints: tuple[Joint, Joint],
    newest: tuple[Array, Array],
    rest: Array,
    hull_feature: Array,
) -> Step:
    """The landers at the end of the step, their rewards and ends.

    Args:
        state: the landers at its beginning.
        inputs: the inputs of the step.
        swept: hull, right and left leg at its end.
        joints: the joints after the velocity solver.
        newest: `Leg.newest` of both legs.
        rest: the number of steps since anything last moved.
        hull_feature: the feature of the hull that touched the ground at the beginning, or -1.
    """
    hull, *legs = swept
    right, left = (
        Leg(Motion(end.place, end.speed), joint, *end.contacts, end.on_ground, near)
        for end, joint, near in zip(legs, joints, newest, strict=True)
    )
    after = state._replace(hull=Motion(hull.place, hull.speed), right=right, left=left, rest=rest)
    return outcome(state, after, inputs, (hull_feature >= 0) | hull.on_ground)


def _accelerate(motion: Motion, fall: Array) -> Motion:
    """A body after gravity has changed its velocity."""
    place, (velocity, spin) = motion
    return Motion(place, Speed(Vector(velocity.x, velocity.y + fall), spin))


def _concatenate(*parts: T) -> T:
    """Rows, one after another."""
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
