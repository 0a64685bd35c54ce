"""Draws from a posterior against quadrature."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mellowmax import LogSumExp
from mellowmax.inverse import Demonstrations, Linear, log_likelihood, sample, zurcher
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


@pytest.mark.release
def test_rust_s_buses_against_quadrature():
    """Within three Monte Carlo errors, for two means: wrong once in 185, and the seed is fixed."""
    buses = zurcher([4])
    arguments = buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0)
    prior = np.array([20.0, 10.0])
    posterior = sample(*arguments, prior, draws=1000, warmup=400, chains=4, seed=1)

    def density(x):
        return log_likelihood(x, *arguments) - jax.numpy.sum((x / prior) ** 2) / 2

    axes = np.linspace(5.0, 19.0, 57), np.linspace(0.4, 6.0, 57)
    with jax.enable_x64(True):
        points = jax.numpy.stack(jax.numpy.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
        values = np.asarray(jax.jit(lambda x: jax.lax.map(density, x, batch_size=100))(points))
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    edges = [np.isin(points[:, i], axes[i][[0, -1]]) for i in (0, 1)]
    assert weights[edges[0] | edges[1]].sum() < 1e-4  # the grid holds nearly all
    mean = weights @ np.asarray(points)
    deviation = np.sqrt(weights @ (np.asarray(points) - mean) ** 2)
    error = deviation / np.sqrt(posterior.effective_sizes)
    assert (np.abs(posterior.mean - mean) < 3 * error).all()
    assert np.allclose(posterior.deviations, deviation, rtol=0.1)
    assert (posterior.rhat < 1.01).all()
    assert posterior.divergences == 0


@pytest.mark.release
def test_draws_move_however_many_chains_there_are():
    """XLA once made the likelihood NaN in these loops, so that all draws diverged."""
    buses = zurcher([4])
    arguments = buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0)

    def prior(x):
        return -jax.numpy.sum((x / 30.0) ** 2) / 2

    posterior = sample(*arguments, prior, draws=200, warmup=500, chains=2)
    assert posterior.divergences == 0
    assert (posterior.deviations > 0.3).all()


def test_wrong_arguments():
    mdp = MDP.from_arrays([[[1.0], [1.0]]], [[0.0, 0.0]], 0.5, terminal=[False])
    seen, reward = Demonstrations.from_counts([[3.0, 9.0]]), Linear([[[0.0], [1.0]]])
    with pytest.raises(ValueError, match=r"a deviation above 0, or 1 of them, got -1.0"):
        sample(mdp, seen, reward, LogSumExp(1.0), -1.0)
    with pytest.raises(ValueError, match="`chains` must be a whole number of at least 2"):
        sample(mdp, seen, reward, LogSumExp(1.0), 1.0, chains=1)
