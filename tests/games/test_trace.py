"""Branches of equilibria: known points of them, folds, crossings, exactness and units."""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest

from helpers.known_games import CONSTANT_SUM, IDENTITY, OCHS, STAG_HUNT, THREE_BY_TWO, of_three
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.games import Game, equilibria, trace

LOGIT = [  # the probability of each player's first action, from Gambit
    (CONSTANT_SUM, 1, 0.64297936, 0.58831902),
    (CONSTANT_SUM, 2, 0.77267661, 0.61174348),
    (CONSTANT_SUM, 3, 0.85953671, 0.60381579),
    (OCHS, 1, 0.58678404, 0.45180703),
    (OCHS, 2, 0.61752195, 0.37198166),
    (OCHS, 3, 0.61689685, 0.31401636),
]


def first_actions(point):
    return [own[0] for own in point.profile]


@pytest.mark.parametrize(("game", "beta", "row", "column"), LOGIT)
def test_logit_equilibria_are_gambits(game, beta, row, column):
    (point,) = trace(game, Boltzmann, [0.0, 3.0]).at(beta)
    assert first_actions(point) == pytest.approx([row, column], abs=1e-8)


def two_action_policy(omega, gain):
    """Mellowmax's probability of the better of two actions, in closed form."""
    x = omega * gain
    return mpmath.log((1 + mpmath.exp(x)) / 2) / x


def test_mellowmax_equilibria_solve_the_closed_form():
    (a, b), (c, d) = OCHS.payoffs
    branch = trace(OCHS, Mellowmax, [0.0, 3.0])
    for point, omega in zip(branch.at([1, 2, 3]), (1, 2, 3), strict=True):

        def equations(x, y, omega=omega):
            row = (a[0] - b[0]) * y + (a[1] - b[1]) * (1 - y)
            column = (c[0] - c[1]) * x + (d[0] - d[1]) * (1 - x)
            return x - two_action_policy(omega, row), y - two_action_policy(omega, column)

        exact = mpmath.findroot(equations, (0.55, 0.45))
        assert first_actions(point) == pytest.approx([float(one) for one in exact], abs=1e-13)


def test_the_branch_of_ochs_tends_to_the_nash_equilibrium():
    (point,) = trace(OCHS, Boltzmann, [0.0, 1e6]).at(1e6)
    assert first_actions(point) == pytest.approx([0.5, 0.2785 / 1.3926], abs=2e-6)
    assert point.residual < 1e-12


@pytest.mark.parametrize(("family", "parameter"), [(Boltzmann, 2.0), (Mellowmax, 4.0)])
def test_a_symmetric_branch_goes_straight_on_where_another_crosses_it(family, parameter):
    branch = trace(IDENTITY, family, [0.0, 10.0])
    (crossing,) = branch.crossings
    assert crossing.parameter == pytest.approx(parameter, abs=1e-8)
    assert crossing.index == 0
    for point in branch.points:
        assert first_actions(point) == pytest.approx([0.5, 0.5], abs=1e-9)
        if abs(point.parameter - parameter) > 1e-3:
            assert point.index == (1 if point.parameter < parameter else -1)
    chosen = equilibria(IDENTITY, family(1.5 * parameter))[-1]
    other = trace(IDENTITY, family, [0.0, 10.0], start=chosen)
    assert max(abs(np.subtract(first_actions(other.points[-1]), 0.5))) > 0.3


def test_the_end_of_the_branch_of_three_players_is_named():
    """There is a choice at a crossing; the branch goes straight on."""
    branch = trace(of_three(), Boltzmann, [0.0, 1e3])
    assert first_actions(branch.points[-1]) == pytest.approx([0.5, 0.5, 1.0], abs=1e-3)
    assert len(branch.crossings) == 1


def exact_fold(family):
    """Where two symmetric equilibria of the stag hunt meet, from one equation and its slope."""

    def policy(x):
        return 1 / (1 + mpmath.exp(-x)) if family is Boltzmann else two_action_policy(1, x)

    def equations(p, parameter):
        x = parameter * (4 * p - 3)
        return policy(x) - p, mpmath.diff(policy, x) * 4 * parameter - 1

    with mpmath.workdps(30):
        start = (0.92, 3.6) if family is Boltzmann else (0.87, 11.0)
        return [float(one) for one in mpmath.findroot(equations, start)]


@pytest.mark.parametrize("family", [Boltzmann, Mellowmax])
def test_folds_of_the_stag_hunt(family):
    probability, parameter = exact_fold(family)
    start = equilibria(STAG_HUNT, family(2 * parameter))[-1]
    branch = trace(STAG_HUNT, family, [0.0, 3 * parameter], start=start)
    (fold,) = branch.folds
    assert fold.parameter == pytest.approx(parameter, rel=1e-9)
    assert first_actions(fold) == pytest.approx([probability] * 2, abs=1e-5)
    ends = {branch.points[0].index, branch.points[-1].index}
    assert ends == {1, -1}
    assert len(branch.at(2 * parameter)) == 2
    assert not branch.at(0.5 * parameter)
    assert not trace(STAG_HUNT, family, [0.0, 3 * parameter]).folds


def test_all_three_equilibria_of_the_three_by_two_game_are_on_its_principal_branch():
    found = equilibria(THREE_BY_TWO, Mellowmax(1.0))
    branch = trace(THREE_BY_TWO, Mellowmax, [0.0, 2.0])
    values = [point.values[0] for point in branch.at(1.0)]
    assert values == pytest.approx([point.values[0] for point in found], abs=1e-10)
    assert len(branch.folds) == 2
    assert len(trace(THREE_BY_TWO, Boltzmann, [0.0, 2.0]).at(1.0)) == 1


@pytest.mark.parametrize("family", [Boltzmann, Mellowmax])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 2, 3)])
def test_a_point_is_the_response_to_itself_to_rounding(family, shape, rng):
    for _ in range(3):
        game = Game(rng.random((len(shape), *shape)))
        for parameter in (10.0, 100.0):
            for point in trace(game, family, [0.0, parameter]).at([parameter]):
                assert point.parameter == parameter
                assert point.softmax == family(parameter)
                assert point.residual <= 1e-12
                for own, values in zip(
                    point.profile, game.action_values(point.profile), strict=True
                ):
                    assert own == pytest.approx(family(parameter).policy(values), abs=1e-11)
                    assert abs(own.sum() - 1) < 1e-14


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("family", [Boltzmann, Mellowmax])
def test_the_units_of_payoffs_do_not_matter(family, scale, rng):
    payoffs = rng.random((2, 3, 3))
    one, other = (
        trace(Game(k * payoffs), family, [0.0, 100 / k]).at([10 / k, 100 / k]) for k in (1, scale)
    )
    for a, b in zip(one, other, strict=True):
        for own, same in zip(a.profile, b.profile, strict=True):
            np.testing.assert_allclose(same, own, rtol=0, atol=1e-12)
        assert b.values == pytest.approx(a.values * scale, rel=1e-12)


def test_what_only_the_others_decide_does_not_matter(rng):
    """A payoff for what the other player does changes no equilibrium, however large it is."""
    payoffs = rng.random((2, 3, 3))
    moved = payoffs + 1e3 * np.stack(
        [rng.random((1, 3)) + 0 * payoffs[0], rng.random((3, 1)) + 0 * payoffs[1]]
    )
    one, other = (trace(Game(p), Mellowmax, [0.0, 50.0]).at(50.0)[0] for p in (payoffs, moved))
    for a, b in zip(one.profile, other.profile, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_negative_parameters_and_ranges_in_either_order():
    down = trace(OCHS, Boltzmann, [0.0, -2.0]).at(-1.5)[0]
    same = trace(OCHS, Boltzmann, [-2.0, 0.0]).at(-1.5)[0]
    mirrored = Game([-payoff for payoff in OCHS.payoffs])
    up = trace(mirrored, Boltzmann, [0.0, 2.0]).at(1.5)[0]
    assert first_actions(down) == first_actions(same) == pytest.approx(first_actions(up), abs=1e-14)


def test_a_start_at_an_end_and_in_the_middle():
    game = STAG_HUNT
    at_end = equilibria(game, Boltzmann(5.0))[-1]
    up = trace(game, Boltzmann, [5.0, 10.0], start=at_end)
    both = trace(game, Boltzmann, [4.0, 10.0], start=at_end)
    assert first_actions(up.at(9.0)[0]) == pytest.approx(first_actions(both.at(9.0)[-1]), abs=1e-13)
    assert up.parameters[0] == 5.0
    assert both.parameters[[0, -1]].tolist() == [4.0, 10.0]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: trace(OCHS, Boltzmann, [1.0, 2.0]), "must have 0 at an end"),
        (lambda: trace(OCHS, Boltzmann, [1.0, 1.0]), "the two ends of a range"),
        (lambda: trace(OCHS, Boltzmann, [0.0, math.inf]), "the two ends of a range"),
        (lambda: trace(OCHS, Boltzmann, [0.0, 1.0], step=0.0), "`step` must be in"),
        (lambda: trace(OCHS, lambda p: Boltzmann(1 + p), [0.0, 1.0]), "one policy whatever"),
        (lambda: trace(OCHS, EpsilonGreedy, [0.0, 1.0]), "moves smoothly"),
        (lambda: trace(OCHS, lambda p: Max(), [0.0, 1.0]), "moves smoothly"),
        (lambda: trace(OCHS, Boltzmann, [0.0, 1.0]).at(2.0), "must be in [0, 1], got 2"),
        (
            lambda: trace(OCHS, Boltzmann, [0.0, 1.0], start=equilibria(OCHS, Boltzmann(2.0))[0]),
            "a parameter in [0, 1], got 2",
        ),
        (
            lambda: trace(OCHS, Mellowmax, [0.0, 5.0], start=equilibria(OCHS, Boltzmann(2.0))[0]),
            "an equilibrium of this game under `family`",
        ),
        (lambda: equilibria(OCHS, Mellowmax(math.inf)), "a finite parameter"),
        (lambda: equilibria(OCHS, Max()), "moves smoothly"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        wrong()


def test_a_family_of_one_policy_has_one_point_everywhere():
    branch = trace(OCHS, lambda p: Mean(), [0.0, 5.0])
    assert first_actions(branch.at(3.0)[0]) == [0.5, 0.5]
