"""What Python computes for the page is what the library says, rounded."""

from __future__ import annotations

import json

import numpy as np
import pytest

from helpers.browser import browser
from mellowmax import Boltzmann, Mellowmax, mellowmax_temperature
from mellowmax.explorer import exhibits, gallery, model, models, taxi, write_page
from mellowmax.mdp import MDP, garnet, multi_passenger_taxi, two_state
from mellowmax.planning import solve


@pytest.fixture(scope="module")
def small():
    """A model of five states, three actions and a terminal state, solved for six parameters."""
    mdp = garnet(5, 3, 2, seed=1, discount=0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "LEVELS", 6)
        shares = []
        return mdp, model(mdp, "garnet <5>", shares.append), shares


def test_the_paper_s_mdp_is_live():
    block = model(two_state(), "figure 1")
    assert block == {
        "kind": "two-state",
        "name": "figure 1",
        "mdp": {"ra": 0.12211, "pa": 0.65867, "rb": 0.03284, "pb": 0.99075, "discount": 0.98},
    }


def test_the_live_state_may_come_second_and_have_a_third_action_that_is_not_allowed():
    transitions = [[[1, 0]] * 3, [[0.5, 0.5], [0, 1], [0.25, 0.75]]]
    rewards = [[0, 0, 0], [0.1, -np.inf, -20]]
    mdp = MDP.from_arrays(transitions, rewards, 0.9, terminal=[True, False])
    assert model(mdp, "x")["mdp"] == {"ra": 0.1, "pa": 0.5, "rb": -20, "pb": 0.75, "discount": 0.9}


def test_a_larger_one_has_values_policies_and_temperatures_over_a_range(small):
    mdp, block, shares = small
    assert (block["kind"], block["states"], block["actions"]) == ("model", 5, 3)
    assert shares[-1] == 1
    assert shares == sorted(shares)
    for operator, family in zip(block["operators"], (Mellowmax, Boltzmann), strict=True):
        assert operator["name"] == family.__name__
        assert len(operator["parameters"]) == len(operator["levels"]) == 6
        assert operator["parameters"] == sorted(operator["parameters"])
        parameter, level = operator["parameters"][2], operator["levels"][2]
        solution = solve(mdp, family(parameter))
        np.testing.assert_allclose(level["value"], solution.value, rtol=1e-3)
        policy = np.reshape(level["policy"], (5, 3)) / 100
        np.testing.assert_allclose(policy, solution.policy, atol=0.0051)
        expected = parameter
        if family is Mellowmax:
            expected = mellowmax_temperature(solution.q, parameter)
        np.testing.assert_allclose(level["temperature"], np.broadcast_to(expected, 5), rtol=1e-3)
        spread = np.ptp(np.reshape(operator["levels"][-1]["policy"], (5, 3)), axis=1)
        assert np.median(spread) > 90  # nearly greedy at the end, nearly uniform at first
        assert np.ptp(np.reshape(operator["levels"][0]["policy"], (5, 3)), axis=1).max() < 20


def test_a_model_that_is_too_large_is_refused_in_a_sentence():
    mdp = garnet(7000, 3, 2, seed=0)
    rule = "`model` must have at most 20000 pairs of a state and an action to be shown"
    with pytest.raises(ValueError, match=f"{rule}, got 7000 states and 3 actions"):
        model(mdp, "large")


def test_the_taxi_of_the_package_is_what_the_library_computes():
    shipped, omega = taxi(), gallery.OMEGAS[9]
    assert shipped["omegas"] == list(gallery.OMEGAS)
    again = gallery.compute_taxi([omega])
    for name in ("policy", "temperature", "value"):
        ours, theirs = again["levels"][0][name], shipped["levels"][9][name]
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1 if name == "policy" else 0)
    assert {name: again[name] for name in ("grid", "cells", "passengers")} == {
        name: shipped[name] for name in ("grid", "cells", "passengers")
    }
    solution = solve(multi_passenger_taxi(), Mellowmax(omega), method="newton")
    np.testing.assert_allclose(shipped["levels"][9]["value"], solution.value, rtol=1e-3)


def test_own_models_on_the_page(small, tmp_path):
    _, block, _ = small
    write_page(tmp_path / "large.html", [block])
    write_page(tmp_path / "two.html", [model(two_state(printed=True), "printed.npz")])
    with browser() as tab:
        tab.open(tmp_path / "large.html", 390, fragment="model=0,3,2")
        text = tab.evaluate("document.getElementById('own').innerText")
        assert "Your model: garnet <5>" in text
        level = block["operators"][0]["levels"][3]
        row = tab.evaluate("document.querySelector('#own .here').innerText").split()
        assert row[:3] == ["2", f"{level['value'][2]:.3f}", str(level["temperature"][2])]
        assert [int(x) for x in row[4::3]] == level["policy"][6:9]
        tab.evaluate("document.querySelector('#own .level').focus()")
        tab.press("ArrowRight")
        tab.evaluate("new Promise((done) => setTimeout(done, 100))")
        assert tab.evaluate("location.hash") == "#model=0,4,2"
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.complaints() == []
        tab.open(tmp_path / "two.html", 1280)
        assert "your model, printed.npz" in tab.evaluate("document.body.innerText")
        shown = tab.evaluate("document.querySelector('#boltzmann .number').value")
        assert 16.88 < float(shown) < 17.04  # between its folds, not the paper's
        assert "three fixed points" in tab.evaluate("document.getElementById('sentence').innerText")
        tab.drag(tab.centre("#paper"))
        assert tab.evaluate("document.getElementById('ra').textContent") == "0.12211"
        assert tab.complaints() == []


def test_a_name_is_text_on_the_page(small):
    from mellowmax.explorer import page

    text = page([small[1]])
    _, data = text.split('class="data">')
    assert json.loads(data.split("</script>")[0])["name"] == "garnet <5>"


def test_the_lander_of_the_gallery_learns():
    """Its flights are the middle ones of 21 at each stage of a training."""
    flights = [block for block in exhibits() if block["kind"] == "landing"]
    returns = [flight["return"] for flight in flights]
    assert returns == sorted(returns)
    assert returns[0] < -100
    assert returns[-1] > 200
    assert flights[-1]["frames"][-1][9] == 3  # both legs stand
