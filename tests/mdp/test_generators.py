"""MDPs to try things on: each is what its description says."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from mellowmax.mdp import chain, garnet, grid_world, random_mdp, two_state
from mellowmax.mdp.generators import _raw_entries


def arrays_of(mdp):
    fields = {f.name: getattr(mdp, f.name) for f in dataclasses.fields(mdp)}
    return {name: values for name, values in fields.items() if isinstance(values, np.ndarray)}


def test_the_two_state_mdp_is_figure_1():
    mdp, printed = two_state(), two_state(printed=True)
    np.testing.assert_allclose(mdp.probabilities[0], [[0.65867, 0.34133], [0.99075, 0.00925]])
    np.testing.assert_array_equal(mdp.rewards[0], [0.12211, 0.03284])
    np.testing.assert_allclose(printed.probabilities[0], [[0.66, 0.34], [0.99, 0.01]])
    np.testing.assert_array_equal(printed.rewards[0], [0.122, 0.033])
    np.testing.assert_array_equal(printed.probabilities[0].round(2), mdp.probabilities[0].round(2))
    np.testing.assert_array_equal(printed.rewards[0].round(3), mdp.rewards[0].round(3))
    np.testing.assert_array_equal(mdp.terminal, [False, True])
    assert (mdp.discount, two_state(discount=1).discount) == (0.98, 1.0)


def boltzmann_fixed_points(mdp, beta):
    """The number of fixed points: sign changes of `backup(v) - v`, for a value `v` of state 0."""
    v = np.linspace(-0.5, 3.0, 200_001)
    q = mdp.rewards[0] + mdp.discount * mdp.probabilities[0, :, 0] * v[:, None]
    weights = np.exp(beta * (q - q.max(1, keepdims=True)))
    rest = (weights * q).sum(1) / weights.sum(1) - v
    return np.count_nonzero(np.diff(np.sign(rest)))


def test_the_fitted_values_have_figure_4s_fixed_points_and_the_printed_ones_do_not():
    mdp, printed = two_state(), two_state(printed=True)
    assert [boltzmann_fixed_points(mdp, beta) for beta in (16.45, 16.55, 16.7, 16.85)] == [
        1,
        3,
        3,
        1,
    ]
    counts = [boltzmann_fixed_points(printed, beta) for beta in (16.55, 16.8, 16.95, 17.1)]
    assert counts == [1, 1, 3, 1]


SEEDED = {
    "random_mdp": lambda seed: random_mdp(seed),
    "garnet": lambda seed: garnet(50, 3, 4, seed),
    "grid_world": lambda seed: grid_world((12, 9), walls=0.2, seed=seed),
}


@pytest.mark.parametrize("name", SEEDED)
def test_the_same_seed_gives_the_same_mdp(name):
    one, same, other = (arrays_of(SEEDED[name](seed)) for seed in (7, 7, 8))
    assert all(np.array_equal(one[key], same[key]) for key in one)
    assert not all(np.array_equal(one[key], other[key]) for key in one)


def test_random_mdps_are_those_of_section_7_1():
    mdps = [random_mdp(seed) for seed in range(2000)]
    sizes = np.array([(mdp.n_states, mdp.n_actions) for mdp in mdps])
    # Counts of a uniform draw; with a bound of 5 standard deviations a right generator fails here
    # with probability 13 * 6e-7.
    for column, choices in zip(sizes.T, (range(2, 11), range(2, 6)), strict=True):
        share = 1 / len(choices)
        counts = np.bincount(column)
        assert set(np.flatnonzero(counts)) == set(choices)
        deviation = np.sqrt(2000 * share * (1 - share))
        assert np.all(abs(counts[list(choices)] - 2000 * share) < 5 * deviation)
    for mdp in mdps:
        assert mdp.rewards.max() == 0.5
        assert mdp.discount == 0.98
        assert mdp.successors is None
        assert not mdp.terminal.any()
        np.testing.assert_allclose(mdp.probabilities.sum(-1), 1.0, rtol=1e-12)


def test_the_entries_of_random_mdps_have_the_shares_that_the_paper_gives_them():
    """Relative to the largest reward, about 102: 0.45 below 0.01, 0.45 near 1, 0.1 near 100."""
    mdp = random_mdp(0, n_states=60, n_actions=30)
    rewards = mdp.rewards.reshape(-1) * 2
    n = rewards.size  # 108,000: five standard deviations are less than 0.008
    assert abs(np.mean((rewards >= 0) & (rewards < 0.0001)) - 0.45) < 0.008
    assert abs(np.mean(rewards > 0.5) - 0.1) < 5 * np.sqrt(0.09 / n)
    middle = rewards[(abs(rewards) < 0.5) & ((rewards >= 0.0001) | (rewards < 0))]
    # Scaled back by the largest entry, which the mean of those near 100 gives.
    unit = rewards[rewards > 0.5].mean() / (100 + 0.5 + 0.005)
    assert abs(middle.mean() / unit - 1.005) < 5 * np.sqrt(0.1 / middle.size) + 1e-3
    assert abs(middle.var() / unit**2 - 0.1) < 0.005
    large = rewards[rewards > 0.5] / unit  # variance 1 + that of the other part, 0.05 + 0.25
    assert abs(large.var() - 1.3) < 5 * 1.3 * np.sqrt(2 / large.size) + 0.02
    # Negative: a Gaussian alone, 3.16 standard deviations below its mean, 0.45 * 0.00074.
    for share in (np.mean(mdp.probabilities == 0), np.mean(rewards < 0)):
        assert abs(share - 0.00033) < 5 * np.sqrt(0.00033 / n)


def test_a_row_of_random_probabilities_that_are_all_negative_is_uniform():
    """With one state a row is one entry; 3804 is the first seed that draws a negative one."""
    assert _raw_entries(np.random.default_rng(3804), (1, 1, 1)).item() < 0
    assert random_mdp(3804, n_states=1, n_actions=1).probabilities.item() == 1.0


@pytest.mark.parametrize(("n_states", "branching"), [(6, 1), (6, 2), (6, 3), (6, 4), (6, 6)])
def test_every_set_of_successors_of_a_garnet_is_as_probable(n_states, branching):
    n_actions = 20_000
    mdp = garnet(n_states, n_actions, branching, seed=0)
    rows = mdp.successors.reshape(-1, branching)
    assert np.all(np.diff(rows, axis=1) > 0)
    sets, counts = np.unique(rows, axis=0, return_counts=True)
    share = 1 / len(list(itertools.combinations(range(n_states), branching)))
    assert len(sets) == round(1 / share)
    # At most 20 sets a case and five standard deviations: 6e-7 each.
    assert np.all(abs(counts - len(rows) * share) <= 5 * np.sqrt(len(rows) * share))
    p = mdp.probabilities.reshape(-1, branching)
    np.testing.assert_allclose(p.mean(0), 1 / branching, atol=5 * 0.3 / np.sqrt(len(p)))
    if branching == 3:  # the gaps of two uniform cuts: a Dirichlet distribution, variance 1/18
        np.testing.assert_allclose(p.var(0), 1 / 18, rtol=0.05)
    assert abs(mdp.rewards.mean()) < 5 / np.sqrt(mdp.rewards.size)
    assert abs(mdp.rewards.var() - 1) < 5 * np.sqrt(2 / mdp.rewards.size)


def test_a_large_garnet_has_distinct_successors():
    mdp = garnet(50_000, 3, 8, seed=1)
    assert np.all(np.diff(mdp.successors, axis=-1) > 0)
    assert mdp.successors.min() == 0
    assert mdp.successors.max() == 49_999


def test_moves_in_a_small_grid():
    """`.G.` / `.#.` / `...`: states 0 1 2 / 3 . 4 / 5 6 7; state 1 is the goal."""
    mdp = grid_world([".G.", ".#.", "..."], slip=0.2, step_reward=-1.0, goal_reward=10.0)
    assert (mdp.n_states, mdp.n_actions, mdp.n_branches) == (8, 4, 3)
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), [1])
    up, right, down, left = range(4)
    expected = {
        (0, up): {0: 0.8 + 0.1, 1: 0.1},
        (0, right): {1: 0.8, 0: 0.1, 3: 0.1},
        (2, left): {1: 0.8, 2: 0.1, 4: 0.1},
        (3, right): {3: 0.8, 0: 0.1, 5: 0.1},  # into the wall
        (4, down): {7: 0.8, 4: 0.2},
        (6, up): {6: 0.8, 5: 0.1, 7: 0.1},
        (6, left): {5: 0.8, 6: 0.2},
        (7, right): {7: 0.8 + 0.1, 4: 0.1},
        (5, down): {5: 0.8 + 0.1, 6: 0.1},
    }
    transitions, rewards = mdp.to_numpy()
    for (s, a), row in expected.items():
        np.testing.assert_allclose(transitions[s, a], [row.get(t, 0.0) for t in range(8)])
        np.testing.assert_allclose(rewards[s, a], -1.0 + 10.0 * row.get(1, 0.0), atol=1e-14)


def test_a_grid_without_slips_goes_where_it_should():
    mdp = grid_world((3, 4), slip=0.0, discount=0.9)
    assert mdp.n_branches == 1
    np.testing.assert_array_equal(mdp.successors[5, :, 0], [1, 6, 9, 4])
    np.testing.assert_array_equal(mdp.successors[0, :, 0], [0, 1, 4, 0])
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), [11])
    np.testing.assert_array_equal(mdp.rewards[:11], np.full((11, 4), -1.0))


def test_random_walls_have_their_share_and_spare_the_goal():
    mdp = grid_world((200, 200), walls=0.3, seed=0)
    assert abs(mdp.n_states / 40_000 - 0.7) < 5 * np.sqrt(0.21 / 40_000)
    assert grid_world((3, 5), walls=1.0).n_states == 1
    assert mdp.terminal[-1]
    assert mdp.terminal.sum() == 1


def test_a_chain():
    mdp = chain(3, success=0.75)
    transitions, rewards = mdp.to_numpy()
    left = [[0.75, 0.25, 0], [0.75, 0, 0.25], [0, 0.75, 0.25]]
    right = [[0.25, 0.75, 0], [0.25, 0, 0.75], [0, 0.25, 0.75]]
    np.testing.assert_array_equal(transitions, np.stack([left, right], 1))
    np.testing.assert_array_equal(rewards, [[0.01, 0.0], [0.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: two_state(discount=2), "`discount` must be in [0, 1], got 2"),
        (lambda: random_mdp(-1), "`seed` must be a whole number of at least 0, got -1"),
        (lambda: random_mdp(0, n_states=0),
         "`n_states` must be a whole number of at least 1, got 0"),
        (lambda: random_mdp(0, n_actions=1.5),
         "`n_actions` must be a whole number of at least 1, got 1.5"),
        (lambda: garnet(0, 1, 1, 0), "`n_states` must be a whole number of at least 1, got 0"),
        (lambda: garnet(3, 1, 4, 0), "`branching` must be a whole number in [1, 3], got 4"),
        (lambda: garnet(3, 1, 1, "x"), "`seed` must be a whole number of at least 0, got 'x'"),
        (lambda: garnet(3, 1, 1, 0, discount=-1), "`discount` must be in [0, 1], got -1"),
        (lambda: grid_world((2, 2), slip=1.5), "`slip` must be in [0, 1], got 1.5"),
        (lambda: grid_world((2, 2), step_reward=np.inf),
         "`step_reward` must be a finite number, got inf"),
        (lambda: grid_world((2, 2), goal_reward="1"),
         "`goal_reward` must be a finite number, got '1'"),
        (lambda: grid_world((2, 2), walls=-0.5), "`walls` must be in [0, 1], got -0.5"),
        (lambda: grid_world(["G."], walls=0.5),
         "`walls` must be 0 where `layout` shows them, got 0.5"),
        (lambda: grid_world((2, 0)), "`layout` must be a whole number of at least 1, got 0"),
        (lambda: grid_world((2, 2, 2)),
         "`layout` must be rows of text or (height, width), got (2, 2, 2)"),
        (lambda: grid_world("..G"), "`layout` must be rows of text or (height, width), got '..G'"),
        (lambda: grid_world([]), "`layout` must be rows of text or (height, width), got []"),
        (lambda: grid_world([".G", ".S"]),
         "`layout` must be made of '#', '.' and 'G', got 'S' in row 1, column 1"),
        (lambda: grid_world([".G", "..."]),
         "`layout` must be rows of one length, that of row 0, 2, got '...' in row 1"),
        (lambda: grid_world([3, ".."]),
         "`layout` must be rows of text or (height, width), got [3, '..']"),
        (lambda: grid_world([""]), "`layout` must have a cell that is no wall, got none"),
        (lambda: grid_world([".x.y"]),
         "`layout` must be made of '#', '.' and 'G', got 'x' in row 0, column 1"),
        (lambda: grid_world(["##"]), "`layout` must have a cell that is no wall, got none"),
        (lambda: chain(1), "`n_states` must be a whole number of at least 2, got 1"),
        (lambda: chain(3, success=-0.1), "`success` must be in [0, 1], got -0.1"),
    ],
)  # fmt: skip
def test_an_invalid_argument_of_a_generator_is_an_error(make, message):
    wrong_kind = any(part in message for part in ("rows of text", "got '1'", "at least 0, got 'x'"))
    with pytest.raises(TypeError if wrong_kind else ValueError) as error:
        make()
    assert str(error.value) == message
