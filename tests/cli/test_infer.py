"""`mellowmax infer`: what it prints and writes, and mistakes in one sentence."""

from __future__ import annotations

import csv
import dataclasses
import json
import os

import numpy as np
import pytest
from PIL import Image

from helpers.commands import assert_one_sentence, call, rows
from mellowmax import Boltzmann, LogSumExp, Max
from mellowmax._common import npz
from mellowmax.cli.infer import _Way
from mellowmax.inverse import Demonstrations, Demonstrator, FitProgress, Linear, fit
from mellowmax.mdp import MDP

GIVEN = ("model.npz", "seen.csv", "--features", "features.csv")
FEATURES = np.array([[[0.0, 0.0], [1.0, 0.3]], [[0.2, 0.5], [0.0, 1.0]]])
WORLD = MDP.from_arrays([[[0.7, 0.3], [0.1, 0.9]], [[0.2, 0.8], [0.6, 0.4]]], np.zeros((2, 2)), 0.9,
                        terminal=[False, False])  # fmt: skip
DECISIONS = [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0), (0, 1, 1), (0, 1, 1), (1, 1, 1), (1, 1, 2)]


def written(path, names, lines):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *lines])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a model, decisions, and features."""
    monkeypatch.chdir(tmp_path)
    WORLD.save("model.npz")
    written("seen.csv", ["state", "action", "episode"], DECISIONS)
    pairs = [(s, a, *FEATURES[s, a]) for s in (1, 0) for a in (0, 1)]
    written("features.csv", ["state", "action", "speed", "rocks"], pairs)
    return tmp_path


def seen():
    states, actions, episodes = zip(*DECISIONS, strict=True)
    return Demonstrations.from_arrays(states, actions, episodes=episodes)


def test_the_estimates_are_those_of_fit(here):
    found = fit(WORLD, seen(), Linear(FEATURES, ["speed", "rocks"]), LogSumExp(1.0))
    done = call("infer", *GIVEN, "--csv", "estimate.csv", "--plot", "estimate.png")
    assert done.exit_code == 0, done.stderr
    said = rows(done.stdout)
    assert said["model"] == "model.npz: 2 states, 2 actions, dense, discount 0.9"
    assert said["decisions"] == "8 in 3 episodes"
    assert said["softmax"] == "LogSumExp(beta=1.0)"
    assert said["identified"] == "2 of 2 directions"
    assert said["written"] == "estimate.npz, estimate.csv, estimate.png"
    table = [line.split() for line in done.stdout.split("\n\n")[1].splitlines()[2:]]
    assert [line[0] for line in table] == ["speed", "rocks"]
    errors = found.standard_errors
    low, high = found.parameters - 1.96 * errors, found.parameters + 1.96 * errors
    shown = np.array([line[1:] for line in table], float)
    expected = np.stack([found.parameters, errors, low, high], 1)
    np.testing.assert_allclose(shown, expected, rtol=1e-4)
    with open("estimate.csv", newline="") as file:
        estimates = [float(row["estimate"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(estimates, found.parameters, rtol=1e-12)
    picture = np.asarray(Image.open("estimate.png").convert("RGB"))
    assert (picture == (0, 114, 178)).all(-1).sum() > 500  # two dots and two intervals
    # The file has the same, and so has `show`.
    again = call("show", "estimate.npz").stdout
    assert again.split("\n\n")[1] == done.stdout.split("\n\n")[1]
    with np.load("estimate.npz") as file:
        np.testing.assert_array_equal(file["parameters"], estimates)
    # Its own files are replaced, and the kind of errors can be chosen.
    outer = call("infer", *GIVEN, "--csv", "estimate.csv", "--errors", "outer", "--json")
    data = json.loads(outer.stdout)
    np.testing.assert_allclose(
        data["standard_errors"], np.sqrt(np.diag(found.covariance("outer"))), rtol=1e-9
    )
    assert (data["names"], data["rank"], data["converged"]) == (["speed", "rocks"], 2, True)


def test_a_pair_of_softmaxes_labels_and_rewards_that_are_left_out(here):
    earning = dataclasses.replace(WORLD, rewards=[[5.0, 0.0], [0.0, 3.0]])
    earning.with_labels(states=["flat", "steep"], actions=[10, 20]).save("model.npz")
    states, actions = ("flat", "steep"), (10, 20)
    written("seen.csv", ["action", "state"], [(actions[a], states[s]) for s, a, _ in DECISIONS])
    written("features.csv", ["state", "rocks"], [("flat", 0.0), ("steep", 1.0)])
    options = ("--softmax", "boltzmann", "--plans", "max", "--parameter", 2, "--drop-rewards")
    done = call("infer", *GIVEN, *options, "--json")
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["softmax"], data["plans"]) == ("Boltzmann(beta=2.0)", "Max()")
    pair = Demonstrator(plans=Max(), acts=Boltzmann(2.0))
    found = fit(WORLD, seen(), Linear([[0.0], [1.0]]), pair)
    np.testing.assert_allclose(data["parameters"], found.parameters, rtol=1e-9)


def test_what_did_not_converge_is_said_and_written(here):
    written("seen.csv", ["state", "action"], [(0, 1), (1, 1)] * 9)
    done = call("infer", *GIVEN)
    assert done.exit_code == 1, done.stderr
    said = rows(done.stdout)
    assert said["status"].startswith("unbounded after ")
    assert said["reason"].startswith("the likelihood rises for ever")
    assert done.stdout.count("nan") == 6
    assert npz.kind_of("estimate.npz") == "estimate"
    assert call("infer", *GIVEN, "--penalty", 0.1, "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("model.npz", "seen.csv"), "`--features` must be given, got none"),
        (("none.npz", *GIVEN[1:]), "`MODEL` must be a file that exists or a Gymnasium id"),
        (("text.csv", *GIVEN[1:]), "`MODEL` must be a saved MDP, got 'text.csv'"),
        (("model.npz", "none.csv", *GIVEN[2:]), "a CSV file that exists, got 'none.csv'"),
        (("model.npz", "text.csv", *GIVEN[2:]), "`DEMONSTRATIONS` must be a CSV file, got 'text.c"),
        (("model.npz", "empty.csv", *GIVEN[2:]), "got 'empty.csv': it is empty"),
        (("model.npz", "head.csv", *GIVEN[2:]), "it must have a decision at least"),
        (("model.npz", "latin.csv", *GIVEN[2:]), "got 'latin.csv': it is not in UTF-8"),
        (("model.npz", "quote.csv", *GIVEN[2:]), "got 'quote.csv': unexpected end of data"),
        (("model.npz", "short.csv", *GIVEN[2:]), "line 3 must have 2 values, got 1"),
        (("model.npz", "twice.csv", *GIVEN[2:]), "have a column once, got 'state' twice"),
        (("model.npz", "nameless.csv", *GIVEN[2:]), "every column must have a name"),
        (
            ("model.npz", "far.csv", *GIVEN[2:]),
            "3 must have one of the model's states, such as '0',",
        ),
        ((*GIVEN[:3], "seen.csv"), "line 3 is a second one for state 0 and action 1"),
        ((*GIVEN[:3], "partly.csv"), "it must have a line for state 1, got none"),
        ((*GIVEN[:3], "words.csv"), "line 2 must have a finite number for 'rocks', got 'many'"),
        ((*GIVEN[:3], "bare.csv"), "and a column for each feature, got 'state'"),
        (
            (*GIVEN[:3], "same.csv"),
            "`--features` must have features that are not constant where no",
        ),
        ((*GIVEN, "--softmax", "max"), "`--softmax` must act by a softmax whose policy moves"),
        ((*GIVEN, "--softmax", "boltzmann"), "`--parameter` must be given for boltzmann, got none"),
        ((*GIVEN, "--plans", "softest"), "`--plans` must be one of max, mean, "),
        ((*GIVEN, "--errors", "small"), "`--errors` must be one of hessian, outer, sandwich, got"),
        (
            (*GIVEN, "--method", "guess"),
            "`--method` must be one of auto, newton, fisher, bfgs, got",
        ),
        ((*GIVEN, "--penalty", -1), "`--penalty` must be a finite number of at least 0"),
        ((*GIVEN, "--out", "seen.csv", "--force"), "`--out` must be another file than is read"),
        ((*GIVEN, "--csv", "features.csv", "--force"), "`--csv` must be another file than is read"),
        ((*GIVEN, "--csv", "estimate.npz", "--force"), "`--csv` must be a file of its own"),
        ((*GIVEN, "--plot", "x.gif"), "`--plot` must be a file ending in .svg or .png"),
        ((*GIVEN, "--out", "text.csv"), "got 'text.csv', which is something else"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(here, arguments, sentence):
    (here / "text.csv").write_text("some text")
    (here / "empty.csv").write_text("")
    (here / "head.csv").write_text("state,action\n")
    (here / "latin.csv").write_bytes(b"state,action\n\xe9,1\n")
    (here / "quote.csv").write_text('state,action\n"0,1\n')
    (here / "short.csv").write_text("state,action\n0,1\n0\n")
    (here / "twice.csv").write_text("state,state\n0,1\n")
    (here / "nameless.csv").write_text("state,\n0,1\n")
    (here / "far.csv").write_text("state,action\n0,1\n2,1\n")
    (here / "partly.csv").write_text("state,rocks\n0,1\n")
    (here / "words.csv").write_text("state,rocks\n0,many\n")
    (here / "bare.csv").write_text("state\n0\n")
    (here / "same.csv").write_text("state,rocks\n0,1\n1,1\n")
    written("seen.csv", ["state", "action", "episode"], [(0, 1, 0), (0, 1, 1), (1, 0, 1)])
    before = {path.name: os.lstat(path).st_ino for path in here.iterdir()}
    assert_one_sentence(call("infer", *arguments), sentence)
    assert {path.name: os.lstat(path).st_ino for path in here.iterdir()} == before


def test_progress_is_measured_in_orders_of_magnitude():
    way = _Way()
    assert way.share(FitProgress(0, -9.0, 1.0, 1e-8, 0.0)) == 0.0
    assert way.share(FitProgress(2, -5.0, 1e-2, 1e-8, 2.0)) == pytest.approx(0.25)
    text = "2 steps, log-likelihood -5, 2 s, about 0:00:06 left"
    assert way.text(FitProgress(2, -5.0, 1e-2, 1e-8, 2.0)) == text
    assert way.share(FitProgress(2, -5.0, np.nan, 1e-8, 2.0)) == 0.0
