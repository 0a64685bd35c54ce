"""Aggregates of scores: rliable's own numbers, and intervals that hold the truth.

The numbers were computed by rliable 1.2.0 with arch 7.2.0, which does not run with later packages.
"""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax.experiments.scores import (
    bootstrap,
    improvement,
    interquartile_mean,
    normalised,
    profile,
)

RUN, TASK = np.indices((10, 4))
X = (7 * RUN + 3 * TASK) % 11 / 10 + TASK / 10
Y = (5 * RUN + 2 * TASK) % 11 / 10 + TASK / 10
THRESHOLDS = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_aggregates_are_those_of_rliable():
    assert interquartile_mean(X) == pytest.approx(0.65)
    assert interquartile_mean(Y) == pytest.approx(0.64)
    assert interquartile_mean(X[:5, :3]) == pytest.approx(0.6222, abs=5e-5)  # 15 do not halve twice
    assert improvement(X, Y) == pytest.approx(0.50375)
    np.testing.assert_allclose(profile(X, THRESHOLDS), [0.975, 0.85, 0.6, 0.4, 0.125])


def test_a_tie_is_half_an_improvement():
    one = np.array([[1.0, 2.0], [2.0, 2.0], [1.0, 1.0], [2.0, 1.0]])
    other = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert improvement(one, other) == pytest.approx(1 / 3)
    assert improvement(one, one) == pytest.approx(0.5)


def test_intervals_are_those_of_rliable():
    """Its own, of three seeds, differ by 0.005; ends are multiples of 0.005 for the most part."""
    np.testing.assert_allclose(bootstrap(interquartile_mean, X), [0.512, 0.782], atol=0.006)
    np.testing.assert_allclose(bootstrap(interquartile_mean, Y), [0.51, 0.77], atol=0.006)
    np.testing.assert_allclose(bootstrap(improvement, X, Y), [0.379, 0.629], atol=0.01)
    low, high = bootstrap(lambda x: profile(x, THRESHOLDS), X)
    np.testing.assert_allclose(low, [0.925, 0.75, 0.45, 0.25, 0.05], atol=0.026)
    np.testing.assert_allclose(high, [1.0, 0.95, 0.75, 0.55, 0.225], atol=0.026)


def test_an_interval_holds_the_truth_as_often_as_it_says(rng):
    """400 experiments of 40 runs in 3 environments: the share has a standard error of 1.5 %.

    The bootstrap's intervals are a little short; three standard errors and 2 % are allowed.
    """
    held = 0
    for seed in range(400):
        scores = rng.normal(0.5, 0.3, (40, 3))
        low, high = bootstrap(interquartile_mean, scores, level=0.9, resamples=300, seed=seed)
        held += low < 0.5 < high
    assert held / 400 == pytest.approx(0.9, abs=0.065)


def test_scores_are_between_a_random_policy_and_a_reference():
    returns = [[20.0, -500.0], [260.0, -80.0]]
    np.testing.assert_allclose(normalised(returns, [20, -500], [500, -80]), [[0, 0], [0.5, 1]])
