"""The principal equilibria of many games by one compiled program, on an accelerator.

The steps are those of `batch`, with the same tests. Here each lane takes a step at a time, all
lanes at once, and the program runs by itself to the end: where a game has arrived, its lane stores
the point and begins with the next game. The derivatives of the policy are JAX's, so that any smooth
softmax is followed in the same way.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._fixed_points.follow import SLACK
from .._typing import Bools, Floats, Integers
from ..softmax import Softmax
from .steps import CORRECTIONS, ERROR, KINK, MOST_STEPS, SHORTEST

__all__ = ["followed"]

_WIDTH = 2**16  # lanes
_POLISHING = 4  # steps of Newton's method at the end

_Allowed: TypeAlias = Bools | jax.Array | None
"""`[N, A]`: is there such an action? None if all players have as many."""


class _Game(NamedTuple):
    """A game, or many of them with leading axes `[G]`, as in `batch`."""

    payoffs: jax.Array  # [N, A, ..., A]
    parameter: jax.Array  # []
    unit: jax.Array  # []
    span: jax.Array  # []
    longest: jax.Array  # []


class _Lane(NamedTuple):
    """Where a game is on its way, or many of them."""

    which: jax.Array  # [], its number
    point: jax.Array  # [D + 1], the values and the level
    tangent: jax.Array  # [D + 1]
    sign: jax.Array  # [], of the determinant
    length: jax.Array  # []
    steps: jax.Array  # []


def followed(
    payoffs: Floats,
    softmax: Softmax,
    parameter: Floats,
    unit: Floats,
    span: Floats,
    longest: Floats,
    allowed: Bools | None,
    device: jax.Device,
) -> tuple[Floats, Floats, Integers]:
    """The values at the end of each branch, `[G, D]`, their residuals, and the steps it took.

    Args:
        payoffs: `[G, N, A, ..., A]`, centred, in units of their own.
        softmax: how all players choose.
        parameter: its first field for each game, `[G]`; without effect if it has none.
        unit: of the payoffs, `[G]`.
        span: of the levels, `[G]`.
        longest: the longest step, `[G]`.
        allowed: `[N, A]`, is there such an action? None if all players have as many.
        device: of JAX.
    """
    with jax.enable_x64(True), jax.default_device(device):
        games = _Game(*map(jnp.asarray, (payoffs, parameter, unit, span, longest)))
        width = min(_WIDTH, len(unit))
        values, residual, steps = _program(games, softmax, allowed, width)
        return np.asarray(values), np.asarray(residual), np.asarray(steps)


@functools.partial(jax.jit, static_argnames="width")
def _program(
    games: _Game, softmax: Softmax, allowed: _Allowed, width: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    count = len(games.unit)
    every = jnp.arange(count, dtype=jnp.int32)

    def at(which: jax.Array) -> _Game:
        return jax.tree.map(lambda leaf: leaf[which], games)

    def begun(which: jax.Array) -> _Lane:
        return _at_the_start(at(which), softmax, allowed, which)

    def next_step(lane: _Lane) -> tuple[_Lane, jax.Array]:
        return _step(at(lane.which), softmax, allowed, lane)

    def polished(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return _polished(at(one[0]), softmax, allowed, one[1])

    starts = lax.map(begun, every, batch_size=width)

    def going(state: tuple[Any, ...]) -> Any:
        return (state[0].which < count).any()

    def onward(state: tuple[Any, ...]) -> tuple[Any, ...]:
        lanes, begun, ends, steps = state
        lanes, arrived = jax.vmap(next_step)(lanes)
        lost = (lanes.steps >= MOST_STEPS) | (lanes.length < SHORTEST)
        ended = (arrived | lost) & (lanes.which < count)
        # A lane without a game has a number beyond the last one: what it stores is dropped.
        to = jnp.where(ended, lanes.which, count)
        point = jnp.where(arrived[:, None], lanes.point, jnp.nan)
        ends = ends.at[to].set(point[:, :-1], mode="drop")
        steps = steps.at[to].set(lanes.steps, mode="drop")
        following = jnp.where(ended, begun + jnp.cumsum(ended, dtype=jnp.int32) - 1, lanes.which)
        following = jnp.minimum(following, count)
        fresh = jax.tree.map(lambda leaf: leaf[following], starts)
        lanes = _where(ended, fresh._replace(which=following), lanes)
        return lanes, jnp.minimum(begun + ended.sum(dtype=jnp.int32), count), ends, steps

    lanes = jax.tree.map(lambda leaf: leaf[:width], starts)
    ends = jnp.full((count, lanes.point.shape[1] - 1), jnp.nan)
    state = lanes, jnp.asarray(width, jnp.int32), ends, jnp.zeros(count, jnp.int32)
    _, _, ends, steps = lax.while_loop(going, onward, state)
    values, residual = lax.map(polished, (every, ends), batch_size=width)
    return values, residual, steps


def _where(condition: jax.Array, one: _Lane, other: _Lane) -> _Lane:
    def chosen(a: jax.Array, b: jax.Array) -> Any:
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - 1)), a, b)

    return _Lane(*map(chosen, one, other))


def _away(game: _Game, softmax: Softmax, allowed: _Allowed, point: jax.Array) -> jax.Array:
    """`U(policy(s v)) - v`, `[D]`."""
    n, most = game.payoffs.shape[0], game.payoffs.shape[1]
    v, level = point[:-1], point[-1]
    scale = jnp.sinh(level * game.span) / jnp.sinh(game.span)
    q = v.reshape(n, most) * scale * game.unit
    policy = _with(softmax, game.parameter).policy(q, where=allowed)
    values = []
    for i in range(n):
        expected = jnp.moveaxis(game.payoffs[i], i, 0)
        for j in reversed(range(n)):
            if j != i:
                expected = expected @ policy[j]
        values.append(expected)
    return jnp.concatenate(values) - v


def _with(softmax: Softmax, parameter: jax.Array) -> Softmax:
    fields = dataclasses.fields(softmax) if dataclasses.is_dataclass(softmax) else ()
    if not fields:
        return softmax
    changed: Any = {fields[0].name: parameter}
    return dataclasses.replace(softmax, **changed)


def _linearised(
    game: _Game, softmax: Softmax, allowed: _Allowed, point: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The same, `[D]`, and its derivative, `[D, D + 1]`."""
    away, slopes = jax.linearize(lambda x: _away(game, softmax, allowed, x), point)
    return away, jax.vmap(slopes, out_axes=-1)(jnp.eye(len(point)))


def _tangent(slopes: jax.Array, along: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The unit tangent in the direction `along`, and the sign of the bordered determinant."""
    matrix = jnp.concatenate([slopes, along[None]])
    lu, pivots = jax.scipy.linalg.lu_factor(matrix)
    tangent = jax.scipy.linalg.lu_solve((lu, pivots), jnp.zeros(len(along)).at[-1].set(1.0))
    swaps = (pivots != jnp.arange(len(pivots), dtype=pivots.dtype)).sum()
    sign = jnp.sign(jnp.diag(lu)).prod() * jnp.where(swaps % 2 == 1, -1.0, 1.0)
    return tangent / jnp.linalg.norm(tangent), sign


def _at_the_start(game: _Game, softmax: Softmax, allowed: _Allowed, which: jax.Array) -> _Lane:
    d = game.payoffs.shape[0] * game.payoffs.shape[1]
    zero = jnp.zeros(d + 1)
    point = zero.at[:-1].set(_away(game, softmax, allowed, zero))
    upwards = zero.at[-1].set(1.0)
    tangent, sign = _tangent(_linearised(game, softmax, allowed, point)[1], upwards)
    return _Lane(which, point, tangent, sign, game.longest / 2, jnp.asarray(0, jnp.int32))


def _corrected(
    game: _Game, softmax: Softmax, allowed: _Allowed, guess: jax.Array, normal: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The point of the curve on the plane through a guess, the slopes, and was it reached?"""

    def going(state: tuple[Any, ...]) -> Any:
        return state[-1] & (state[0] < CORRECTIONS)

    def onward(state: tuple[Any, ...]) -> tuple[Any, ...]:
        number, point, _, before, _, _ = state
        away, slopes = _linearised(game, softmax, allowed, point)
        matrix = jnp.concatenate([slopes, normal[None]])
        off = (guess - point) @ normal
        change = jnp.linalg.solve(matrix, jnp.append(-away, off))
        point, size = point + change, jnp.linalg.norm(change)
        done = (size < 1e-10) | (size**3 < ERROR * before**2)
        lost = ~(size <= 1) | (point[-1] < -1e-9) | (point[-1] > 1 + 1e-9)
        return number + 1, point, slopes, size, done & ~lost, ~(done | lost)

    slopes = jnp.zeros((len(guess) - 1, len(guess)))
    state = 0, guess, slopes, jnp.asarray(0.0), jnp.asarray(False), jnp.asarray(True)
    _, point, slopes, _, ok, _ = lax.while_loop(going, onward, state)
    return point.at[-1].set(jnp.clip(point[-1], 0.0, 1.0)), slopes, ok


def _step(game: _Game, softmax: Softmax, allowed: _Allowed, lane: _Lane) -> tuple[_Lane, jax.Array]:
    """One step, and has it arrived at the end of the range?"""
    rise, level = lane.tangent[-1], lane.point[-1]
    leaves = (level + lane.length * rise > 1) & (rise > 0)
    taken = jnp.where(leaves, (1 - level) / jnp.where(leaves, rise, 1.0), lane.length)
    guess = lane.point + taken * lane.tangent
    guess = guess.at[-1].set(jnp.where(leaves, 1.0, guess[-1]))
    upwards = jnp.zeros_like(guess).at[-1].set(1.0)
    normal = jnp.where(leaves, upwards, lane.tangent)
    point, slopes, ok = _corrected(game, softmax, allowed, guess, normal)
    turned, sign = _tangent(slopes, lane.tangent)
    alike, apart = turned @ lane.tangent, jnp.linalg.norm(point - guess)
    turn = jnp.arccos(jnp.clip(alike, -1.0, 1.0))
    near = apart <= taken * (SLACK[0] * turn + SLACK[1])
    ok &= apart <= taken / 2
    ok &= (taken < KINK) | ((sign == lane.sign) & (alike > 0.95) & near)
    longer = jnp.minimum(game.longest, lane.length * jnp.where(alike > 0.99, 2.0, 1.0))
    following = _Lane(
        lane.which,
        jnp.where(ok, point, lane.point),
        jnp.where(ok, turned, lane.tangent),
        jnp.where(ok, sign, lane.sign),
        jnp.where(ok, longer, taken / 2),
        lane.steps + 1,
    )
    return following, ok & leaves


def _polished(
    game: _Game, softmax: Softmax, allowed: _Allowed, values: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The values at the end of the range, to rounding, and how far they are from their answer."""

    def onward(state: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        v, best, least = state
        away, slopes = _linearised(game, softmax, allowed, jnp.append(v, 1.0))
        size = abs(away).max()
        best = jnp.where(size < least, v, best)
        return (v - jnp.linalg.solve(slopes[:, :-1], away), best, jnp.minimum(size, least)), None

    state = values, values, jnp.asarray(jnp.inf)
    (_, best, least), _ = lax.scan(onward, state, None, length=_POLISHING)
    return best, least
