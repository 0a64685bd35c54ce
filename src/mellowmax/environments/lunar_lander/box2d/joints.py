"""The revolute joints of the legs: an anchor, a motor, and limits of the angle.

At its limit a leg is held by two impulses that oppose each other. The motor turns it against the
limit with a little more in each of the 180 iterations, until after eight steps it gives all it can.
That makes the legs stiff, so the number of iterations is part of the physics.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays.materialise import materialise
from ..arrays.vectors import Array, Vector, clip, cross, length, rotation, select
from ..game.bodies import HULL, LEG, MAX_MOTOR_IMPULSE, JointDef
from ..state import Joint, Place, Speed
from .settings import ANGULAR_SLOP, LINEAR_SLOP, MAX_ANGULAR_CORRECTION

__all__ = [
    "JointConstraint",
    "extrapolate",
    "prepare",
    "solve_position",
    "solve_velocity",
    "warm_start",
]

MASS = HULL.inverse_mass + LEG.inverse_mass
INERTIA = HULL.inverse_inertia + LEG.inverse_inertia
HULL_ANCHOR = Vector(0.0, -HULL.centre)
"""The anchor, relative to the hull's centre of mass."""


class JointConstraint(NamedTuple):
    """What the velocity solver needs of a joint and does not change."""

    hull_arm: Vector
    leg_arm: Vector
    limit_state: Array
    k13: Array
    """Entry 13 of the 3 x 3 matrix K of anchor and angle, which turns impulses into velocities."""
    k23: Array
    """Entry 23 of K."""
    inverse2: tuple[Array, Array, Array]
    """The inverse of the 2 x 2 matrix of the anchor alone: entries 11, 12, 22."""
    minus_inverse3: tuple[Array, Array, Array, Array, Array, Array]
    """Minus the inverse of K: entries 11, 12, 13, 22, 23, 33."""


def prepare(
    definition: JointDef, joint: Joint, hull: Place, leg: Place
) -> tuple[JointConstraint, Joint]:
    """The constraint of a joint, and the joint without the impulse of a limit that it has left."""
    arm_a = rotation(hull.angle).rotate(HULL_ANCHOR)
    arm_b = rotation(leg.angle).rotate(definition.anchor)
    arm_a, arm_b = materialise((arm_a, arm_b))
    k11, k12, k22 = materialise(_anchor_matrix(arm_a, arm_b))
    k13 = -arm_a.y * HULL.inverse_inertia - arm_b.y * LEG.inverse_inertia
    k23 = arm_a.x * HULL.inverse_inertia + arm_b.x * LEG.inverse_inertia
    k33 = INERTIA
    determinant2 = 1.0 / (k11 * k22 - k12 * k12)
    c11, c12, c13 = k22 * k33 - k23 * k23, k13 * k23 - k12 * k33, k12 * k23 - k13 * k22
    determinant3 = -1.0 / (k11 * c11 + k12 * c12 + k13 * c13)
    inverse2 = (determinant2 * k22, -determinant2 * k12, determinant2 * k11)
    minus_inverse3 = (
        determinant3 * c11,
        determinant3 * c12,
        determinant3 * c13,
        determinant3 * (k11 * k33 - k13 * k13),
        determinant3 * (k13 * k12 - k11 * k23),
        determinant3 * (k11 * k22 - k12 * k12),
    )
    angle = leg.angle - hull.angle - definition.reference_angle
    at = select(angle <= definition.lower_angle, -1, select(angle >= definition.upper_angle, 1, 0))
    impulse = select((at == joint.limit_state) & (at != 0), joint.limit_impulse, 0.0)
    constraint = JointConstraint(arm_a, arm_b, at, k13, k23, inverse2, minus_inverse3)
    return constraint, joint._replace(limit_state=at, limit_impulse=impulse)


def _anchor_matrix(arm_a: Vector, arm_b: Vector) -> tuple[Array, Array, Array]:
    """The matrix from an impulse at the anchor to the velocity there: entries 11, 12, 22."""
    i_a, i_b = HULL.inverse_inertia, LEG.inverse_inertia
    return (
        MASS + arm_a.y * arm_a.y * i_a + arm_b.y * arm_b.y * i_b,
        -arm_a.y * arm_a.x * i_a - arm_b.y * arm_b.x * i_b,
        MASS + arm_a.x * arm_a.x * i_a + arm_b.x * arm_b.x * i_b,
    )


def warm_start(
    constraint: JointConstraint, joint: Joint, hull: Speed, leg: Speed
) -> tuple[Speed, Speed]:
    """The velocities of hull and leg after the impulses of the last step."""
    angular = joint.motor_impulse + joint.limit_impulse
    return _apply(constraint, hull, leg, joint.impulse, angular)


def _apply(
    constraint: JointConstraint, hull: Speed, leg: Speed, impulse: Vector, angular: Array
) -> tuple[Speed, Speed]:
    """The velocities of hull and leg after an impulse at the anchor and an angular one."""
    hull_angular = cross(constraint.hull_arm, impulse) + angular
    leg_angular = cross(constraint.leg_arm, impulse) + angular
    return (
        Speed(
            hull.velocity - HULL.inverse_mass * impulse,
            hull.spin - HULL.inverse_inertia * hull_angular,
        ),
        Speed(
            leg.velocity + LEG.inverse_mass * impulse,
            leg.spin + LEG.inverse_inertia * leg_angular,
        ),
    )


def solve_velocity(
    definition: JointDef, constraint: JointConstraint, joint: Joint, hull: Speed, leg: Speed
) -> tuple[Joint, Speed, Speed]:
    """One iteration of a joint: the motor, then anchor and limit together."""
    wanted = joint.motor_impulse - (leg.spin - hull.spin - definition.motor_speed) * (1 / INERTIA)
    motor_impulse = clip(wanted, -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    angular = motor_impulse - joint.motor_impulse
    hull_spin = hull.spin - HULL.inverse_inertia * angular
    leg_spin = leg.spin + LEG.inverse_inertia * angular

    # The velocity to be removed: that of the anchors relative to each other, and of the angle.
    leg_arm, hull_arm = constraint.leg_arm, constraint.hull_arm
    x = (leg.velocity.x - leg_spin * leg_arm.y) - (hull.velocity.x - hull_spin * hull_arm.y)
    y = (leg.velocity.y + leg_spin * leg_arm.x) - (hull.velocity.y + hull_spin * hull_arm.x)
    z = leg_spin - hull_spin
    motor_impulse, angular, x, y, z = materialise((motor_impulse, angular, x, y, z))
    i11, i12, i13, i22, i23, i33 = constraint.minus_inverse3
    with_limit = Vector(i11 * x + i12 * y + i13 * z, i12 * x + i22 * y + i23 * z)
    change = i13 * x + i23 * y + i33 * z
    # A limit pushes and never pulls. Where it would pull, or the leg is at none, the anchor is
    # solved without it.
    total = joint.limit_impulse + change
    at = constraint.limit_state
    free = (at == 0) | select(at < 0, total < 0.0, total > 0.0)
    right_x = joint.limit_impulse * constraint.k13 - x
    right_y = joint.limit_impulse * constraint.k23 - y
    j11, j12, j22 = constraint.inverse2
    alone = Vector(j11 * right_x + j12 * right_y, j12 * right_x + j22 * right_y)
    impulse, change = materialise(select(free, (alone, -joint.limit_impulse), (with_limit, change)))
    # At a limit the impulses of motor and limit nearly cancel. Their sum is applied at once, which
    # rounds once in place of twice.
    hull, leg = _apply(constraint, hull, leg, impulse, angular + change)
    joint = joint._replace(
        impulse=joint.impulse + impulse,
        limit_impulse=joint.limit_impulse + change,
        motor_impulse=motor_impulse,
    )
    return joint, *materialise((hull, leg))


def extrapolate(
    constraint: JointConstraint, joint: Joint, gain: Array, iterations: Array
) -> tuple[Joint, Array]:
    """A joint after further iterations in which no velocity changes any more.

    What still changes is the motor's impulse, which gains the same in each iteration, and the
    limit's against it.

    Args:
        constraint: the constraint of the joint.
        joint: its impulses now.
        gain: what the motor's impulse gains in an iteration.
        iterations: how many iterations are left.

    Returns:
        The impulses at the end, and whether the limit still pushes then.
    """
    motor_impulse = joint.motor_impulse + iterations * gain
    motor_impulse = clip(motor_impulse, -MAX_MOTOR_IMPULSE, MAX_MOTOR_IMPULSE)
    motor_impulse = select(constraint.limit_state == 0, joint.motor_impulse, motor_impulse)
    limit_impulse = joint.limit_impulse - (motor_impulse - joint.motor_impulse)
    pushes = (constraint.limit_state == 0) | select(
        constraint.limit_state < 0, limit_impulse >= 0.0, limit_impulse <= 0.0
    )
    return joint._replace(motor_impulse=motor_impulse, limit_impulse=limit_impulse), pushes


def solve_position(
    definition: JointDef, limit_state: Array, hull: Place, leg: Place
) -> tuple[Place, Place, Array]:
    """Bring a leg back to its limit and its anchor.

    Args:
        definition: the joint.
        limit_state: the limit that it is at.
        hull: the hull.
        leg: the leg.

    Returns:
        The positions of hull and leg, and whether they were right before.
    """
    angle = leg.angle - hull.angle - definition.reference_angle
    below, above = angle - definition.lower_angle, angle - definition.upper_angle
    error = select(
        limit_state < 0,
        clip(below + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, 0.0),
        clip(above - ANGULAR_SLOP, 0.0, MAX_ANGULAR_CORRECTION),
    )
    off = select(limit_state < 0, -below, above)
    right_angle = (limit_state == 0) | (off <= ANGULAR_SLOP)
    angular = select(limit_state == 0, 0.0, -error / INERTIA)
    hull_angle = hull.angle - HULL.inverse_inertia * angular
    leg_angle = leg.angle + LEG.inverse_inertia * angular

    arm_a = rotation(hull_angle).rotate(HULL_ANCHOR)
    arm_b = rotation(leg_angle).rotate(definition.anchor)
    arm_a, arm_b = materialise((arm_a, arm_b))
    gap = leg.centre + arm_b - hull.centre - arm_a
    k11, k12, k22 = _anchor_matrix(arm_a, arm_b)
    scale = -1.0 / (k11 * k22 - k12 * k12)
    impulse = Vector(
        scale * (k22 * gap.x - k12 * gap.y),
        scale * (k11 * gap.y - k12 * gap.x),
    )
    impulse, hull_angle, leg_angle = materialise((impulse, hull_angle, leg_angle))
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
