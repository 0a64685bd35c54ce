"""Tabular learning against planning, against the algorithm as a plain loop, and against itself."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mellowmax as mm
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.environments import tabular, taxi, two_state
from mellowmax.learning import expected_sarsa, q_learning, sarsa, train
from mellowmax.mdp import MDP, garnet, multi_passenger_taxi, random_mdp
from mellowmax.mdp import two_state as two_state_mdp
from mellowmax.planning import fixed_points

LEARNERS = [sarsa, expected_sarsa, q_learning]
# A program is compiled for a learner, an environment and what is recorded: tests share these.
PAIRS = pytest.mark.parametrize(
    ("kind", "softmax"),
    [
        (sarsa, Boltzmann(16.55)),
        (sarsa, Mellowmax(16.55)),
        (expected_sarsa, Mellowmax(16.55)),
        (q_learning, EpsilonGreedy(0.3)),
    ],
)
in_the_taxi = functools.partial(train, environment=taxi.params(), steps=700, bins=7)
in_two_states = functools.partial(train, environment=two_state.params(), steps=700)


def uniforms_of(seed, run, steps, each):
    """The random numbers of a run: those it begins with, and those of each step."""
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), run)
    blocks = [
        jax.random.uniform(jax.random.fold_in(key, i), (128, each), jnp.float32)
        for i in range(2 + steps // 128)
    ]
    return np.asarray(blocks[0][0]), np.concatenate(blocks[1:])


def plain_loop(kind, mdp, start, softmax, rate, steps, seed=0, run=0):
    """The textbook's loop, episode by episode, in float64, on the same random numbers."""
    begin, draws = uniforms_of(seed, run, steps, 2)
    draws = iter(draws)
    q = np.zeros((mdp.n_states, mdp.n_actions))
    successors = mdp.successors
    if successors is None:
        successors = np.broadcast_to(np.arange(mdp.n_states), mdp.probabilities.shape)
    ends = np.append(mdp.terminal, True)

    def choose(s, u):
        return int(np.searchsorted(np.cumsum(softmax.policy(q[s])), u, side="right"))

    def move(s, a, u):
        kept = np.flatnonzero(mdp.probabilities[s, a])
        sums = np.cumsum(mdp.probabilities[s, a, kept])[:-1].astype(np.float32)
        k = kept[np.searchsorted(sums, u, side="right")]
        reward = mdp.rewards[s, a] if mdp.rewards.ndim == 2 else mdp.rewards[s, a, k]
        return successors[s, a, k], reward

    s, a, total = start, choose(start, begin[1]), 0.0
    for _ in range(steps):
        u_move, u_act = next(draws)
        s2, r = move(s, a, u_move)
        total += r
        if ends[s2]:
            q[s, a] += rate * (r - q[s, a])
            s, a = start, choose(start, u_act)
        elif kind is sarsa:
            a2 = choose(s2, u_act)
            q[s, a] += rate * (r + mdp.discount * q[s2, a2] - q[s, a])
            s, a = s2, a2
        else:
            worth = q[s2].max() if kind is q_learning else softmax.value(q[s2])
            q[s, a] += rate * (r + mdp.discount * worth - q[s, a])
            s, a = s2, choose(s2, u_act)
    return q, total / steps


@PAIRS
def test_a_run_is_the_algorithm_of_the_textbook(kind, softmax):
    for mdp, learn in ((two_state_mdp(), in_two_states), (multi_passenger_taxi(), in_the_taxi)):
        expected, reward = plain_loop(kind, mdp, 0, softmax, 0.3, 700, seed=3, run=5)
        got = learn(kind(softmax, 0.3), runs=[5], seed=3)
        np.testing.assert_allclose(got.q[0], expected, atol=2e-5)
        np.testing.assert_allclose(got.rewards[0].mean(), reward, rtol=1e-5)


@pytest.mark.parametrize("kind", LEARNERS)
def test_an_update_moves_one_entry_by_the_td_error(kind):
    rng = np.random.default_rng(0)
    q = rng.normal(size=(4, 3)).astype(np.float32)
    where = np.array([True, False, True])
    learner = kind(Boltzmann(2.0), 0.25)
    new, td_error = learner.update(jnp.asarray(q), 1, 2, 0.5, 0.9, 3, 0, where=jnp.asarray(where))
    row = q[3, where]
    worth = {
        sarsa: q[3, 0],
        expected_sarsa: (np.exp(2 * row) * row).sum() / np.exp(2 * row).sum(),
        q_learning: row.max(),
    }[kind]
    np.testing.assert_allclose(td_error, 0.5 + 0.9 * worth - q[1, 2], rtol=1e-5)
    change = np.asarray(new) - q
    np.testing.assert_allclose(change[1, 2], 0.25 * np.asarray(td_error), rtol=1e-5)
    assert np.count_nonzero(change) == 1
    assert new.dtype == np.float32


def the_fixed_point(mdp, softmax):
    """By `fixed_points`, for which nothing is compiled."""
    (point,) = fixed_points(mdp, softmax)
    return point.q


def episodic(seed, discount):
    """A random MDP whose episodes end one time in ten, so that all states are visited."""
    transitions, rewards = random_mdp(seed, n_states=4, n_actions=3).to_numpy()
    ends = np.full((4, 3, 1), 0.1)
    successors = np.broadcast_to(np.arange(5, dtype=np.int32), (4, 3, 5))
    return MDP(successors, np.concatenate([0.9 * transitions, ends], -1), rewards, discount)


def slower_and_slower(step):
    return 0.5 / (1 + jnp.float32(step) / 1000) ** 0.85


@pytest.mark.parametrize(
    ("mdp", "softmax"),
    [
        (two_state_mdp(), Mellowmax(16.55)),
        (episodic(5, 0.98), Mellowmax(5.0)),
        (episodic(1, 0.9), Mellowmax(16.55)),
    ],
    ids=["two-state", "random 5", "random 1"],
)
def test_expected_sarsa_reaches_the_fixed_point_of_planning(mdp, softmax):
    """Within 4 standard errors of 64 runs and 0.003: about one false alarm in 1000 such tests."""
    learner = expected_sarsa(softmax, slower_and_slower)
    got = train(learner, mdp, steps=200_000, runs=64).q.astype(np.float64)
    live = ~mdp.terminal
    error = got.mean(0)[live] - the_fixed_point(mdp, softmax)[live]
    standard_error = got.std(0)[live] / 8
    print(f"largest error {abs(error).max():.5f}, standard error {standard_error.max():.5f}")
    assert (abs(error) <= 4 * standard_error + 0.003).all()
    assert standard_error.max() < 0.003


def test_the_taxi_earns_under_a_fixed_policy_what_its_chain_says():
    """400 runs of 5000 steps, within 4 standard errors: one false alarm in 16,000."""
    mdp = multi_passenger_taxi()
    transitions, rewards = mdp.to_numpy()
    q = np.zeros(rewards.shape)
    for _ in range(200):  # nearly the best
        q = rewards + mdp.discount * transitions @ q.max(1)
    q = q.astype(np.float32)
    policy = mm.boltzmann_policy(q.astype(np.float64), 1.0)
    live = ~mdp.terminal
    chain = np.einsum("sa,sat->st", policy, transitions)
    chain[:, 0] += chain[:, ~live].sum(1)  # an end leads to the start
    chain = chain[np.ix_(live, live)]
    equations = np.vstack([chain.T - np.eye(len(chain)), np.ones(len(chain))])
    stationary = np.linalg.lstsq(equations, np.eye(len(equations))[-1], rcond=None)[0]
    expected = stationary @ (policy * rewards).sum(1)[live]

    learner = sarsa(Boltzmann(1.0), 0.0, initial=q)
    run = train(learner, taxi.params(), steps=6000, runs=400, bins=6)
    np.testing.assert_array_equal(run.q, np.broadcast_to(q, run.q.shape))
    means = run.rewards[:, 1:].mean(1, dtype=np.float64)  # the first bin may remember the start
    standard_error = means.std() / np.sqrt(400)
    print(f"{means.mean():.5f} +- {standard_error:.5f}, the chain {expected:.5f}")
    assert abs(means.mean() - expected) < 4 * standard_error
    assert standard_error < 0.02 * expected


@PAIRS
def test_a_run_does_not_depend_on_its_batch(kind, softmax):
    learn = functools.partial(in_the_taxi, kind(softmax, 0.4))
    among = learn(runs=101)
    for run in (0, 63, 64, 100):
        alone = learn(runs=[run])
        np.testing.assert_array_equal(alone.q[0], among.q[run])
        np.testing.assert_array_equal(alone.rewards[0], among.rewards[run])


def test_a_run_of_episodes_does_not_depend_on_its_batch():
    learn = functools.partial(
        train, sarsa(Boltzmann(16.55)), two_state.params(), episodes=40, values=[1, 0]
    )
    among, alone = learn(runs=101), learn(runs=[37])
    for name in ("q", "returns", "lengths", "values"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(among, name)[37])


def test_a_setting_does_not_depend_on_the_grid_around_it():
    betas, rates = np.array([[0.5], [2.0], [20.0]]), np.array([0.1, 0.4])
    grid = in_the_taxi(sarsa(Boltzmann(betas), rates), runs=3)
    assert grid.q.shape == (3, 2, 3, 264, 4)
    assert grid.rewards.shape == (3, 2, 3, 7)
    for i, j in np.ndindex(3, 2):
        alone = in_the_taxi(sarsa(Boltzmann(betas[i, 0]), rates[j]), runs=3)
        np.testing.assert_array_equal(alone.q, grid.q[i, j])


def test_a_key_for_each_setting_is_folded_with_the_run():
    keys = jax.random.split(jax.random.key(9), 2)
    learner = sarsa(Boltzmann(np.array([1.5, 1.5])), 0.4)
    both = in_the_taxi(learner, runs=2, seed=keys)
    one = in_the_taxi(sarsa(Boltzmann(1.5), 0.4), runs=2, seed=keys[1])
    np.testing.assert_array_equal(both.q[1], one.q)
    assert not np.array_equal(both.q[0], both.q[1])
    assert not np.array_equal(one.q[0], one.q[1])


@pytest.mark.parametrize("x64", [True, False])
def test_numbers_are_float32_whatever_the_flag(x64):
    with jax.enable_x64(x64):
        run = in_the_taxi(sarsa(Mellowmax(2.0), 0.4), runs=2)
    assert run.q.dtype == run.rewards.dtype == np.float32
    again = in_the_taxi(sarsa(Mellowmax(2.0), 0.4), runs=2)
    np.testing.assert_array_equal(run.q, again.q)


def bandit():
    """One state, two actions whose rewards are 0 or 1; every step is an episode."""
    return MDP(
        [[[1, 1]] * 2], [[[0.7, 0.3], [0.4, 0.6]]], [[[0.0, 1.0]] * 2], 0.9, terminal=[False]
    )


def test_a_learning_rate_of_one_over_n_gives_the_mean():
    mdp = MDP([[[1, 1]]], [[[0.7, 0.3]]], [[[0.0, 1.0]]], 0.9, terminal=[False])
    run = train(sarsa(Mean(), lambda step: 1.0 / (1 + jnp.float32(step))), mdp, steps=1000, runs=5)
    np.testing.assert_allclose(run.q[:, 0, 0], run.rewards[:, 0], atol=1e-5)
    assert len(set(run.rewards[:, 0].tolist())) > 1


def test_a_schedule_of_a_grid_is_the_schedule_of_each():
    scales = np.array([10.0, 100.0], np.float32)
    grid = sarsa(Boltzmann(2.0), lambda step: 1 / (1 + jnp.float32(step) / jnp.asarray(scales)))
    both = in_the_taxi(grid, runs=2)
    for i, scale in enumerate(scales):
        learner = sarsa(
            Boltzmann(2.0), lambda step, scale=scale: 1 / (1 + jnp.float32(step) / scale)
        )
        np.testing.assert_allclose(in_the_taxi(learner, runs=2).q, both.q[i], atol=1e-6)


def test_the_softmax_can_have_a_schedule():
    """Uniform for 1000 steps, then the best of two arms: 0.45 and then 0.6 a step on average."""
    learner = q_learning(lambda step: EpsilonGreedy(jnp.where(step < 1000, 1.0, 0.0)), 0.01)
    run = train(learner, bandit(), steps=2000, runs=200, bins=2)
    means, errors = run.rewards.mean(0), run.rewards.std(0) / np.sqrt(200)
    assert abs(means[0] - 0.45) < 4 * errors[0]  # 4 standard errors: 1 in 16,000
    assert abs(means[1] - 0.6) < 4 * errors[1]
    optax = pytest.importorskip("optax")
    decayed = sarsa(Boltzmann(1.0), optax.exponential_decay(0.5, 100, 0.9))
    assert train(decayed, taxi.params(), steps=200).q.shape == (1, 264, 4)


@pytest.mark.parametrize("kind", [sarsa, expected_sarsa])
def test_masked_actions_are_never_taken(kind):
    base = garnet(8, 3, 3, seed=0)
    allowed = np.ones((8, 3), np.bool_)
    allowed[np.arange(8), np.arange(8) % 3] = False
    mdp = MDP(base.successors, base.probabilities, base.rewards, 0.9, allowed=allowed)
    learner = kind(Mellowmax(1.0), lambda t: 1 / (1 + jnp.float32(t) / 200), initial=7.0)
    run = train(learner, mdp, steps=50_000 if kind is expected_sarsa else 3000, runs=64)
    assert (run.q[:, ~allowed] == 7.0).all()
    assert (run.q[:, allowed] != 7.0).all()
    if kind is expected_sarsa:  # the mask counts in the value too
        target = the_fixed_point(mdp, Mellowmax(1.0))
        np.testing.assert_allclose(run.q.mean(0)[allowed], target[allowed], atol=0.1)


def test_bins_add_up_whatever_their_width():
    learn = functools.partial(train, sarsa(Boltzmann(3.0), 0.4), two_state.params(), steps=4200)
    some, each = (learn(bins=bins).rewards for bins in (7, 4200))
    assert some.shape == (1, 7)
    assert each.shape == (1, 4200)
    possible = np.float32([0.12211, 0.03284])
    assert np.isin(each, possible).all()
    np.testing.assert_allclose(some[0], each.reshape(7, -1).mean(1), rtol=1e-5)


def test_a_mean_over_many_steps_is_not_rounded_away():
    """Half a million rewards of 0.1, which a running sum in float32 gets wrong by 1e-3."""
    mdp = MDP([[[1]]], [[[1.0]]], [[0.1]], 0.9, terminal=[False])
    run = train(sarsa(Mean(), 0.0), mdp, steps=500_000)
    np.testing.assert_allclose(run.rewards, 0.1, rtol=3e-6)


def test_what_episodes_record():
    params = two_state.params()
    learner = sarsa(Boltzmann(16.55))
    run = train(learner, params, episodes=40, runs=3, values=[1, 0])
    steps = int(run.lengths[0].sum())
    by_steps = train(learner, params, steps=steps, bins=steps)
    rewards = np.split(by_steps.rewards[0], np.cumsum(run.lengths[0])[:-1])
    np.testing.assert_allclose(run.returns[0], [r.sum() for r in rewards], rtol=1e-4)
    np.testing.assert_array_equal(run.q[0], by_steps.q[0])
    np.testing.assert_array_equal(run.values[:, -1, ::-1], run.q)
    first = train(learner, params, episodes=7).q[0]
    np.testing.assert_array_equal(run.values[0, 6, ::-1], first)
    assert run.rewards is None


def test_steps_cut_a_run_of_episodes_short():
    run = train(sarsa(Boltzmann(16.55)), two_state.params(), episodes=10_000, steps=700, runs=2)
    ended = run.lengths > 0
    assert (np.isnan(run.returns) == ~ended).all()
    assert (run.lengths.sum(1) <= 700).all()
    assert ended[:, 0].all()
    assert not ended[:, -1].any()
    again = in_two_states(sarsa(Boltzmann(16.55)), runs=2)
    np.testing.assert_array_equal(run.q, again.q)


def smoothed(values):
    """Averages of ten consecutive episodes, as in figure 2."""
    sums = np.cumsum(values, axis=1)
    return (sums[:, 10:] - sums[:, :-10]) / 10


def crossings(values, low, high):
    """How often each run goes from below `low` to above `high` or back."""
    side = np.where(values < low, -1, np.where(values > high, 1, 0))
    result = []
    for row in side:
        visits = row[row != 0]
        result.append(np.count_nonzero(np.diff(visits)))
    return np.array(result)


def test_figure_2_over_many_runs():
    """SARSA moves between Boltzmann's basins, and stays at mellowmax's one fixed point.

    500 runs of 2000 episodes at learning rate 0.1, smoothed as in figure 2. A crossing goes from
    below the lower stable fixed point to above the upper one, or back. Of 1000 other runs, all went
    up, 47 % came back down, and there were 2.3 crossings a run; these 500 are within 5 standard
    errors of that, or there is one false alarm in a million.
    """
    mdp = two_state_mdp()
    low, high = (point.q[0, 1] for point in fixed_points(mdp, Boltzmann(16.55)) if point.stable)
    found = {}
    for softmax in (Boltzmann(16.55), Mellowmax(16.55)):
        run = train(
            sarsa(softmax, 0.1),
            two_state.params(),
            episodes=2000,
            runs=range(1000, 1500),
            values=[0],
        )
        values = smoothed(run.values[:, :, 0, 1])
        found[type(softmax)] = crossings(values, low, high), values[:, 200:]
    crossed, values = found[Boltzmann]
    print(f"Boltzmann {values.mean():.3f} +- {values.std():.3f}, {crossed.mean():.2f} crossings, ")
    print(f"{(crossed > 1).mean():.0%} of the runs come back")
    assert (crossed > 0).all()
    assert abs((crossed > 1).mean() - 0.47) < 5 * 0.022
    assert abs(crossed.mean() - 2.3) < 5 * crossed.std() / np.sqrt(500)
    assert values.std() > 0.1

    crossed, values = found[Mellowmax]
    only = the_fixed_point(mdp, Mellowmax(16.55))[0, 1]
    print(f"mellowmax {values.mean():.3f} +- {values.std():.3f}, fixed point {only:.3f}")
    assert (crossed == 0).all()
    assert abs(values.mean() - only) < 0.02
    assert values.std() < 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`steps` or `episodes` must be given, got neither"),
        ({"steps": 0}, "`steps` must be a whole number in .*, got 0"),
        ({"steps": 10, "bins": 3}, "`bins` must divide the 10 `steps`, got 3"),
        (
            {"steps": 10, "values": [0]},
            r"`values` are recorded where `episodes` is given, got \[0\]",
        ),
        ({"episodes": 1.5}, "`episodes` must be a whole number of at least 1, got 1.5"),
        ({"episodes": 5, "values": [2]}, r"`values` must be a whole number in \[0, 1\], got 2"),
        ({"steps": 10, "runs": 0}, "`runs` must be a whole number of at least 1, got 0"),
        ({"steps": 10, "runs": [-1]}, "`runs` must be a whole number in .*, got -1"),
        ({"steps": 10, "seed": -1}, r"`seed` must be a whole number in \[0, 4294967295\], got -1"),
        ({"steps": 10, "seed": jnp.zeros(2)}, "`seed` must be a whole number or JAX's"),
    ],
)
def test_a_bad_argument_is_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        train(sarsa(Mean()), two_state.params(), **arguments)


def test_a_bad_learner_or_environment_is_one_sentence():
    params = two_state.params()
    with pytest.raises(ValueError, match=r"`learning_rate` must be in \[0, 1\], got 1.5"):
        sarsa(Mean(), 1.5)
    with pytest.raises(ValueError, match=r"`softmax` must be a Softmax or a function .*, got 3"):
        sarsa(3)
    with pytest.raises(ValueError, match="`learner` must be a Learner"):
        train(Mean(), params, steps=1)
    with pytest.raises(ValueError, match="`environment` must be an MDP or the parameters"):
        train(sarsa(Mean()), "Taxi-v4", steps=1)
    with pytest.raises(ValueError, match=r"`initial` must be a number .*2, 2\), got \(3, 2\)"):
        train(sarsa(Mean(), initial=np.zeros((3, 2))), params, steps=1)
    with pytest.raises(ValueError, match=r"must broadcast against each other.*\(2,\), \(3,\)"):
        train(sarsa(Boltzmann(np.ones(2)), np.ones(3)), params, steps=1)
    with pytest.raises(ValueError, match="`steps` must be given where no episode ends, got None"):
        train(sarsa(Mean()), garnet(4, 2, 2, seed=0), episodes=1)


def test_any_mdp_is_an_environment():
    mdp = random_mdp(0)
    anywhere = train(q_learning(Max()), mdp, steps=5, runs=3)
    same = train(q_learning(Max()), tabular.params(mdp), steps=5, runs=3)
    np.testing.assert_array_equal(anywhere.q, same.q)
