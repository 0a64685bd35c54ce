"""Thousands of games at once: the same equilibria as one by one, and none waits for another."""

from __future__ import annotations

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.known_games import OCHS, STAG_HUNT
from mellowmax import Boltzmann, EpsilonGreedy, FreeEnergy, Mellowmax
from mellowmax.games import Game, batch, compiled, trace


@pytest.mark.parametrize("family", [Boltzmann, Mellowmax])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (2, 2, 3)])
def test_each_game_has_the_equilibrium_of_its_own_branch(family, shape, rng):
    payoffs = rng.random((len(shape), 12, *shape)) * 10.0 ** rng.integers(
        -3, 3, (1, 12, *[1] * len(shape))
    )
    found = batch.principal(payoffs, family(30.0))
    assert found.found.all()
    assert found.residual.max() <= 1e-12
    for k in range(12):
        (point,) = trace(Game(payoffs[:, k]), family, [0.0, 30.0]).at(30.0)[:1]
        for own, rows in zip(point.profile, found.profile, strict=True):
            np.testing.assert_allclose(rows[k], own, rtol=0, atol=1e-11)


def test_each_game_can_have_a_parameter():
    payoffs = [np.stack([payoff] * 3) for payoff in OCHS.payoffs]
    found = batch.principal(payoffs, Mellowmax([1.0, 2.0, 3.0]))
    row = [0.54949984, 0.58610226, 0.60735398]
    np.testing.assert_allclose(found.profile[0][:, 0], row, atol=1e-8)


def test_a_prior(rng):
    payoffs = rng.random((2, 4, 3, 3))
    softmax = FreeEnergy(20.0, prior=[0.6, 0.3, 0.1])
    found = batch.principal(payoffs, softmax)
    for k in range(4):
        branch = trace(Game(payoffs[:, k]), lambda p: FreeEnergy(p, prior=[6, 3, 1]), [0.0, 20.0])
        for own, rows in zip(branch.at(20.0)[0].profile, found.profile, strict=True):
            np.testing.assert_allclose(rows[k], own, rtol=0, atol=1e-12)


def test_a_game_does_not_wait_for_the_slowest(rng, monkeypatch):
    """A few at a time or all at once: the same equilibria, in about as many calls as steps."""
    payoffs = rng.random((2, 60, 3, 3))
    whole = batch.principal(payoffs, Boltzmann(100.0))
    calls = []
    step = batch._Lanes.step
    monkeypatch.setattr(
        batch._Lanes, "step", lambda self: calls.append(len(self.which)) or step(self)
    )
    monkeypatch.setattr(batch, "_WIDTH", 8)
    by_eights = batch.principal(payoffs, Boltzmann(100.0))
    for one, other in zip(whole.profile, by_eights.profile, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(whole.steps, by_eights.steps)
    assert max(calls) <= 8
    assert sum(calls) == by_eights.steps.sum()  # no step is one of a game that has arrived


@pytest.mark.parametrize("family", [Boltzmann, pytest.param(Mellowmax, marks=pytest.mark.release)])
def test_a_compiled_program_takes_the_same_steps(family, rng, monkeypatch):
    """With payoffs of JAX, more games than lanes, and a game whose payoffs are all equal."""
    payoffs = rng.random((2, 60, 2, 3))
    payoffs[:, 2] = 3.0
    softmax = family(np.linspace(1.0, 100.0, 60))
    monkeypatch.setattr(compiled, "_WIDTH", 16)
    plain = batch.principal(payoffs, softmax)
    with jax.enable_x64(True):
        found = batch.principal(jnp.asarray(payoffs), softmax)
    assert found.found.all()
    assert found.residual.max() <= 1e-12
    np.testing.assert_array_equal(found.steps, plain.steps)
    for one, other in zip(plain.profile, found.profile, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_payoffs_of_one_number_and_a_negative_parameter(rng):
    payoffs = rng.random((2, 5, 2, 2))
    payoffs[:, 2] = 3.0
    found = batch.principal(payoffs, Boltzmann(-4.0))
    mirrored = batch.principal(-payoffs, Boltzmann(4.0))
    assert found.found.all()
    np.testing.assert_allclose(found.profile[0], mirrored.profile[0], atol=1e-12)
    np.testing.assert_array_equal(found.profile[0][2], [0.5, 0.5])


def test_a_game_that_is_not_followed_is_not_found(monkeypatch):
    monkeypatch.setattr(batch, "MOST_STEPS", 3)
    found = batch.principal([payoff[None] for payoff in STAG_HUNT.payoffs], Boltzmann(1e3))
    assert not found.found.any()
    assert np.isnan(found.profile[0]).all()
    assert np.isnan(found.residual).all()


@pytest.mark.parametrize(
    ("payoffs", "sentence"),
    [
        ([np.zeros((3, 2, 2))], "each of two players or more"),
        ([np.zeros((3, 2, 2)), np.zeros((3, 2, 3))], "got (3, 2, 2) and (3, 2, 3)"),
        ([np.zeros((2, 2)), np.zeros((2, 2))], "an axis for the games"),
        (np.zeros((2, 3, 1, 2)), "two actions for each player"),
        (np.zeros((2, 0, 2, 2)), "a game at least"),
        (
            np.where(np.arange(24).reshape(2, 3, 2, 2) == 18, math.nan, 0.0),
            "got nan for player 2 of game 1 at the actions 2 and 1",
        ),
    ],
)
def test_wrong_payoffs_are_refused_in_a_sentence(payoffs, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        batch.principal(payoffs, Boltzmann(1.0))


def test_wrong_softmaxes_are_refused_in_a_sentence():
    payoffs = np.zeros((2, 3, 2, 2))
    with pytest.raises(ValueError, match="one for each of 3 games, got the shape"):
        batch.principal(payoffs, Boltzmann([1.0, 2.0]))
    with pytest.raises(ValueError, match="moves smoothly"):
        batch.principal(payoffs, EpsilonGreedy(0.1))


@pytest.mark.release
@pytest.mark.parametrize(("shape", "beta"), [((5, 5), 100.0), ((2, 2, 2), 100.0), ((3, 3), 1e3)])
def test_no_branch_is_lost_at_the_length_of_a_step(shape, beta, monkeypatch):
    """None of 20,000 games of each kind: a step of a tenth of the length gives the same."""
    payoffs = np.random.default_rng(77).random((len(shape), 20_000, *shape))
    found = batch.principal(payoffs, Boltzmann(beta))
    monkeypatch.setattr(batch, "STEP", batch.STEP / 10)
    exact = batch.principal(payoffs, Boltzmann(beta))
    for one, other in zip(found.profile, exact.profile, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
