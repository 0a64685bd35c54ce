"""Models fitted to what was observed: known estimates, recovery, and what is said of odd counts."""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest

from helpers.known_games import CONSTANT_SUM, OCHS, STAG_HUNT
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax
from mellowmax.games import Game, fit, human_play, level_k, trace

COUNTS = [[128 * 0.527, 128 * 0.473], [128 * 0.366, 128 * 0.634]]
"""A block of Ochs (1995)."""


def likelihood(counts, profile):
    """The log-likelihood of counts, but for a constant."""
    pairs = zip(counts, profile, strict=True)
    return sum(float(np.array(n) @ np.log(p)) for n, p in pairs)


def exact_fit(family):
    """The fit to `COUNTS` from the closed form of two actions, with 30 digits."""
    gain, other = (mpmath.mpf(number) for number in ("1.1141", "0.2785"))
    counts = [128 * mpmath.mpf(share) for share in ("0.527", "0.473", "0.366", "0.634")]

    def policy(x):
        return (
            1 / (1 + mpmath.exp(-x))
            if family is Boltzmann
            else mpmath.log((1 + mpmath.exp(x)) / 2) / x
        )

    def log_likelihood(t):
        def equations(x, y):
            row = t * (gain * y - other * (1 - y))
            return x - policy(row), y - policy(t * gain * (1 - 2 * x))

        x, y = mpmath.findroot(equations, (0.6, 0.4))
        return mpmath.fdot(counts, map(mpmath.log, (x, 1 - x, y, 1 - y)))

    with mpmath.workdps(30):
        guess = 1.8 if family is Boltzmann else 3.7
        best = mpmath.findroot(lambda t: mpmath.diff(log_likelihood, t), guess)
        return float(best), float(log_likelihood(best))


@pytest.mark.parametrize(
    ("family", "golden"),
    [(Boltzmann, (1.8456098, -174.764532)), (Mellowmax, (3.6967876, -174.764632))],
)
def test_quantal_response_of_ochs(family, golden):
    """Logit's estimate is Gambit's too."""
    parameter, log_likelihood = exact_fit(family)
    assert (parameter, log_likelihood) == pytest.approx(golden, abs=6e-7)
    found = fit(OCHS, COUNTS, family)
    assert found.parameter == pytest.approx(parameter, abs=1e-8)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-10)
    assert found.uniform.sum() == pytest.approx(-256 * math.log(2))
    assert "not all whole" in found.notes[0]
    # The ends of the interval are where the likelihood ratio is the 95 % point of chi squared.
    for end in found.interval:
        (point,) = trace(OCHS, family, [0.0, end]).at(end)
        value = sum(
            n @ np.log(p) for n, p in zip(COUNTS, map(np.array, point.profile), strict=True)
        )
        assert 2 * (log_likelihood - value) == pytest.approx(3.841459, abs=1e-4)


def expected(profile, decisions):
    """Counts that are what is expected, to the last digit."""
    return [decisions * own for own in profile]


@pytest.mark.parametrize("family", [Boltzmann, Mellowmax])
@pytest.mark.parametrize("model", ["qre", "level-1", "level-2"])
def test_counts_as_expected_give_their_parameter(family, model, rng):
    games = [Game(rng.random((2, 3, 2))), STAG_HUNT, CONSTANT_SUM]
    if model == "qre":
        profiles = [trace(game, family, [0.0, 3.0]).at(3.0)[0].profile for game in games]
    else:
        profiles = [level_k(game, family(3.0), int(model[-1])) for game in games]
    counts = [expected(profile, 50) for profile in profiles]
    counts[1] = counts[1][0]  # of a symmetric game: both players pooled
    found = fit(games, counts, family, model=model)
    assert found.parameter == pytest.approx(3.0, rel=1e-6)
    entropy = -sum(
        sum(n @ np.log(n / 50) for n in map(np.array, own))
        for own in (counts[0], [counts[1]], counts[2])
    )
    assert found.log_likelihood == pytest.approx(-entropy, rel=1e-9)
    assert found.interval[0] < 3 < found.interval[1]


@pytest.mark.parametrize("model", ["qre", "level-1"])
def test_left_out_is_the_likelihood_under_a_fit_to_the_others(model):
    """In one of these games the principal branch jumps, and the likelihood with it."""
    played = human_play().of("Stahl and Wilson (1994)")[5:8]
    games, counts = [one.game for one in played], [one.counts for one in played]
    found = fit(games, counts, Boltzmann, model=model)
    for k in range(3):
        rest = [j for j in range(3) if j != k]
        others = [[every[j] for j in rest] for every in (games, counts)]
        parameter = fit(*others, Boltzmann, model=model).parameter
        if model == "qre":
            profile = trace(games[k], Boltzmann, [0.0, parameter]).at(parameter)[0].profile
        else:
            profile = level_k(games[k], Boltzmann(parameter))
        assert found.left_out[k] == pytest.approx(likelihood(counts[k], profile[:1]), abs=1e-3)
    assert found.left_out.sum() < found.log_likelihood


def simulated(model, sets, seed):
    """In how many sets the parameter is within two standard errors of what it was made with."""
    rng, within = np.random.default_rng(seed), 0
    games = [Game(rng.random((2, 3, 3))) for _ in range(3)]
    profiles = [
        trace(game, Mellowmax, [0.0, 8.0]).at(8.0)[0].profile
        if model == "qre"
        else level_k(game, Mellowmax(8.0))
        for game in games
    ]
    for _ in range(sets):
        counts = [[rng.multinomial(200, own) for own in profile] for profile in profiles]
        found = fit(games, counts, Mellowmax, model=model)
        within += abs(found.parameter - 8.0) <= 2 * found.standard_error
    return within


def test_a_standard_error_is_one():
    """95.4 of 100 sets are expected; 88 or fewer have a probability of 0.2 %."""
    assert simulated("level-1", 100, 0) > 88


@pytest.mark.release
def test_a_standard_error_of_quantal_response_is_one():
    """As above."""
    assert simulated("qre", 100, 1) > 88


def test_quantal_level_k(rng):
    games = [Game(rng.random((2, 3, 3))) for _ in range(12)]
    truth = {"share_1": 0.5, "share_2": 0.3, "level_1": 12.0, "level_2": 20.0, "belief": 6.0}
    counts = []
    for game in games:
        first = level_k(game, Boltzmann(12.0))
        second = level_k(game, [Boltzmann(6.0), Boltzmann(20.0)])
        mixed = [0.2 / 3 + 0.5 * a + 0.3 * b for a, b in zip(first, second, strict=True)]
        counts.append(expected(mixed, 400))
    found = fit(games, counts, Boltzmann, model="qlk")
    assert dict(found.parameters) == pytest.approx(truth, rel=0.01)
    largest = sum(likelihood(own, expected(own, 1 / 400)) for own in counts)
    assert found.log_likelihood == pytest.approx(largest, abs=1e-3)
    for name, value in truth.items():
        low, high = found.intervals[name]
        assert low < value < high
    with pytest.raises(ValueError, match="several parameters, by name: share_1"):
        _ = found.parameter


def test_a_parameter_that_runs_to_infinity():
    found = fit(STAG_HUNT, [0, 20], Boltzmann, model="level-1")
    assert found.parameter == math.inf
    assert found.interval[1] == math.inf
    assert found.interval[0] > 0
    assert math.isnan(found.standard_error)
    assert any("without end" in note for note in found.notes)


def test_a_parameter_of_0():
    found = fit(STAG_HUNT, [20, 0], Boltzmann, model="level-1")
    assert found.parameter == found.interval[0] == 0
    assert found.interval[1] > 0
    assert any("all choose at random" in note for note in found.notes)


def test_a_flat_likelihood_has_no_interval():
    for model in ("qre", "level-1"):
        found = fit(Game(np.ones((2, 2, 2))), [[3, 1], [1, 3]], Mellowmax, model=model)
        assert all(map(math.isnan, (found.parameter, *found.interval)))
        assert any("no interval" in note for note in found.notes)


def test_printing_shows_what_was_found():
    text = str(fit(OCHS, COUNTS, Boltzmann))
    assert "qre: log-likelihood -174.765 (-177.446 at random)" in text
    assert "1.84561" in text
    assert "not all whole" in text


NAMED = Game(np.random.default_rng(0).random((2, 2, 3)), players=["A", "B"], actions=["tb", "lmr"])
GOOD = [[1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([[1, 2], [3, -1, 5]], "must be numbers of at least 0, got -1 for action m of player B"),
        ([[1, math.nan], [3, 1, 5]], "got nan for action b of player A"),
        ([[1, 2, 3], [3, 1]], "must be of the 2 actions of player A, got [1.0, 2.0, 3.0]"),
        ([[0, 0], [0, 0, 0]], "must have a choice at least, got 0 for every action"),
        ([1, 2], "each of 2 players, since the game is not symmetric, got one list"),
        ([[1, 2], [3, 4, 5], [1, 1]], "each of 2 players, got 3 lists"),
    ],
)  # fmt: skip
def test_wrong_counts_are_refused_in_a_sentence(counts, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fit(NAMED, counts, Mellowmax)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fit([NAMED, NAMED], [GOOD, counts], Mellowmax)


def test_other_wrong_arguments_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="one of qre, level-1, level-2, qlk, got 'nash'"):
        fit(NAMED, GOOD, Mellowmax, model="nash")
    with pytest.raises(ValueError, match="of 2 games, got 1"):
        fit([NAMED, NAMED], [GOOD], Mellowmax)
    with pytest.raises(ValueError, match="at least one game"):
        fit([], [], Mellowmax)
    with pytest.raises(TypeError, match="lists of counts, got 3"):
        fit(NAMED, 3, Mellowmax)
    with pytest.raises(ValueError, match="two games or more"):
        _ = fit(NAMED, GOOD, Mellowmax).left_out
    with pytest.raises(ValueError, match="moves smoothly"):
        fit(NAMED, GOOD, EpsilonGreedy)


def test_levels_answer_each_other():
    one = level_k(NAMED, Mellowmax(3.0), 1)
    uniform = [np.full(2, 1 / 2), np.full(3, 1 / 3)]
    for own, values in zip(one, NAMED.action_values(uniform), strict=True):
        np.testing.assert_allclose(own, Mellowmax(3.0).policy(values), atol=1e-14)
    two = level_k(NAMED, [Mellowmax(3.0), Max()])
    for own, values in zip(two, NAMED.action_values(one), strict=True):
        assert own[values.argmax()] == 1
    for own, chance in zip(level_k(NAMED, Max(), 0), uniform, strict=True):
        np.testing.assert_array_equal(own, chance)
    apart = level_k(NAMED, Mellowmax([3.0, 0.0]))  # a parameter for each player
    np.testing.assert_allclose(apart[0], one[0], atol=1e-14)
    np.testing.assert_allclose(apart[1], 1 / 3)
    with pytest.raises(ValueError, match="each of 3 levels, got 2"):
        level_k(NAMED, [Max(), Max()], 3)
    with pytest.raises(ValueError, match="`k` must be a whole number"):
        level_k(NAMED, Max(), -1)


def test_human_play_is_whole_and_names_its_sources():
    played = human_play()
    assert len(played) == 166
    assert len(played.papers) == 14
    assert sum(one.decisions for one in played) == pytest.approx(16605.69)
    for one in played:
        assert len(one.counts) == 2 or one.game.is_symmetric
        assert one.source.startswith("github.com/")
        whole = all((own % 1 == 0).all() for own in one.counts)
        assert whole or "percentages" in one.note or one.game.title == "basickrepsgame"
    assert "not checked" in str(played)
    own = played.of("Stahl and Wilson (1994)")
    found = fit([one.game for one in own], [one.counts for one in own], Boltzmann, model="level-1")
    assert found.log_likelihood > found.uniform.sum() + 50
