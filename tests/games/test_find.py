"""All equilibria of a game: their number, what is said of each, and what is proved."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from helpers.known_games import CONSTANT_SUM, IDENTITY, OCHS, STAG_HUNT, THREE_BY_TWO, of_three
from mellowmax import Boltzmann, FreeEnergy, LogSumExp, Mean, Mellowmax
from mellowmax.games import Game, equilibria
from mellowmax.games.policy_jacobian import policy_and_jacobian
from mellowmax.softmax import Softmax

find = sys.modules["mellowmax.games.find"]


def test_a_zero_sum_game_with_three_equilibria_of_mellowmax():
    found = equilibria(THREE_BY_TWO, Mellowmax(1.0))
    column = [point.profile[1][0] for point in found]
    assert column == pytest.approx([0.4847896153, 0.5143938095, 0.5210251060], abs=1e-9)
    assert [point.index for point in found] == [1, -1, 1]
    assert [point.values[0] for point in found] == pytest.approx(
        [-0.874038, -0.627597, -0.536502], abs=1e-6
    )
    assert [point.spectral_radius for point in found] == pytest.approx(
        [0.704, 1.305, 0.762], abs=1e-3
    )
    assert [point.stable for point in found] == [True, False, True]
    assert not found.complete
    assert "their indices sum to +1" in found.reason
    for point in found:
        for own, values in zip(
            point.profile, THREE_BY_TWO.action_values(point.profile), strict=True
        ):
            assert own == pytest.approx(Mellowmax(1.0).policy(values), abs=1e-12)


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0, 10.0])
def test_the_same_game_has_one_logit_equilibrium(beta):
    found = equilibria(THREE_BY_TWO, Boltzmann(beta))
    assert len(found) == 1
    assert found.complete


@pytest.mark.parametrize(
    ("family", "below", "above"), [(Boltzmann, 3.58, 3.6), (Mellowmax, 11.0, 11.1)]
)
def test_the_stag_hunt_has_several_from_its_fold_on(family, below, above):
    assert [len(equilibria(STAG_HUNT, family(p))) for p in (below, above)] == [1, 3]


def test_everything_that_is_said_of_an_equilibrium(rng):
    game = Game(rng.random((3, 2, 3, 2)))
    softmax = Mellowmax(30.0)
    for point in equilibria(game, softmax):
        values = game.action_values(point.profile)
        for i, (own, q) in enumerate(zip(point.profile, values, strict=True)):
            np.testing.assert_allclose(point.action_values[i], q)
            assert point.values[i] == pytest.approx(own @ q)
            assert point.regret[i] == pytest.approx(q.max() - own @ q, abs=1e-12)
            assert point.regret[i] <= softmax.gap(len(own)) + 1e-12
        assert point.stable == (point.spectral_radius < 1)
        # A small change of the profile comes back at the rate of the spectral radius.
        profile = [own + 1e-7 * (rng.dirichlet(np.ones(len(own))) - own) for own in point.profile]
        sizes = []
        for _ in range(40):
            profile = [softmax.policy(q) for q in game.action_values(profile)]
            sizes.append(max(abs(a - b).max() for a, b in zip(profile, point.profile, strict=True)))
        if 1e-9 < sizes[-1] < 1e-3:
            assert (sizes[-1] < sizes[0]) == point.stable


REASONS = [
    (OCHS, Mean(), "No policy moves"),
    (of_three(), Boltzmann(0.0), "No policy moves"),
    (of_three(), Boltzmann(0.1), "contract"),
    (STAG_HUNT, Mellowmax(1.9), "contract"),
    (CONSTANT_SUM, Boltzmann(50.0), "A zero-sum game"),
    (OCHS, Boltzmann(50.0), "Only one of two players"),
    (OCHS, Mellowmax(500.0), "Only one of two players"),
    (STAG_HUNT, Boltzmann(20.0), "A bound on the second derivative"),
    (STAG_HUNT, Mellowmax(60.0), "A bound on the second derivative"),
    (STAG_HUNT, Mellowmax(60.0, prior=[3.0, 1.0]), "A bound on the second derivative"),
    (STAG_HUNT, FreeEnergy(20.0, prior=[1.0, 3.0]), "A bound on the second derivative"),
    (CONSTANT_SUM, FreeEnergy(50.0, prior=[1.0, 3.0]), "A zero-sum game"),
    (STAG_HUNT, LogSumExp(0.9), "contract"),
]


@pytest.mark.parametrize(("game", "softmax", "words"), REASONS)
def test_a_proof_agrees_with_the_search(game, softmax, words, monkeypatch):
    proved = equilibria(game, softmax)
    assert proved.complete
    assert words in proved.reason
    monkeypatch.setattr(find, "why_only_one", lambda *args: None)
    monkeypatch.setattr(find, "all_of_two_by_two", lambda *args: None)
    searched = equilibria(game, softmax)
    assert not searched.complete
    for a, b in zip(proved, searched, strict=True):
        np.testing.assert_allclose(np.concatenate(a.profile), np.concatenate(b.profile), atol=1e-10)


def test_nothing_is_proved_without_a_reason():
    """As of mellowmax with three actions, zero-sum or not, however small the parameter is."""
    for softmax in (Mellowmax(1e-6), Mellowmax([0.1, 0.2])):
        found = equilibria(THREE_BY_TWO, softmax)
        assert len(found) == 1
        assert not found.complete
    several = Boltzmann([2.0, 3.0])  # one for each player
    assert not equilibria(OCHS, several).complete


def test_two_that_meet_are_not_proved_to_be_one_or_two():
    found = equilibria(STAG_HUNT, Boltzmann(3.58899418156529))
    assert not found.complete
    assert "rounding hides" in found.reason


def test_each_player_can_have_a_parameter():
    (point,) = equilibria(OCHS, Boltzmann([1.0, 4.0]))
    row, column = OCHS.action_values(point.profile)
    np.testing.assert_allclose(point.profile[0], Boltzmann(1.0).policy(row), atol=1e-12)
    np.testing.assert_allclose(point.profile[1], Boltzmann(4.0).policy(column), atol=1e-12)


def test_payoffs_that_are_all_equal_leave_the_centroid():
    (point,) = equilibria(Game(np.ones((2, 2, 3))), Mellowmax(3.0))
    assert point.profile[1] == pytest.approx(np.full(3, 1 / 3))
    assert point.residual == 0


@dataclasses.dataclass(frozen=True)
class Trembling(Softmax):
    """A logit policy, but for a tenth of the time."""

    beta: float
    smooth_policy = True

    def value(self, q, *, axis=-1, where=None):
        return 0.9 * Boltzmann(self.beta).value(q, axis=axis, where=where)

    def policy(self, q, *, axis=-1, where=None):
        pairs = Boltzmann(self.beta), Mean()
        soft, uniform = (pair.policy(q, axis=axis, where=where) for pair in pairs)
        return 0.9 * soft + 0.1 * uniform

    def log_policy(self, q, *, axis=-1, where=None):
        raise NotImplementedError

    def gradient(self, q, *, axis=-1, where=None):
        raise NotImplementedError


def test_a_softmax_of_ones_own():
    found = equilibria(IDENTITY, Trembling(20.0))
    assert sorted(point.index for point in found) == [-1, 1, 1]
    for point in found:
        for own, values in zip(point.profile, IDENTITY.action_values(point.profile), strict=True):
            np.testing.assert_allclose(own, Trembling(20.0).policy(values), atol=1e-12)


PRIOR = [0.5, 0.2, 0.2, 0.1]
SMOOTH = [
    Boltzmann(2.0),
    Mellowmax(3.0),
    Mellowmax(-40.0),
    Mellowmax([5.0, 1.0]),
    Mellowmax(5.0, prior=PRIOR),
    LogSumExp(2.0),
    FreeEnergy(2.0, prior=PRIOR),
]


@pytest.mark.parametrize("softmax", SMOOTH, ids=str)
@pytest.mark.parametrize("mask", [None, [[True, True, True, True], [True, False, True, True]]])
def test_the_jacobian_of_a_policy_is_its_slope(softmax, mask, rng):
    where = None if mask is None else np.array(mask)
    q = rng.normal(size=(6, 2, 4))
    q[0], q[1, 0] = 1.0, [1.0, 1.0 + 1e-5, 1.0 - 2e-5, 1.0]  # ties, and nearly so
    policy, jacobian = policy_and_jacobian(softmax, q, where)
    np.testing.assert_allclose(policy, softmax.policy(q, where=where), atol=1e-15)
    for action, h in ((a, 1e-6) for a in range(4)):
        if where is None or where[:, action].all():
            step = h * np.eye(4)[action]
            above, below = (softmax.policy(q + s * step, where=where) for s in (1, -1))
            slope = (above - below) / (2 * h)
            # At a tie the second derivative jumps, so that the difference is less exact there.
            np.testing.assert_allclose(jacobian[..., action], slope, atol=2e-5)
            np.testing.assert_allclose(jacobian[2:, ..., action], slope[2:], atol=5e-8)
