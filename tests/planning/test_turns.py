"""Zero-sum games by turns: mellowmax with +omega in one player's states, -omega in the other's."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from mellowmax import Max, Mellowmax
from mellowmax.mdp import MDP
from mellowmax.planning import solve

S, A = 6, 3


def random_game(rng, discount):
    """Random transitions and rewards; in the first half of the states the first player moves."""
    transitions = rng.dirichlet(np.full(S, 0.3), (S, A))
    return MDP.from_arrays(transitions, rng.normal(size=(S, A)), discount)


def worth(game, rules):
    """`[N, S]`, what each of N pairs of deterministic rules `[N, S]` is worth."""
    transitions, rewards = game.to_numpy()
    states = np.arange(S)
    along = np.eye(S) - game.discount * transitions[states, rules]
    return np.linalg.solve(along, rewards[states, rules][..., None])[..., 0]


@pytest.mark.parametrize("discount", [0.5, 0.99])
def test_the_value_is_the_best_against_the_best_answer(discount):
    """All pairs of rules are tried: the maximum of the minimum, over the rules of each."""
    rules = np.array(list(itertools.product(range(A), repeat=S // 2)))
    n = len(rules)
    pairs = np.concatenate([np.repeat(rules, n, 0), np.tile(rules, (n, 1))], 1)
    infinite = np.where(np.arange(S) < S // 2, np.inf, -np.inf)
    for seed in range(3):
        game = random_game(np.random.default_rng(seed), discount)
        values = worth(game, pairs).reshape(n, n, S)
        exact = values.min(1).max(0)
        np.testing.assert_allclose(values.max(0).min(0), exact, rtol=0, atol=1e-12)
        solution = solve(game, Mellowmax(infinite), tolerance=1e-9)
        assert np.abs(solution.value - exact).max() <= solution.error_bound + 1e-12 < 1e-6


def test_a_game_with_players_who_err():
    """Against sweeps of formulas: a log-mean-exp, and the negative one of the negative values."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        game = random_game(rng, 0.9)
        transitions, rewards = game.to_numpy()
        omega = 10 ** rng.uniform(-1, 2)
        solution = solve(game, Mellowmax(np.where(np.arange(S) < 3, omega, -omega)))
        sign = np.where(np.arange(S) < 3, 1, -1)
        v = np.zeros(S)
        for _ in range(400):
            q = sign[:, None] * (rewards + 0.9 * transitions @ v)
            v = sign * (np.logaddexp.reduce(omega * q, axis=1) - np.log(A)) / omega
        assert np.abs(solution.value - v).max() <= solution.error_bound + 1e-10
        earned = (solution.policy * solution.q).sum(1)
        np.testing.assert_allclose(earned, solution.value, rtol=0, atol=1e-8)


def test_a_long_game_is_solved_in_few_steps():
    """Neither player has a better answer; Newton's plain steps go round in circles here."""
    states, rng = np.arange(300), np.random.default_rng(0)
    first = rng.random(300) < 0.5
    leads = (states[:, None, None] + np.array([-3, 0, 3])[:, None] + np.array([-1, 0, 1])) % 300
    hills = np.sin(states * np.pi / 3)[:, None] - np.array([0.1, 0.0, 0.1])
    game = MDP(leads, np.broadcast_to([0.25, 0.5, 0.25], leads.shape), hills, 0.999999)
    solution = solve(game, Mellowmax(np.where(first, np.inf, -np.inf)))
    assert solution.iterations <= 60
    sign = np.where(first, 1.0, -1.0)[:, None]
    best = np.arange(3) == (sign * solution.q).argmax(1)[:, None]
    for free, softmax in ((first, Max()), (~first, Mellowmax(-np.inf))):
        answered = dataclasses.replace(game, allowed=best | free[:, None])
        answer = solve(answered, softmax)
        most = answer.error_bound + solution.error_bound
        assert np.abs(answer.value - solution.value).max() <= most < 0.1
