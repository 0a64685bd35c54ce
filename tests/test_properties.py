"""The probe finds the violations that are known, and none where there is a proof."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mellowmax as mm
from helpers.regularised import Entropic
from mellowmax import properties
from mellowmax.properties import probe

# What the paper says in sections 1 and 5.
PAPER = {
    mm.Max(): (True, True, False, False),
    mm.Mean(): (False, True, True, True),
    mm.EpsilonGreedy(0.1): (True, True, False, True),
    mm.Boltzmann(16.55): (True, False, True, True),
    mm.Mellowmax(16.55): (True, True, True, True),
}
NAMES = ["approximates_max", "non_expansion", "differentiable", "starves_no_action"]


@pytest.mark.parametrize("softmax", PAPER, ids=str)
def test_the_probe_agrees_with_the_paper(softmax):
    report = probe(softmax)
    assert tuple(getattr(report, name).holds for name in NAMES) == PAPER[softmax]
    assert str(report).splitlines()[0] == str(softmax)
    assert report.attains.holds
    assert len(str(report).splitlines()) == 10


@pytest.mark.parametrize("beta", [-16.55, 0.05, 1.0, 1000.0])
@pytest.mark.parametrize("actions", [2, 3, 6])
def test_boltzmann_fails_non_expansion_with_a_witness(beta, actions):
    finding = probe(mm.Boltzmann(beta), actions=actions).non_expansion
    assert not finding.holds
    x, y = finding.witness
    moved = abs(mm.boltzmann(x, beta) - mm.boltzmann(y, beta))
    distance = np.max(np.abs(x - y))
    assert moved > 1.05 * distance
    assert finding.worst == pytest.approx(moved / distance)


def test_the_worst_expansion_of_two_actions_is_the_one_calculus_gives():
    """For two actions the gradient's norm is largest where x = coth(x), with x = beta * gap / 2."""
    x = 1.0
    for _ in range(100):
        x = 1 / np.tanh(x)
    largest = np.tanh(x) + x / np.cosh(x) ** 2
    found = probe(mm.Boltzmann(2.0), actions=2, rounds=200).non_expansion.worst
    assert largest * 0.995 < found <= largest * (1 + 1e-9)


@pytest.mark.parametrize("omega", [-30.0, 1e-3, 1.0, 16.55, 1e4])
def test_mellowmax_survives_a_long_search(omega, rng):
    """Two properties only: a search this long for a kink would take most of the time."""
    for actions in (2, 5):
        search = (mm.Mellowmax(omega), rng, actions, 1.0, 100)
        finding = properties._non_expansion(*search)
        assert finding.holds, finding.text
        assert 0.999 < finding.worst <= 1 + 1e-9
        assert properties._starves_no_action(*search).holds


def test_a_greedy_limit_starves_and_kinks():
    assert not probe(mm.EpsilonGreedy(0.0)).starves_no_action.holds
    assert not probe(mm.Mellowmax(np.inf)).differentiable.holds
    assert not probe(mm.Boltzmann(np.inf)).starves_no_action.holds


def test_a_softmax_of_your_own_can_be_probed():
    class Doubled(mm.Softmax):
        def value(self, q, *, axis=-1, where=None):
            return 2 * mm.mean(q, axis=axis, where=where)

        def policy(self, q, *, axis=-1, where=None):
            return mm.uniform_policy(q, axis=axis, where=where)

        def log_policy(self, q, *, axis=-1, where=None):
            return mm.uniform_log_policy(q, axis=axis, where=where)

        gradient = policy

    report = probe(Doubled())
    assert not report.non_expansion.holds
    assert report.non_expansion.worst == pytest.approx(2, rel=1e-2)
    assert not report.approximates_max.holds


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_a_policy_that_does_not_attain_its_value_is_found_out(weight):
    """By at most log(n) / beta: from equal actions or from far ones."""
    report = probe(Entropic(5.0, weight), actions=4, rounds=1)
    assert not report.attains.holds
    assert 0.25 <= report.attains.worst <= np.log(4) / 5 * (1 + 1e-9)
    (q,) = report.attains.witness
    softmax = Entropic(5.0, weight)
    apart = softmax.value(q) - softmax.policy(q) @ q
    assert abs(apart) == pytest.approx(report.attains.worst)
    assert (apart > 0) == (weight == 1.0)


def test_a_broken_promise_to_attain_is_found_out():
    class Liar(Entropic):
        attained = True

    assert not probe(Liar(5.0), rounds=1).attains.holds


@dataclasses.dataclass(frozen=True)
class Divides(Entropic):
    """It divides by its parameter in Python, where a division by 0 is an error."""

    def value(self, q, *, axis=-1, where=None):
        return 0 / self.beta + super().value(q, axis=axis, where=where)


def test_a_softmax_that_divides_by_its_parameter_is_probed_without_it():
    for kind, why in (
        (Divides, "no value under {}: float division by zero"),
        (Entropic, "no finite"),
    ):
        finding = probe(kind(5.0), rounds=1).approximates_max
        assert finding.holds
        assert why.format(kind(0.0)) in finding.text
    with pytest.raises(ZeroDivisionError):
        probe(Divides(0.0))


def test_fields_with_a_default_stay_as_they_are():
    """The search for a setting near the maximum varies the one parameter that has none."""
    finding = probe(Entropic(5.0, 0.25), rounds=1).approximates_max
    assert finding.holds
    assert "weight=0.25" in finding.text

    @dataclasses.dataclass(frozen=True)
    class Always(Entropic):
        beta: float = 5.0

    assert "beta=5.0" in probe(Always(weight=0.25), rounds=1).approximates_max.text


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"^`softmax` must be a Softmax .*, got the class Max$"):
        probe(mm.Max)
    with pytest.raises(ValueError, match="`actions` must be a whole number of at least 2, got 1"):
        probe(mm.Max(), actions=1)
    with pytest.raises(ValueError, match="`scale` must be positive, got 0"):
        probe(mm.Max(), scale=0)


RESPONSES = [
    (mm.Boltzmann(16.55), 3, (True, True, True, True)),
    (mm.FreeEnergy(5.0), 4, (True, True, True, True)),
    (mm.Sparsemax(5.0), 3, (True, True, True, True)),
    (mm.Mellowmax(16.55), 2, (True, True, True, True)),
    (mm.Mellowmax(16.55), 3, (True, True, False, False)),
    (mm.Mellowmax(1.0), 5, (True, True, False, False)),
    (mm.Boltzmann(-2.0), 3, (False, False, False, False)),
]


@pytest.mark.parametrize(("softmax", "actions", "holds"), RESPONSES, ids=str)
def test_the_policy_as_a_response(softmax, actions, holds):
    """Logit is the gradient of a convex function; mellowmax with three actions is not."""
    report = probe(softmax, actions=actions)
    found = (report.responsive, report.monotonic, report.takes_from_others, report.aligned)
    assert tuple(one.holds for one in found) == holds


def test_the_witnesses_against_mellowmax_as_a_response():
    softmax = mm.Mellowmax(5.0)
    report = probe(softmax)
    x, y = report.takes_from_others.witness
    (raised,) = np.flatnonzero(y > x)
    gains = np.delete(softmax.policy(y) - softmax.policy(x), raised)
    assert gains.max() == pytest.approx(report.takes_from_others.worst)
    assert gains.max() > 0.001
    x, y = report.aligned.witness
    assert (softmax.policy(x) - softmax.policy(y)) @ (x - y) < 0
