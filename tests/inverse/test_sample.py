"""Draws from a posterior against quadrature."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax import LogSumExp
from mellowmax.inverse import Demonstrations, Linear, sample
from mellowmax.mdp import MDP

pytest.importorskip("blackjax")


def moments(density, *axes):
    """Means and deviations of a log-density on a grid."""
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    values = np.array([density(point) for point in grid.reshape(-1, len(axes))])
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    points = grid.reshape(-1, len(axes))
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def test_draws_agree_with_quadrature():
    """Within four Monte Carlo errors: wrong once in 16,000 by chance, and the seed is fixed."""
    mdp = MDP.from_arrays([[[1.0], [1.0]]], [[0.0, 0.0]], 0.5, terminal=[False])
    seen = Demonstrations.from_counts([[3.0, 9.0]])
    reward = Linear([[[0.0], [1.0]]], ["better"])
    steps = []
    posterior = sample(
        mdp, seen, reward, LogSumExp(1.0), 2.0, draws=500, warmup=200, chains=2,
        callback=lambda *numbers: steps.append(numbers),
    )  # fmt: skip

    def density(x):  # the constant of the plan does not matter: a logistic regression
        return 9 * x[0] - 12 * np.logaddexp(0.0, x[0]) - x[0] ** 2 / 8

    mean, deviation = moments(density, np.linspace(-4.0, 6.0, 2001))
    error = deviation / np.sqrt(posterior.effective_sizes)
    assert np.abs(posterior.mean - mean) < 4 * error
    assert np.isclose(posterior.deviations, deviation, rtol=0.15)
    assert posterior.divergences == 0
    assert posterior.rhat < 1.03
    assert np.isclose(posterior.learnt, posterior.deviations / 2.0)
    assert steps[-1] == (500, 500)
    assert "better" in str(posterior)


def test_wrong_arguments():
    mdp = MDP.from_arrays([[[1.0], [1.0]]], [[0.0, 0.0]], 0.5, terminal=[False])
    seen, reward = Demonstrations.from_counts([[3.0, 9.0]]), Linear([[[0.0], [1.0]]])
    with pytest.raises(ValueError, match=r"a deviation above 0, or 1 of them, got -1.0"):
        sample(mdp, seen, reward, LogSumExp(1.0), -1.0)
    with pytest.raises(ValueError, match="`chains` must be a whole number of at least 2"):
        sample(mdp, seen, reward, LogSumExp(1.0), 1.0, chains=1)
