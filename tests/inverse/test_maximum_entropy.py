"""Maximum causal entropy (Ziebart, 2010) at any discount, and several environments together."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mellowmax import LogSumExp
from mellowmax.inverse import Demonstrations, Linear, Table, fit, log_likelihood
from mellowmax.mdp import MDP, garnet
from mellowmax.planning import solve

RNG = np.random.default_rng(7)
FEATURES = RNG.normal(size=(6, 2))
COUNTS = RNG.integers(1, 20, size=(6, 3)).astype(float)
AT = np.array([0.8, -0.4])


def bare(seed, discount):
    mdp = garnet(6, 3, 3, seed, discount=discount)
    return MDP(mdp.successors, mdp.probabilities, np.zeros((6, 3)), discount)


def soft_value_iteration(transitions, rewards, discount):
    """The log-policy, by nothing but sums of exponentials."""
    v = np.zeros(6)
    for _ in range(int(40 / (1 - discount)) + 1):
        q = rewards[:, None] + discount * transitions @ v
        v = np.log(np.exp(q - q.max()).sum(1)) + q.max()
    return q - v[:, None]


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99])
def test_the_likelihood_is_that_of_soft_value_iteration(discount):
    mdp = bare(0, discount)
    transitions, _ = mdp.to_numpy()

    def expected(x):
        return (COUNTS * soft_value_iteration(transitions, FEATURES @ x, discount)).sum()

    arguments = mdp, Demonstrations.from_counts(COUNTS), Linear(FEATURES), LogSumExp(1.0)
    with jax.enable_x64(True):
        likelihood = jax.value_and_grad(lambda x: log_likelihood(x, *arguments))
        value, slope = likelihood(jax.numpy.asarray(AT))
    assert np.isclose(value, expected(AT), rtol=1e-12)
    step = 1e-5 * np.eye(2)
    differences = [(expected(AT + h) - expected(AT - h)) / 2e-5 for h in step]
    assert np.allclose(slope, differences, rtol=1e-6, atol=1e-5)


def test_two_discounts_tell_all_but_a_constant():
    """Rewards of states and actions: one environment alone tells 12 of 18 directions."""
    truth = RNG.normal(size=(6, 3))
    mdps = [bare(1, 0.5), bare(1, 0.9)]
    seen = []
    for mdp in mdps:
        true = MDP(mdp.successors, mdp.probabilities, truth, mdp.discount)
        policy = solve(true, LogSumExp(1.0), tolerance=1e-12).policy
        seen.append(Demonstrations.from_counts(1000 * policy))
    found = fit(mdps, seen, Table("state-action"), LogSumExp(1.0))
    assert found.rank == 17
    assert found.reason == "no decision depends on a constant that is added to all rewards"
    assert np.allclose(np.ptp(found.parameters - truth.ravel()), 0, atol=1e-5)
