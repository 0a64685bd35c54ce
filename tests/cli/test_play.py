"""`mellowmax play`: what it prints, the picture of branches, and mistakes in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from helpers.commands import assert_one_sentence, call, rows
from helpers.known_games import CONSTANT_SUM, OUTCOMES, STAG_HUNT, THREE_BY_TWO
from mellowmax import Boltzmann, Mellowmax
from mellowmax.games import equilibria


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with some games."""
    monkeypatch.chdir(tmp_path)
    for name, game in (("sum", CONSTANT_SUM), ("hunt", STAG_HUNT), ("three", THREE_BY_TWO)):
        game.save(f"{name}.nfg")
    (tmp_path / "outcomes.nfg").write_text(OUTCOMES)
    return tmp_path


def test_the_equilibria_are_printed(here):
    done = call("play", "three.nfg", "--softmax", "mellowmax", "--parameter", 1)
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout)
    assert said["game"] == "three.nfg: 3 x 2"
    assert said["softmax"] == "Mellowmax(omega=1.0)"
    assert said["found"] == "3 equilibria"
    assert said["complete"].startswith("no: Not proved")
    lines = done.stdout.split("\n\n")[1].splitlines()[2:]
    table = {line[:12].strip(): line[12:].split() for line in lines}
    found = equilibria(THREE_BY_TWO, Mellowmax(1.0))
    for player, count in ((0, 3), (1, 2)):
        for action in range(count):
            shown = [float(cell) for cell in table[f"{player + 1}: {action + 1}"]]
            assert shown == [round(point.profile[player][action], 4) for point in found]
    assert table["value of 1"] == [f"{point.values[0]:.5g}" for point in found]
    assert table["stable"] == ["yes", "no", "yes"]
    assert table["index"] == ["+1", "-1", "+1"]


def test_a_game_of_three_players_with_names(here):
    done = call("play", "outcomes.nfg", "--softmax", "boltzmann", "--parameter", 0.01)
    assert rows(done.stdout)["game"] == 'outcomes.nfg: 2 x 2 x 2, A game of "three"'
    assert "\nAnn: up " in done.stdout
    assert "\nregret of Cy " in done.stdout


def test_json_has_everything(here):
    done = call("play", "sum.nfg", "--softmax", "boltzmann", "--parameter", 2, "--json")
    data = json.loads(done.stdout)
    assert data["complete"] is True
    (shown,) = data["equilibria"]
    (point,) = equilibria(CONSTANT_SUM, Boltzmann(2.0))
    np.testing.assert_allclose(np.array(shown["profile"]), point.profile, atol=1e-12)
    np.testing.assert_allclose(shown["values"], point.values, atol=1e-12)
    np.testing.assert_allclose(shown["regret"], point.regret, atol=1e-12)
    assert shown["index"] == 1
    assert call("play", "sum.nfg", "--parameter", 2, "--quiet").stdout == ""


def test_the_branches_are_drawn(here):
    given = ("play", "hunt.nfg", "--softmax", "boltzmann", "--parameter", 5)
    for name in ("branches.svg", "branches.png"):
        done = call(*given, "--trace", name)
        assert done.exit_code == 0, done.stderr
        assert rows(done.stdout)["written"] == name
        first = (here / name).read_bytes()
        assert call(*given, "--trace", name).exit_code == 0  # its own file is replaced
        assert (here / name).read_bytes() == first
    picture = np.asarray(Image.open(here / "branches.png").convert("RGB"))
    # Three dots, and lines of two branches, in the colours of two actions.
    for colour in ((0, 114, 178), (213, 94, 0)):
        assert (picture == colour).all(-1).sum() > 1000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.nfg", "--parameter", 1), "`GAME` must be a .nfg file that exists, got 'none.nfg'"),
        (
            ("notes.txt", "--parameter", 1),
            "'notes.txt' must be a .nfg file: line 1 must have 'NFG'",
        ),
        (("hunt.nfg",), "`--parameter` must be given for mellowmax"),
        (("hunt.nfg", "--softmax", "max"), "`--softmax` must have a policy that moves smoothly"),
        (("hunt.nfg", "--softmax", "sparsemax", "--parameter", 1), "that moves smoothly"),
        (("hunt.nfg", "--parameter", "inf"), "`--softmax` must have a finite parameter"),
        (("hunt.nfg", "--parameter", 1, "--trace", "x.gif"), "ending in .svg or .png, got 'x.gif'"),
        (("hunt.nfg", "--parameter", 0, "--trace", "x.svg"), "a parameter other than 0"),
        (("hunt.nfg", "--softmax", "mean", "--trace", "x.svg"), "a parameter other than 0"),
    ],
)
def test_a_mistake_is_one_sentence(here, arguments, sentence):
    (here / "notes.txt").write_text("not a game")
    assert_one_sentence(call("play", *arguments), sentence)
    assert not (here / "x.svg").exists()


def test_a_picture_of_others_is_not_replaced(here):
    (here / "mine.svg").write_text("<svg/>")
    given = ("play", "hunt.nfg", "--parameter", 5, "--trace", "mine.svg")
    assert_one_sentence(call(*given), "--trace")
    assert (here / "mine.svg").read_text() == "<svg/>"
    assert call(*given, "--force").exit_code == 0


def test_a_prior(here):
    given = ("play", "hunt.nfg", "--softmax", "free-energy", "--parameter", 1, "--prior", "3,1")
    assert rows(call(*given).stdout)["found"].endswith("equilibria")
