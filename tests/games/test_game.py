"""Games from arrays and from files, and what is said of wrong ones."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from helpers.known_games import OUTCOMES
from mellowmax.games import Game

EYE = Game.zero_sum(np.eye(2))


def loaded(tmp_path, text):
    path = tmp_path / "game.nfg"
    path.write_text(text)
    return Game.load(path)


def test_action_values_are_means_over_what_the_others_do(rng):
    payoffs = rng.normal(size=(3, 2, 3, 4))
    profile = [rng.dirichlet(np.ones(n)) for n in (2, 3, 4)]
    for player, values in enumerate(Game(payoffs).action_values(profile)):
        for action, value in enumerate(values):
            pure = [*profile]
            pure[player] = np.eye(len(values))[action]
            mean = sum(
                payoffs[player][actions]
                * math.prod(p[a] for p, a in zip(pure, actions, strict=True))
                for actions in itertools.product(range(2), range(3), range(4))
            )
            assert value == pytest.approx(mean, abs=1e-14)


def test_symmetric_and_zero_sum_games():
    chicken = Game.symmetric([[0, 7], [2, 6]])
    assert chicken.is_symmetric
    np.testing.assert_array_equal(chicken.payoffs[1], [[0, 2], [7, 6]])
    pennies = Game.zero_sum([[1, -1], [-1, 1]])
    assert not pennies.is_symmetric
    np.testing.assert_array_equal(pennies.payoffs[1], [[-1, 1], [1, -1]])


def test_payoffs_are_kept_as_they_were():
    payoffs = np.zeros((2, 2, 2))
    game = Game(payoffs)
    payoffs += 1
    assert not game.payoffs[0].any()
    with pytest.raises(ValueError, match="read-only"):
        game.payoffs[0][0, 0] = 1


def test_the_outcome_format(tmp_path):
    game = loaded(tmp_path, OUTCOMES)
    assert game.title == 'A game of "three"'
    assert game.players == ("Ann", "Bob", "Cy")
    assert game.actions == (("up", "down"), ("left", "right"), ("1", "2"))
    expected = np.zeros((3, 2, 2, 2))
    expected[:, 0, 0, 0] = 9, 8, 12
    expected[:, 0, 1, 0] = expected[:, 1, 1, 1] = 0.5, 0.25, -0.3
    np.testing.assert_array_equal(game.payoffs, expected)


def test_the_payoff_format(tmp_path):
    game = loaded(tmp_path, 'NFG 1 D "" { "a" "b" } { 2 3 }\n1 -1 2 -2 3 -3 4 -4 5 -5 6 -6')
    np.testing.assert_array_equal(game.payoffs[0], [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_array_equal(game.payoffs[1], [[-1, -3, -5], [-2, -4, -6]])
    assert game.actions == (("1", "2"), ("1", "2", "3"))


def test_a_file_holds_all_of_a_game(tmp_path, rng):
    game = Game(
        rng.normal(size=(3, 2, 4, 3)) * 10.0 ** rng.integers(-20, 20, size=(3, 2, 4, 3)),
        title='Say "cheese" \\ or not',
        players=["Ann", "Bob", "Größe"],
        actions=["ab", "wxyz", ["1 1", "{", "a\nb"]],
    )
    game.save(tmp_path / "game.nfg")
    again = Game.load(tmp_path / "game.nfg")
    assert (again.title, again.players, again.actions) == (game.title, game.players, game.actions)
    np.testing.assert_array_equal(again.payoffs, game.payoffs)


def named(payoffs):
    return Game(payoffs, players=["A", "B"], actions=["tb", "lr"])


WRONG = [
    (lambda: Game.zero_sum([[1, 2], [math.inf, 0]]), "inf for player 1 at the actions 2 and 1"),
    (
        lambda: named([np.eye(2), [[1, math.nan], [0, 0]]]),
        "nan for player B at the actions t and r",
    ),
    (lambda: Game(np.zeros((2, 1, 2))), "player 1 must have at least two actions, got 1"),
    (lambda: Game([np.eye(2), np.eye(3)]), "(2, 2) for player 1 and (3, 3) for player 2"),
    (lambda: Game.from_arrays([1, 2], [1, 2]), "one shape with 2 axes"),
    (lambda: Game.from_arrays([1, 2]), "two players or more, got 1"),
    (lambda: Game([], title="x"), "two players or more, got 0"),
    (lambda: Game.symmetric([[1, 2, 3], [1, 2, 3]]), "as many rows as columns, got (2, 3)"),
    (lambda: Game(np.zeros((2, 2, 2)), players=["A"]), "a name for each of 2 players"),
    (lambda: Game(np.zeros((2, 2, 2)), actions=["ab", "abc"]), "2 and 2 of them, got 2 and 3"),
    (lambda: EYE.action_values([[0.5, 0.5], [1.5, -0.5]]), "got 1.5 for action 1 of player 2"),
    (lambda: EYE.action_values([[0.5, 0.4], [1, 0]]), "a sum of 0.9 for player 1"),
    (lambda: EYE.action_values([[1, 0, 0], [1, 0]]), "got (3,) and (2,)"),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG)
def test_a_wrong_game_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        wrong()


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("NFG", "EFG", "line 1 must have 'NFG', got 'EFG'"),
        ("9, 8, 12", "9, 8", "line 11 must have a payoff of 'Cy', got '}'"),
        ("-3e-1", "nan", "line 12 must have a payoff of 'Cy', got 'nan'"),
        ("-3e-1", "1e999", "line 12 must have a payoff of 'Cy' that is finite, got '1e999'"),
        ("1/2", "1/0", "line 12 must have a payoff of 'Ann' that is finite, got '1/0'"),
        ("0 0 0 2", "0 0 0 3", "line 15 must have the number of an outcome, from 0 to 2, got '3'"),
        ("0 0 0 2", "0 0 0", "payoffs for 8 profiles of actions (2 * 2 * 2), got 7"),
        ("0 0 0 2", "0 0 0 2 0", "payoffs for 8 profiles of actions (2 * 2 * 2), got 9"),
        ('{ "Ann" "Bob" "Cy" }', "{ }", "must name a player"),
        ('"up" "down"', '"up" down', "line 3 must have the name of an action of 'Ann' in double"),
        ('"up" "down"', '"up"', "payoffs for 4 profiles of actions (1 * 2 * 2), got 8"),
        ('{ "up" "down" }', "999999999", "payoffs for 999999999 actions, got fewer"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(tmp_path, before, after, sentence):
    assert before in OUTCOMES
    if sentence == "got 4 * 1":
        sentence = "payoffs for 4 profiles of actions (1 * 2 * 2), got 8"
    with pytest.raises(
        ValueError, match=r"game\.nfg' must be a \.nfg file: .*" + re.escape(sentence)
    ):
        loaded(tmp_path, OUTCOMES.replace(before, after))


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "game.nfg").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(ValueError, match="got no text"):
        Game.load(tmp_path / "game.nfg")
    with pytest.raises(FileNotFoundError):
        Game.load(tmp_path / "none.nfg")
