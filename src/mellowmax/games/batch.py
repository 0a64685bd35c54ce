"""The principal equilibria of thousands of games at once.

Each game is followed from its centroid, as `trace` does it, with a step length of its own and the
same tests of each step: the corrector ends near, the tangent turns little, and the determinant
keeps its sign. All games take a step in the same calls of NumPy. A game that has arrived leaves at
once, and the next one takes its place, so that none waits for the slowest. With payoffs of JAX the
same is done by one compiled program (`compiled`), for a million games on an accelerator.

What is followed is the scale `s` of the payoffs, from 0 to 1: `v = U(policy(s v))`. If a policy
depends on a parameter times the values, as Boltzmann's and mellowmax's do, these are the equilibria
that it passes as its parameter rises from 0. The derivative with respect to `s` needs no further
policy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from array_api_compat import is_jax_array

from .._common.extras import needed_by
from .._fixed_points.follow import SLACK
from .._typing import ArrayLike, Bools, Floats, Integers
from ..softmax import Softmax
from .game import Profile, of_each_player
from .policy_jacobian import check_smooth, policy_and_jacobian
from .responses import Payoffs
from .steps import CORRECTIONS, ERROR, EXACT, KINK, MOST_STEPS, SHORTEST
from .trace import LONGEST, STEP

__all__ = ["BatchEquilibria", "principal"]

_WIDTH = 2048  # games that are followed together


@dataclasses.dataclass(frozen=True, eq=False)
class BatchEquilibria:
    """The equilibrium of each of G games on its principal branch."""

    profile: Profile
    """For each player the probabilities of the actions, `[G, n]`."""
    residual: Floats
    """`[G]`, how much an action's value differs from what it pays, as a share of the payoffs."""
    found: Bools
    """`[G]`: was the branch followed to its end? The rest are NaN where it was not."""
    steps: Integers
    """`[G]`, how many steps it took."""


def principal(payoffs: Sequence[ArrayLike], softmax: Softmax) -> BatchEquilibria:
    """The equilibrium of each of many games that its principal branch reaches first.

    Args:
        payoffs: an array `[G, n_1, ..., n_N]` for each player, as in `Game`, of G games of one
            size. Arrays of JAX are followed by a compiled program, on their device.
        softmax: how all players choose. Its first parameter is a number, or one for each game.

    Returns:
        The equilibria, as exact as those of `trace`.

    Raises:
        ValueError: for payoffs that are no games, or a softmax without a smooth policy.

    Examples:
        >>> import numpy as np
        >>> from mellowmax import Boltzmann, Mellowmax
        >>> payoffs = np.random.default_rng(0).random((2, 1000, 3, 3))
        >>> equilibria = principal(payoffs, Mellowmax(10.0))
        >>> equilibria.profile[0].shape, bool(equilibria.found.all())
        ((1000, 3), True)
        >>> bool(equilibria.residual.max() < 1e-12)
        True
    """
    arrays = of_each_player("payoffs", payoffs)
    n = len(arrays)
    shape = arrays[0].shape if arrays else ()
    if n < 2 or any(array.shape != shape for array in arrays) or len(shape) != n + 1:
        got = " and ".join(str(array.shape) for array in arrays)
        raise ValueError(
            "`payoffs` must be an array for each of two players or more, all of one shape, with an "
            f"axis for the games and one for each player, got {got or 'none'}"
        )
    if min(shape[1:]) < 2 or not shape[0]:
        raise ValueError(
            f"`payoffs` must be of a game at least, with two actions for each player, got {shape}"
        )
    for player, array in enumerate(arrays):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            game, *actions = bad[0].tolist()
            at = " and ".join(str(action + 1) for action in actions)
            raise ValueError(
                f"`payoffs` must be finite, got {array[tuple(bad[0])]:g} for player {player + 1} "
                f"of game {game} at the actions {at}"
            )
    games = _Games.of(tuple(arrays), check_smooth(softmax))
    if any(is_jax_array(payoff) for payoff in payoffs):
        return _run_compiled(games, payoffs)
    return _run(games)


@dataclasses.dataclass(frozen=True, eq=False)
class _Games:
    """Games with payoffs in units of their own, and how strongly their players respond."""

    payoffs: Payoffs
    softmax: Softmax
    unit: Floats  # [G]
    span: Floats  # [G], such that levels are spaced like `asinh` from 0 to it

    @classmethod
    def of(cls, arrays: tuple[Floats, ...], softmax: Softmax) -> Self:
        plain = Payoffs.padded(arrays)
        unit = np.linalg.norm(plain.high - plain.low, axis=-1)
        unit = np.where(unit > 0, unit, 1.0)
        each = unit.reshape(-1, *[1] * (plain.array.ndim - 1))
        payoffs = Payoffs(
            plain.array / each, plain.shape, plain.low / unit[:, None], plain.high / unit[:, None]
        )
        softmax = _of_each(softmax, len(unit))
        # Where all values are equal a policy is logit, of some inverse temperature.
        rows = np.size(_parameter(softmax))
        tied = np.zeros((rows, len(plain.shape), max(plain.shape)))
        slope = policy_and_jacobian(softmax, tied, plain.allowed)[1][..., 0, 0].max(-1)
        counts = np.array(plain.shape)
        beta = abs(slope) * (counts**2 / (counts - 1)).max()
        return cls(payoffs, softmax, unit, np.arcsinh(np.maximum(beta * unit, 1e-6)))

    @property
    def longest(self) -> Floats:
        """`[G]`, the longest step, as in `trace`."""
        return np.minimum(STEP / self.span, LONGEST)

    def __len__(self) -> int:
        return len(self.unit)

    def __getitem__(self, which: Integers) -> Self:
        softmax = _of_each(self.softmax, len(self), which)
        return type(self)(self.payoffs[which], softmax, self.unit[which], self.span[which])

    def linearised(self, point: Floats) -> tuple[Floats, Floats]:
        """`U(policy(s v)) - v`, `[L, D]`, and its derivative as in `Curve.linearised`."""
        payoffs, d = self.payoffs, point.shape[-1] - 1
        v, level = point[:, :-1], point[:, -1]
        top = np.sinh(self.span)
        scale = np.sinh(level * self.span) / top
        slope = self.span * np.cosh(level * self.span) / top
        q = payoffs.rows(v * (scale * self.unit)[:, None])
        policy, slopes = policy_and_jacobian(self.softmax, q, payoffs.allowed)
        pairs = payoffs.pairs(policy)
        by_value = (payoffs.rows(pairs).swapaxes(-3, -2) @ slopes).swapaxes(-3, -2)
        by_value = by_value.reshape(len(v), d, d) * self.unit[:, None, None]
        matrix = np.zeros((len(v), d + 1, d + 1))
        matrix[:, :d, :d] = by_value * scale[:, None, None]
        matrix.reshape(len(v), (d + 1) ** 2)[:, : d * (d + 2) : d + 2] -= 1.0  # on the diagonal
        matrix[:, :d, d] = (by_value @ v[..., None])[..., 0] * slope[:, None]
        return payoffs.values(policy, pairs) - v, matrix

    def corrected(self, guess: Floats, normal: Floats) -> tuple[Floats, Floats, Bools]:
        """The point of each curve on the plane through a guess, its matrix, and who reached it."""
        point, ok = guess.copy(), np.zeros(len(guess), np.bool_)
        matrix = np.zeros((len(guess), guess.shape[1], guess.shape[1]))
        rows, before = np.arange(len(guess), dtype=np.int32), np.zeros(len(guess))
        games = self
        for _ in range(CORRECTIONS):
            residual, own = games.linearised(point[rows])
            own[:, -1] = normal[rows]
            off = ((guess[rows] - point[rows]) * normal[rows]).sum(-1)
            change = _solve(own, np.concatenate([-residual, off[:, None]], axis=-1))
            point[rows] += change
            matrix[rows] = own
            size = np.linalg.norm(change, axis=-1)
            done = (size < 1e-10) | (size**3 < ERROR * before**2)
            level = point[rows, -1]
            lost = ~(size <= 1) | (level < -1e-9) | (level > 1 + 1e-9)
            ok[rows[done & ~lost]] = True
            going = ~(done | lost)
            if not going.any():
                break
            rows, before = rows[going], size[going]
            games = games[going]
        np.clip(point[:, -1], 0.0, 1.0, out=point[:, -1])
        return point, matrix, ok

    def polished(self, point: Floats) -> tuple[Floats, Floats]:
        """The values at the end of the range, to rounding, and the residual of each."""
        best, least = point[:, :-1], np.full(len(point), np.inf)
        v = best
        for _ in range(4):
            residual, matrix = self.linearised(np.concatenate([v, np.ones((len(v), 1))], axis=-1))
            size = abs(residual).max(-1)
            better = size < least
            best, least = np.where(better[:, None], v, best), np.where(better, size, least)
            v = v - _solve(matrix[:, :-1, :-1], residual)
        largest = self.payoffs.size
        return best, least / np.where(largest > 0, largest, 1.0)


@dataclasses.dataclass(eq=False)
class _Lanes:
    """The games that are under way, L of them, and where each is."""

    which: Integers  # [L], their numbers
    games: _Games
    point: Floats  # [L, D + 1], the values and the level
    tangent: Floats  # [L, D + 1]
    sign: Floats  # [L], of the determinant
    length: Floats  # [L]
    steps: Integers  # [L]

    @classmethod
    def at_the_start(cls, which: Integers, games: _Games) -> Self:
        """At the centroid, where the level is 0."""
        payoffs, n = games.payoffs, len(which)
        zero = payoffs.rows(np.zeros_like(payoffs.low))
        centroid = np.asarray(games.softmax.policy(zero, where=payoffs.allowed))
        point = np.concatenate([payoffs.values(centroid), np.zeros((n, 1))], axis=-1)
        upwards = np.zeros_like(point)
        upwards[:, -1] = 1.0
        tangent, sign = _tangent(games.linearised(point)[1], upwards)
        return cls(which, games, point, tangent, sign, games.longest / 2, np.zeros(n, np.int32))

    def __getitem__(self, rows: Integers | Bools) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))

    def step(self) -> Bools:
        """One step of each lane, and which lanes have arrived at the end of the range."""
        rise = self.tangent[:, -1]
        ahead = self.point[:, -1] + self.length * rise
        leaves = (ahead > 1) & (rise > 0)
        taken = np.where(leaves, (1 - self.point[:, -1]) / np.where(leaves, rise, 1.0), self.length)
        guess = self.point + taken[:, None] * self.tangent
        guess[leaves, -1] = 1.0
        normal = self.tangent.copy()
        normal[leaves] = 0.0
        normal[leaves, -1] = 1.0
        point, matrix, ok = self.games.corrected(guess, normal)
        turned, sign = _tangent(matrix, self.tangent)
        alike = (turned * self.tangent).sum(-1)
        apart = np.linalg.norm(point - guess, axis=-1)
        near = apart <= taken * (SLACK[0] * np.arccos(np.clip(alike, -1.0, 1.0)) + SLACK[1])
        ok &= apart <= taken / 2
        ok &= (taken < KINK) | ((sign == self.sign) & (alike > 0.95) & near)
        self.point[ok], self.tangent[ok], self.sign[ok] = point[ok], turned[ok], sign[ok]
        longer = np.minimum(self.games.longest, self.length * np.where(alike > 0.99, 2, 1))
        self.length = np.where(ok, longer, taken / 2)
        self.steps += 1
        return ok & leaves


def _run(games: _Games) -> BatchEquilibria:
    """Follow every game; one that has arrived makes room for the next."""
    n, d = len(games), games.payoffs.low.shape[-1]
    values = np.full((n, d), np.nan)
    residual, found = np.full(n, np.nan), np.zeros(n, np.bool_)
    steps, begun = np.zeros(n, np.int32), 0
    lanes: list[_Lanes] = []
    while begun < n or lanes:
        room = _WIDTH - sum(len(each.which) for each in lanes)
        if begun < n and room >= _WIDTH // 2:
            which = np.arange(begun, min(begun + room, n), dtype=np.int32)
            begun += len(which)
            lanes.append(_Lanes.at_the_start(which, games[which]))
        remaining = []
        for each in lanes:
            arrived = each.step()
            ended = arrived | (each.steps >= MOST_STEPS) | (each.length < SHORTEST)
            if arrived.any():
                end = each[arrived]
                values[end.which], residual[end.which] = end.games.polished(end.point)
                found[end.which] = residual[end.which] <= EXACT
            if ended.any():
                steps[each.which] = each.steps
                each = each[~ended]
            if len(each.which):
                remaining.append(each)
        lanes = remaining
    return _result(games, values, residual, found, steps)


def _run_compiled(games: _Games, given: Sequence[Any]) -> BatchEquilibria:
    """The same by one program, on the device of the payoffs that are JAX's."""
    with needed_by("mellowmax.games.batch", "jax"):
        from .compiled import followed
    values, residual, steps = followed(
        games.payoffs.array,
        games.softmax,
        np.broadcast_to(np.ravel(_parameter(games.softmax)), len(games)),
        games.unit,
        games.span,
        games.longest,
        games.payoffs.allowed,
        next(device for payoff in given if is_jax_array(payoff) for device in payoff.devices()),
    )
    largest = games.payoffs.size
    residual = residual / np.where(largest > 0, largest, 1.0)
    return _result(games, values, residual, residual <= EXACT, steps)


def _result(
    games: _Games, values: Floats, residual: Floats, found: Bools, steps: Integers
) -> BatchEquilibria:
    payoffs = games.payoffs
    q = payoffs.rows(np.where(found[:, None], values, 0.0) * games.unit[:, None])
    policy = np.asarray(games.softmax.policy(q, where=payoffs.allowed))
    policy = np.where(found[:, None, None], policy, np.nan)
    profile = tuple(policy[:, i, :count] for i, count in enumerate(payoffs.shape))
    return BatchEquilibria(profile, residual, found, steps)


def _tangent(matrix: Floats, along: Floats) -> tuple[Floats, Floats]:
    """The unit tangents in the direction `along`, and the signs of the bordered determinants."""
    matrix[:, -1] = along
    right = np.zeros_like(along)
    right[:, -1] = 1.0
    tangent = _solve(matrix, right)
    tangent /= np.linalg.norm(tangent, axis=-1, keepdims=True)
    # With the tangent itself in the last row the determinant has the same sign.
    return tangent, np.linalg.slogdet(matrix)[0]


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0])
    except np.linalg.LinAlgError:  # one is singular to the last bit: any long step will do there
        shifted = matrix + 1e-14 * np.eye(matrix.shape[-1])
        return np.asarray(np.linalg.solve(shifted, right[..., None])[..., 0])


def _of_each(softmax: Softmax, count: int, which: Integers | None = None) -> Softmax:
    """The softmax with its parameter for each row, or for some of them, if it has one for each."""
    given = _parameter(softmax)
    if given.ndim == 0:
        return softmax
    if given.shape not in ((count,), (count, 1)):
        raise ValueError(
            f"`softmax` must have one parameter or one for each of {count} games, "
            f"got the shape {given.shape}"
        )
    each = given.reshape(count, 1)
    kind: Any = softmax
    name = dataclasses.fields(kind)[0].name
    return dataclasses.replace(kind, **{name: each if which is None else each[which]})


def _parameter(softmax: Softmax) -> Floats:
    """The first field of a softmax: one number, or one for each game; 0 if it has none."""
    fields = dataclasses.fields(softmax) if dataclasses.is_dataclass(softmax) else ()
    return np.asarray(getattr(softmax, fields[0].name) if fields else 0.0, np.float64)
