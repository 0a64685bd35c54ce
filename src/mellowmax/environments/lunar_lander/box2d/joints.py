"""The hinges of the legs: an anchor, a motor, and limits of the angle.

At its limit a leg is held by two impulses that fight: the motor turns against the limit with a
little more in each of the 180 iterations, until it gives all it has after eight steps. That is what
makes the legs stiff, so the number of iterations is part of the physics.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays.materialise import keep
from ..arrays.vectors import Array, Vector, clip, cross, length, rotation, select
from ..game.bodies import (
    ANGULAR_SLOP,
    HULL,
    LEG,
    LINEAR_SLOP,
    MAX_ANGULAR_CORRECTION,
    MAX_MOTOR_IMPULSE,
    Hinge,
)
from ..state import Joint, Place, Speed

__all__ = ["JointRow", "correct_position", "prepare", "pull", "settled", "warm_start"]

MASS = HULL.inverse_mass + LEG.inverse_mass
INERTIA = HULL.inverse_inertia + LEG.inverse_inertia
HULL_ANCHOR = Vector(0.0, -HULL.centre)
"""From the hull's centre of mass."""


class JointRow(NamedTuple):
    """A hinge as the solver of the velocities has it: all that a step does not change."""

    hull_arm: Vector
    leg_arm: Vector
    at: Array
    k13: Array
    k23: Array
    inverse2: tuple[Array, Array, Array]
    """Of the anchor's matrix: entries 11, 12, 22."""
    against: tuple[Array, Array, Array, Array, Array, Array]
    """The inverse of the matrix of anchor and angle, negative: entries 11, 12, 13, 22, 23, 33."""


def prepare(hinge: Hinge, joint: Joint, hull: Place, leg: Place) -> tuple[JointRow, Joint]:
    """A hinge, ready for the solver, and its impulses, less that of a limit it is no longer at."""
    arm_a = rotation(hull.angle).turn(HULL_ANCHOR)
    arm_b = rotation(leg.angle).turn(hinge.anchor)
    arm_a, arm_b = keep((arm_a, arm_b))
    k11, k12, k22 = keep(_anchor_matrix(arm_a, arm_b))
    k13 = -arm_a.y * HULL.inverse_inertia - arm_b.y * LEG.inverse_inertia
    k23 = arm_a.x * HULL.inverse_inertia + arm_b.x * LEG.inverse_inertia
    k33 = INERTIA
    determinant2 = 1.0 / (k11 * k22 - k12 * k12)
    c11, c12, c13 = k22 * k33 - k23 * k23, k13 * k23 - k12 * k33, k12 * k23 - k13 * k22
    determinant3 = -1.0 / (k11 * c11 + k12 * c12 + k13 * c13)
    inverse2 = (determinant2 * k22, -determinant2 * k12, determinant2 * k11)
    against = (
        determinant3 * c11,
        determinant3 * c12,
        determinant3 * c13,
        determinant3 * (k11 * k33 - k13 * k13),
        determinant3 * (k13 * k12 - k11 * k23),
        determinant3 * (k11 * k22 - k12 * k12),
    )
    angle = leg.angle - hull.angle - hinge.reference
    at = select(angle <= hinge.lower, -1, select(angle >= hinge.upper, 1, 0))
    limit = select((at == joint.at) & (at != 0), joint.limit, 0.0)
    row = JointRow(arm_a, arm_b, at, k13, k23, inverse2, against)
    return row, joint._replace(at=at, limit=limit)


def _anchor_matrix(arm_a: Vector, arm_b: Vector) -> tuple[Array, Array, Array]:
    """How the anchor's velocity answers to a pull: entries 11, 12, 22."""
    i_a, i_b = HULL.inverse_inertia, LEG.inverse_inertia
    return (
        MASS + arm_a.y * arm_a.y * i_a + arm_b.y * arm_b.y * i_b,
        -arm_a.y * arm_a.x * i_a - arm_b.y * arm_b.x * i_b,
        MASS + arm_a.x * arm_a.x * i_a + arm_b.x * arm_b.x * i_b,
    )


def warm_start(row: JointRow, joint: Joint, hull: Speed, leg: Speed) -> tuple[Speed, Speed]:
    """The velocities of hull and leg once the impulses of the last step are applied again."""
    turn = joint.motor + joint.limit
    return _apply(row, hull, leg, joint.pull, turn)


def _apply(
    row: JointRow, hull: Speed, leg: Speed, impulse: Vector, turn: Array
) -> tuple[Speed, Speed]:
    hull_turn = cross(row.hull_arm, impulse) + turn
    leg_turn = cross(row.leg_arm, impulse) + turn
    return (
        Speed(
            hull.velocity - HULL.inverse_mass * impulse,
            hull.spin - HULL.inverse_inertia * hull_turn,
        ),
        Speed(
            leg.velocity + LEG.inverse_mass * impulse,
            leg.spin + LEG.inverse_inertia * leg_turn,
        ),
    )


def pull(
    hinge: Hinge, row: JointRow, joint: Joint, hull: Speed, leg: Speed
) -> tuple[Joint, Speed, Speed]:
    """One pass over a hinge: the motor, then anchor and limit together."""
    wanted = joint.motor - (leg.spin - hull.spin - hinge.speed) * (1 / INERTIA)
    motor = clip(wanted, -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    turn = motor - joint.motor
    hull_spin = hull.spin - HULL.inverse_inertia * turn
    leg_spin = leg.spin + LEG.inverse_inertia * turn

    x = (leg.velocity.x - leg_spin * row.leg_arm.y) - (hull.velocity.x - hull_spin * row.hull_arm.y)
    y = (leg.velocity.y + leg_spin * row.leg_arm.x) - (hull.velocity.y + hull_spin * row.hull_arm.x)
    z = leg_spin - hull_spin
    motor, turn, x, y, z = keep((motor, turn, x, y, z))
    i11, i12, i13, i22, i23, i33 = row.against
    held = Vector(i11 * x + i12 * y + i13 * z, i12 * x + i22 * y + i23 * z)
    limit = i13 * x + i23 * y + i33 * z
    # A limit does not pull: where it would, or where the leg is at none, the anchor stands alone.
    total = joint.limit + limit
    free = (row.at == 0) | select(row.at < 0, total < 0.0, total > 0.0)
    right_x, right_y = joint.limit * row.k13 - x, joint.limit * row.k23 - y
    j11, j12, j22 = row.inverse2
    alone = Vector(j11 * right_x + j12 * right_y, j12 * right_x + j22 * right_y)
    impulse, limit = keep(select(free, (alone, -joint.limit), (held, limit)))
    # At a limit the motor's turn and the limit's nearly cancel: their sum has less noise than both.
    hull, leg = _apply(row, hull, leg, impulse, turn + limit)
    joint = joint._replace(pull=joint.pull + impulse, limit=joint.limit + limit, motor=motor)
    return joint, *keep((hull, leg))


def settled(row: JointRow, joint: Joint, gain: Array, rest: Array) -> tuple[Joint, Array]:
    """A hinge after further iterations in which no velocity changes any more.

    What goes on is the motor against the limit: it gains the same in each iteration.

    Args:
        row: the hinge.
        joint: its impulses now.
        gain: what the motor gains in an iteration.
        rest: how many iterations are left.

    Returns:
        The impulses at the end, and whether the limit still pushes then.
    """
    motor = joint.motor + rest * gain
    motor = clip(motor, -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    motor = select(row.at == 0, joint.motor, motor)
    limit = joint.limit - (motor - joint.motor)
    holds = (row.at == 0) | select(row.at < 0, limit >= 0.0, limit <= 0.0)
    return joint._replace(motor=motor, limit=limit), holds


def correct_position(
    hinge: Hinge, at: Array, hull: Place, leg: Place
) -> tuple[Place, Place, Array]:
    """Bring a leg back to its limit and its anchor.

    Args:
        hinge: the hinge.
        at: the limit it is at.
        hull: the hull.
        leg: the leg.

    Returns:
        Where the hull is then, and the leg; and were they right already?
    """
    angle = leg.angle - hull.angle - hinge.reference
    below, above = angle - hinge.lower, angle - hinge.upper
    error = select(
        at < 0,
        clip(below + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, 0.0),
        clip(above - ANGULAR_SLOP, 0.0, MAX_ANGULAR_CORRECTION),
    )
    off = select(at < 0, -below, above)
    right_angle = (at == 0) | (off <= ANGULAR_SLOP)
    turn = select(at == 0, 0.0, -error / INERTIA)
    hull_angle = hull.angle - HULL.inverse_inertia * turn
    leg_angle = leg.angle + LEG.inverse_inertia * turn

    arm_a = rotation(hull_angle).turn(HULL_ANCHOR)
    arm_b = rotation(leg_angle).turn(hinge.anchor)
    arm_a, arm_b = keep((arm_a, arm_b))
    gap = leg.centre + arm_b - hull.centre - arm_a
    k11, k12, k22 = _anchor_matrix(arm_a, arm_b)
    scale = -1.0 / (k11 * k22 - k12 * k12)
    impulse = Vector(
        scale * (k22 * gap.x - k12 * gap.y),
        scale * (k11 * gap.y - k12 * gap.x),
    )
    impulse, hull_angle, leg_angle = keep((impulse, hull_angle, leg_angle))
    return (
        Place(
            hull.centre - HULL.inverse_mass * impulse,
            hull_angle - HULL.inverse_inertia * cross(arm_a, impulse),
        ),
        Place(
            leg.centre + LEG.inverse_mass * impulse,
            leg_angle + LEG.inverse_inertia * cross(arm_b, impulse),
        ),
        right_angle & (length(gap) <= LINEAR_SLOP),
    )
