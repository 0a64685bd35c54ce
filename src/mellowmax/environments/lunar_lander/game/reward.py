"""What follows from a step: the observation, the reward, and whether the episode has ended."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, Vector, pose_at, select
from ..state import Inputs, Speed, State, Step
from .bodies import HULL, SECONDS, VIEW
from .engines import fuel_cost
from .terrain import PAD_HEIGHT

__all__ = ["REST_STEPS", "action_taken", "observation", "outcome"]

REST_STEPS = 25
"""The number of steps without movement, half a second, after which the lander sleeps."""
LEG_DOWN = 18 / 30


def outcome(before: State, after: State, inputs: Inputs, crashed: Array) -> Step:
    """The state after a step with its reward and its end.

    Args:
        before: the state before the step.
        after: the state that the physics led to.
        inputs: the inputs of the step.
        crashed: did the hull touch the ground?
    """
    active = ~before.over
    asleep = after.rest >= REST_STEPS
    # A body that falls asleep is stopped, which the last observation shows.
    zero = jnp.zeros_like(after.hull.speed.spin)
    speed = select(asleep, Speed(Vector(zero, zero), zero), after.hull.speed)
    after = after._replace(hull=after.hull._replace(speed=speed))
    grounded = before.right.on_ground | before.left.on_ground
    observed = materialise(observation(after, inputs.world.height))
    shaping = materialise(_shaping(observed))
    reward = select(before.fresh, 0.0, shaping - before.shaping)
    reward = reward - fuel_cost(action_taken(inputs, before.fresh))
    # The ground is never below the floor, so a lander far below it was put there. It ends too,
    # instead of falling for ever.
    lost = crashed | (jnp.abs(observed[0]) >= 1.0) | (after.hull.place.centre.y < -VIEW.y)
    reward = select(lost, -100.0, reward)
    reward = select(asleep, 100.0, reward)
    finite, reward, lost = materialise((_is_finite(after), reward, lost))
    ended = (lost | asleep) & ~before.fresh | ~finite
    reward = select(finite, select(before.fresh, 0.0, reward), -100.0)
    after = after._replace(
        shaping=shaping,
        wind=select(grounded, before.wind, before.wind + 1),
        turbulence=select(grounded, before.turbulence, before.turbulence + 1),
        fresh=jnp.zeros_like(before.fresh),
        over=ended,
    )
    stays = before._replace(over=before.over | ended, broken=before.broken | (active & ~finite))
    after = select(active & finite, after, stays)._replace(terrain=before.terrain)
    return Step(after, select(active, reward, 0.0), after.over)


def action_taken(inputs: Inputs, fresh: Array) -> Array:
    """The action that a step takes: none in the step of `reset`."""
    return select(fresh, 0, inputs.action)


def observation(state: State, height: Array) -> tuple[Array, ...]:
    """The eight numbers that are observed of a lander.

    Args:
        state: its state.
        height: the height in metres that is observed as 1.
    """
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


def _shaping(observed: Sequence[Array]) -> Array:
    """The potential: higher the closer to the pad, the slower and the more upright."""
    x, y, velocity_x, velocity_y, angle, _, right, left = observed
    return (
        -100.0 * jnp.sqrt(x * x + y * y)
        - 100.0 * jnp.sqrt(velocity_x * velocity_x + velocity_y * velocity_y)
        - 100.0 * jnp.abs(angle)
        + 10.0 * right
        + 10.0 * left
    )


def _is_finite(state: State) -> Array:
    finite = ~jnp.zeros_like(state.over)
    for x in jax.tree.leaves((state.hull, state.right.motion, state.left.motion)):
        finite = finite & (jnp.abs(x) < 1e30)  # false for NaN too
    return finite
