"""A branch of equilibria, followed through the parameter of a softmax.

Where the parameter is 0, no policy moves with the values: there is one equilibrium, the centroid,
where all actions are equally likely unless a prior says otherwise. From there a branch leads on,
the principal one, and for nearly every game it tends to a Nash equilibrium as the parameter grows
(McKelvey and Palfrey, 1995; Turocy, 2005). It can turn back at folds, which its arclength passes
like any other point (`_fixed_points.follow`). In a game with symmetries other branches can cross
it: then it goes straight on, and says where.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .._common import checks
from .._fixed_points.curve import Curve, Point, Range, Slope
from .._fixed_points.follow import Path, follow
from .._fixed_points.maps import read_only
from .._fixed_points.newton import undamped_newton
from .._fixed_points.special_points import branch_crossings, crossings, with_folds
from .._typing import ArrayLike, Floats
from .equilibrium import Equilibrium, Setting
from .family import Family
from .game import Game
from .policy_jacobian import check_smooth
from .responses import Response

__all__ = ["LONGEST", "STEP", "Branch", "trace"]

STEP = 0.5
"""The longest step in the logarithm of a large parameter, at which hardly any branch is lost."""
LONGEST = 0.25
"""The longest step as a share of the range."""
_ERROR = 1e-9
"""About how far a point may be from the branch; `at` gives equilibria to rounding."""
_EXACT = 1e-9
"""The largest residual of a start, relative to the payoffs."""


@dataclasses.dataclass(frozen=True, eq=False)
class Branch:
    """A branch of equilibria; the parameter can go up and down along it."""

    points: tuple[Equilibrium, ...]
    """In order along the branch, its folds among them."""
    folds: tuple[Equilibrium, ...]
    """Where the parameter turns back: two equilibria meet there."""
    crossings: tuple[Equilibrium, ...]
    """Where another branch crosses: `equilibria` at a parameter beyond finds it, to `start` on."""
    closed: bool
    """Does it end where it began?"""
    _setting: Setting = dataclasses.field(repr=False)
    _family: Family = dataclasses.field(repr=False)
    _curve: Curve = dataclasses.field(repr=False)
    _path: Floats = dataclasses.field(repr=False)

    @property
    def parameters(self) -> Floats:
        """The parameters of the points."""
        return read_only([point.parameter for point in self.points])

    def at(self, parameters: ArrayLike) -> tuple[Equilibrium, ...]:
        """The equilibria of the branch at given parameters, one or several, to rounding.

        They are in the order of the parameters, and those of one parameter in that of the branch:
        the first is the one that is nearest to its start.

        Raises:
            ValueError: for a parameter beyond the range.
        """
        levels = np.atleast_1d(checks.numbers("parameters", parameters))
        ends = self._curve.range
        low, high = sorted((ends.first, ends.last))
        found: list[Equilibrium] = []
        for parameter in levels.ravel().tolist():
            if not low <= parameter <= high:
                raise ValueError(f"`parameters` must be in [{low:g}, {high:g}], got {parameter:g}")
            found += self._at(parameter)
        return tuple(found)

    def _at(self, parameter: float) -> list[Equilibrium]:
        level, path = float(self._curve.range.level(parameter)), self._path
        softmax = self._family(parameter)
        response = Response(self._setting.payoffs, softmax)
        result: list[Equilibrium] = []
        for k in np.flatnonzero((path[:-1, -1] - level) * (path[1:, -1] - level) <= 0):
            a, b = path[k], path[k + 1]
            if a[-1] == b[-1] or (result and a[-1] == level):  # that one was found a step before
                continue
            # Newton's method finds it from between the two points, unless it goes astray.
            guess = a + (b - a) * ((level - a[-1]) / (b[-1] - a[-1]))
            vector, exact = undamped_newton(response, guess[:-1] * self._curve.unit)
            away = np.linalg.norm(vector / self._curve.unit - guess[:-1])
            if not exact or away > np.linalg.norm(b - a) / 2:
                (near,) = crossings(self._curve, np.stack([a, b]), level)
                vector, _ = undamped_newton(response, near[:-1] * self._curve.unit)
            result.append(Equilibrium(softmax, parameter, self._setting, vector))
        return result


def trace(
    game: Game,
    family: Family,
    parameters: Sequence[float] | Floats,
    *,
    start: Equilibrium | None = None,
    step: float = STEP,
) -> Branch:
    """Follow a branch of equilibria through the parameter of a softmax.

    Args:
        game: the game.
        family: from a parameter to a softmax, such as the class `Boltzmann`. At 0 its policy must
            be the same whatever the action values are.
        parameters: the ends of the range. Without a `start` one of them must be 0: there the
            principal branch begins.
        start: an equilibrium of the game at a parameter of the range, such as one of `equilibria`;
            the branch through it is followed to both sides.
        step: the longest step along the branch: by how much the logarithm of the parameter may
            change at once, where it is large.

    Returns:
        The `Branch`: its points with its folds and crossings, and `at(parameters)`.

    Raises:
        ValueError: if the softmax has no smooth policy or an argument is out of range.
        RuntimeError: if the branch cannot be followed.

    Examples:
        >>> from mellowmax import Boltzmann, Mellowmax
        >>> game = Game.from_arrays([[1.1141, 0], [0, 0.2785]], [[0, 1.1141], [1.1141, 0]])
        >>> for point in trace(game, Boltzmann, [0.0, 3.0]).at([1.0, 2.0, 3.0]):
        ...     print(point.profile[0].round(6), point.profile[1].round(6))
        [0.586784 0.413216] [0.451807 0.548193]
        [0.617522 0.382478] [0.371982 0.628018]
        [0.616897 0.383103] [0.314016 0.685984]
        >>> trace(game, Mellowmax, [0.0, 3.0]).at(3.0)[0].profile[0].round(6)
        array([0.607354, 0.392646])

    References:
        Asadi and Littman (2017), section 8, asks for mellowmax in quantal response equilibria.
    """
    checks.instance("game", game, Game, "a Game")
    checks.function("family", family, "a function from a parameter to a Softmax")
    ends = checks.numbers("parameters", parameters)
    if ends.shape != (2,) or not (np.isfinite(ends).all() and ends[0] != ends[1]):
        raise ValueError(f"`parameters` must be the two ends of a range, got {parameters}")
    for end in ends:
        check_smooth(family(float(end)))
    if not 0 < checks.real("step", step) <= 1:
        raise ValueError(f"`step` must be in (0, 1], got {step}")
    setting = Setting.of(game)
    low, high = setting.payoffs.low, setting.payoffs.high
    if start is None:
        if not (ends == 0).any():
            raise ValueError(
                f"`parameters` must have 0 at an end, where the principal branch begins, or "
                f"`start` must be given, got {parameters}"
            )
        ends = ends[np.argsort(ends != 0, kind="stable")]
    first, last = (float(end) for end in ends)
    levels = Range(first, last, float(np.max(high - low)))
    slope = _slope(setting, family, levels)

    def response(parameter: float) -> Response:
        return Response(setting.payoffs, family(parameter))

    curve = Curve.of(response, levels, low, high, slope, _ERROR)
    longest = min(step / (abs(levels.span) or 1.0), LONGEST)
    if start is not None:
        path = _through(curve, setting, start, longest)
    else:
        path = _principal(curve, family, longest)
    points, folds = with_folds(curve, path)

    def equilibrium(point: Point) -> Equilibrium:
        parameter = curve.parameter(point)
        return Equilibrium(family(parameter), parameter, setting, point[:-1] * curve.unit)

    return Branch(
        tuple(map(equilibrium, points)),
        tuple(map(equilibrium, folds)),
        tuple(map(equilibrium, branch_crossings(curve, path))),
        path.closed,
        setting,
        family,
        curve,
        np.array(points),
    )


def _slope(setting: Setting, family: Family, levels: Range) -> Slope | None:
    """`Slope` of a policy that depends on the parameter times the values; None for others."""
    payoffs, most = setting.payoffs, max((levels.first, levels.last), key=abs)
    rows = payoffs.rows(payoffs.low / (abs(most) * levels.size or 1.0))
    one, other = (family(share * most).policy(rows / share) for share in (1.0, 0.5))
    if not abs(np.asarray(one) - np.asarray(other)).max() < 1e-9:
        return None
    least = 1e-3 / (levels.size or 1.0)

    def slope(v: Floats, parameter: float, jacobian: Floats) -> Floats:
        if abs(parameter) < 1e-3 * least:  # the quotient is 0 / 0 at 0
            parameter, response = least, Response(payoffs, family(least))
            jacobian = response.linearised(v)[1]
        return np.asarray(jacobian @ v / parameter)

    return slope


def _principal(curve: Curve, family: Family, longest: float) -> Path:
    """The path from the centroid."""
    # Values of 0 say as much at every parameter, where its product with them is all that counts.
    response = curve.map_at(0.0 if curve.slope is None else 1.0)
    vector = response.residual(np.zeros(len(curve.low)))
    if curve.slope is None and abs(response.residual(vector)).max() > _EXACT * curve.unit:
        raise ValueError(
            "`family` must give one policy whatever the action values are at the parameter 0, "
            f"got {family(0.0)}"
        )
    return follow(curve, curve.scaled(vector, curve.range.first), 1, longest)


def _through(curve: Curve, setting: Setting, start: Equilibrium, longest: float) -> Path:
    """The path through an equilibrium, to both sides."""
    checks.instance("start", start, Equilibrium, "an Equilibrium of the game")
    parameter, vector = start.parameter, start._vector
    low, high = sorted((curve.range.first, curve.range.last))
    if not low <= parameter <= high:
        raise ValueError(f"`start` must have a parameter in [{low:g}, {high:g}], got {parameter:g}")
    response = curve.family(parameter)
    if len(vector) != len(curve.low) or (
        abs(response.residual(vector)).max() > _EXACT * curve.unit
    ):
        raise ValueError("`start` must be an equilibrium of this game under `family`, got another")
    point = curve.scaled(vector, parameter)
    ways = [
        way for way, end in ((1, curve.range.last), (-1, curve.range.first)) if parameter != end
    ]
    paths = [follow(curve, point, way, longest) for way in ways[:1]]
    if len(ways) == 2 and not paths[0].closed:
        return paths[0].after(follow(curve, point, -1, longest))
    return paths[0]
