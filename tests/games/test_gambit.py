"""Logit equilibria against Gambit's, where pygambit is installed."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.gambit import explained, principal
from mellowmax import Boltzmann
from mellowmax.games import Game, batch

gambit = pytest.importorskip("pygambit", reason="pygambit is not installed", minversion="17.0.0b2")


@pytest.mark.parametrize("beta", [10.0, 100.0])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (5, 5), (2, 2, 2)])
@pytest.mark.parametrize("count", [5, pytest.param(1000, marks=pytest.mark.release)])
def test_no_equilibrium_differs_from_gambits(shape, beta, count):
    """By more than 1e-7, unless it is Gambit's that is off: `pytest -s` prints these, and why."""
    payoffs = np.random.default_rng(11).random((len(shape), count, *shape))
    found = batch.principal(payoffs, Boltzmann(beta))
    assert found.found.all()
    for k in range(count):
        game = Game(payoffs[:, k])
        profile = [own[k] for own in found.profile]
        apart, why = explained(game, beta, profile)
        if apart > 1e-7:
            print(f"game {k} differs by {apart:.1e}: {why or 'without a reason'}")
        assert apart <= 1e-7 or why, f"game {k}"


def test_files_are_read_as_gambit_reads_them(tmp_path, rng):
    game = Game(
        rng.normal(size=(3, 2, 3, 2)) * 10.0 ** rng.integers(-9, 9, size=(3, 2, 3, 2)),
        title='a "b" \\ c',
        actions=["ab", "abc", "xy"],
    )
    game.save(tmp_path / "game.nfg")
    theirs = gambit.read_nfg(tmp_path / "game.nfg")
    for ours, array in zip(game.payoffs, theirs.to_arrays(), strict=True):
        np.testing.assert_array_equal(np.asarray(array, float), ours)
    (tmp_path / "again.nfg").write_text(theirs.to_nfg())  # in the outcome format
    again = Game.load(tmp_path / "again.nfg")
    assert again.actions == game.actions
    for ours, array in zip(game.payoffs, again.payoffs, strict=True):
        np.testing.assert_array_equal(array, ours)


def test_a_wrong_profile_is_told_from_gambits(rng):
    game = Game(rng.random((2, 3, 3)))
    profile = principal(game, 10.0)
    assert explained(game, 10.0, profile) == (0, "")
    apart, why = explained(game, 10.0, [own[::-1] for own in profile])
    assert apart > 1e-3
    assert not why
