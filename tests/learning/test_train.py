"""Training in functional environments: against the textbook's loop, planning, and itself.

A program is compiled for a learner, a softmax, the shape of an environment and a recorder, and
takes seconds to compile: most tests here share the environment and the recorder of `in_a_taxi`. The
grid is small so that every run earns something soon; else all tables would be equal, namely 0.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mellowmax as mm
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.environments import tabular, taxi, two_state
from mellowmax.learning import expected_sarsa, functional, q_learning, sarsa, train
from mellowmax.mdp import MDP, garnet, multi_passenger_taxi, random_mdp
from mellowmax.mdp import two_state as two_state_mdp
from mellowmax.planning import fixed_points

PAIRS = pytest.mark.parametrize(
    ("kind", "softmax"),
    [
        (sarsa, Boltzmann(16.55)),
        (sarsa, Mellowmax(16.55)),
        (expected_sarsa, Boltzmann(16.55)),
        (q_learning, EpsilonGreedy(0.3)),
    ],
)
SMALL = {"grid": "S.F/FD.", "rewards": (0.0, 1.0, 3.0)}
in_a_taxi = functools.partial(train, environment=taxi.params(**SMALL), steps=700, bins=7)
in_two_states = functools.partial(
    train, environment=two_state.params(), episodes=40, steps=150, values=[1, 0]
)


def uniforms_of(seed, run, steps, each):
    """The random numbers of a run: those it begins with, and those of each step."""
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), run)
    blocks = [
        jax.random.uniform(jax.random.fold_in(key, i), (128, each), jnp.float32)
        for i in range(2 + steps // 128)
    ]
    return np.asarray(blocks[0][0]), np.concatenate(blocks[1:])


def plain_loop(kind, mdp, start, softmax, rate, steps, seed=0, run=0):
    """The textbook's loop, episode by episode, in float64, on the same random numbers.

    `rate` is a number or a function of the step. Yields after each step the table, the reward, and
    whether the episode has ended.
    """
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

    s, a = start, choose(start, begin[1])
    for step in range(steps):
        alpha = rate(step) if callable(rate) else rate
        u_move, u_act = next(draws)
        s2, r = move(s, a, u_move)
        ended = ends[s2]
        if ended:
            q[s, a] += alpha * (r - q[s, a])
            s, a = start, choose(start, u_act)
        elif kind is sarsa:
            a2 = choose(s2, u_act)
            q[s, a] += alpha * (r + mdp.discount * q[s2, a2] - q[s, a])
            s, a = s2, a2
        else:
            worth = q[s2].max() if kind is q_learning else softmax.value(q[s2])
            q[s, a] += alpha * (r + mdp.discount * worth - q[s, a])
            s, a = s2, choose(s2, u_act)
        yield q.copy(), r, ended


@PAIRS
def test_a_run_is_the_algorithm_of_the_textbook(kind, softmax):
    expected = plain_loop(kind, multi_passenger_taxi(**SMALL), 0, softmax, 0.3, 700, seed=3, run=5)
    tables, rewards, _ = zip(*expected, strict=True)
    got = in_a_taxi(kind(softmax, 0.3), runs=[5], seed=3)
    np.testing.assert_allclose(got.q[0], tables[-1], atol=2e-5)
    np.testing.assert_allclose(got.rewards[0], np.reshape(rewards, (7, -1)).mean(1), rtol=1e-5)
    assert np.ptp(got.q) > 0.5


def test_a_run_of_episodes_is_the_algorithm_of_the_textbook():
    """And records the return, the length and the values of each episode."""
    softmax = Boltzmann(16.55)
    run = in_two_states(sarsa(softmax), runs=[1])
    loop = plain_loop(sarsa, two_state_mdp(), 0, softmax, 0.1, run.lengths.sum(), run=1)
    tables, rewards, ended = (np.array(x) for x in zip(*loop, strict=True))
    ends = 1 + np.flatnonzero(ended)
    np.testing.assert_array_equal(run.lengths[0], np.diff(ends, prepend=0))
    returns = [part.sum() for part in np.split(rewards, ends)[:-1]]
    np.testing.assert_allclose(run.returns[0], returns, rtol=1e-5)
    np.testing.assert_allclose(run.values[0, :, ::-1], tables[ends - 1], atol=2e-5)
    np.testing.assert_array_equal(run.q, run.values[:, -1, ::-1])
    assert run.rewards is None


def test_steps_cut_a_run_of_episodes_short():
    run = in_two_states(sarsa(Boltzmann(16.55)), runs=101)
    ended = run.lengths > 0
    cut = ~ended[:, -1]
    assert 10 < cut.sum() < 90
    for x in (run.returns, run.values[..., 0, 0]):
        assert (np.isnan(x) == ~ended).all()
    assert (run.lengths.sum(1) <= 150).all()
    first = int(cut.argmax())
    loop = plain_loop(sarsa, two_state_mdp(), 0, Boltzmann(16.55), 0.1, 150, run=first)
    *_, (table, _, _) = loop
    np.testing.assert_allclose(run.q[first], table, atol=2e-5)


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


@pytest.mark.release
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
    got = train(learner, mdp, steps=50_000, runs=64).q.astype(np.float64)
    live = ~mdp.terminal
    error = got.mean(0)[live] - the_fixed_point(mdp, softmax)[live]
    standard_error = got.std(0)[live] / 8
    print(f"largest error {abs(error).max():.5f}, standard error {standard_error.max():.5f}")
    assert (abs(error) <= 4 * standard_error + 0.003).all()
    assert standard_error.max() < 0.005


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
    learn = functools.partial(in_a_taxi, kind(softmax, 0.4))
    among = learn(runs=101)
    assert len(np.unique(among.q, axis=0)) == 101
    for run in (0, 63, 64, 100):
        alone = learn(runs=[run])
        np.testing.assert_array_equal(alone.q[0], among.q[run])
        np.testing.assert_array_equal(alone.rewards[0], among.rewards[run])


def test_a_run_of_episodes_does_not_depend_on_its_batch():
    among, alone = (in_two_states(sarsa(Boltzmann(16.55)), runs=runs) for runs in (101, [37]))
    for name in ("q", "returns", "lengths", "values"):
        np.testing.assert_array_equal(getattr(alone, name)[0], getattr(among, name)[37])


def test_a_setting_does_not_depend_on_the_grid_around_it():
    betas, rates = np.array([[0.5], [2.0], [20.0]]), np.array([0.1, 0.4])
    grid = in_a_taxi(sarsa(Boltzmann(betas), rates), runs=3)
    assert grid.q.shape == (3, 2, 3, 24, 4)
    assert grid.rewards.shape == (3, 2, 3, 7)
    for i, j in np.ndindex(3, 2):
        alone = in_a_taxi(sarsa(Boltzmann(betas[i, 0]), rates[j]), runs=3)
        np.testing.assert_array_equal(alone.q, grid.q[i, j])


def test_the_discount_is_the_learner_s_and_else_the_environment_s():
    discounts = np.array([0.5, 0.99])
    grid = in_a_taxi(sarsa(Boltzmann(2.0), 0.4, discount=discounts), runs=2)
    assert grid.q.shape == (2, 2, 24, 4)
    for discount, q in zip(discounts, grid.q, strict=True):
        learner = sarsa(Boltzmann(2.0), 0.4)
        own = in_a_taxi(learner, environment=taxi.params(**SMALL, discount=discount), runs=2)
        np.testing.assert_array_equal(q, own.q)
    assert not np.array_equal(*grid.q)


def test_a_key_for_each_setting_is_folded_with_the_run():
    keys = jax.random.split(jax.random.key(9), 2)
    learner = sarsa(Boltzmann(np.array([1.5, 1.5])), 0.4)
    both = in_a_taxi(learner, runs=2, seed=keys)
    one = in_a_taxi(sarsa(Boltzmann(1.5), 0.4), runs=2, seed=keys[1])
    np.testing.assert_array_equal(both.q[1], one.q)
    assert not np.array_equal(both.q[0], both.q[1])
    assert not np.array_equal(one.q[0], one.q[1])


def test_numbers_are_float32_whatever_the_flag(monkeypatch):
    """The flag is on in these tests, and off for a program that is compiled anew."""
    learner = sarsa(Boltzmann(2.0), 0.4)
    on = in_a_taxi(learner, runs=2)
    monkeypatch.setattr(functional, "_compiled", functional._compiled.__wrapped__)
    with jax.enable_x64(False):
        off = in_a_taxi(learner, runs=2)
    assert off.q.dtype == off.rewards.dtype == np.float32
    np.testing.assert_array_equal(on.q, off.q)
    np.testing.assert_array_equal(on.rewards, off.rewards)


def bandit():
    """One state, two actions whose rewards are 0 or 1; every step is an episode."""
    return MDP(
        [[[1, 1]] * 2], [[[0.7, 0.3], [0.4, 0.6]]], [[[0.0, 1.0]] * 2], 0.9, terminal=[False]
    )


def test_a_schedule_of_a_grid_is_the_schedule_of_each():
    scales = np.array([10.0, 100.0], np.float32)
    grid = sarsa(Boltzmann(2.0), lambda step: 1 / (1 + jnp.float32(step) / jnp.asarray(scales)))
    both = in_a_taxi(grid)
    for scale, q in zip(scales, both.q, strict=True):
        loop = plain_loop(
            sarsa,
            multi_passenger_taxi(**SMALL),
            0,
            Boltzmann(2.0),
            lambda step, scale=scale: 1 / (1 + step / scale),
            700,
        )
        *_, (table, _, _) = loop
        np.testing.assert_allclose(q[0], table, atol=2e-5)


def test_the_softmax_can_have_a_schedule():
    """Uniform for 1000 steps, then the best of two arms: 0.45 and then 0.6 a step on average."""
    optax = pytest.importorskip("optax")
    learner = q_learning(
        lambda step: EpsilonGreedy(jnp.where(step < 1000, 1.0, 0.0)),
        optax.linear_schedule(0.02, 0.01, 1000),
    )
    run = train(learner, bandit(), steps=2000, runs=200, bins=2)
    means, errors = run.rewards.mean(0), run.rewards.std(0) / np.sqrt(200)
    assert abs(means[0] - 0.45) < 4 * errors[0]  # 4 standard errors: 1 in 16,000
    assert abs(means[1] - 0.6) < 4 * errors[1]


def test_masked_actions_are_never_taken():
    base = garnet(8, 3, 3, seed=0)
    allowed = np.ones((8, 3), np.bool_)
    allowed[np.arange(8), np.arange(8) % 3] = False
    mdp = MDP(base.successors, base.probabilities, base.rewards, 0.9, allowed=allowed)
    softmax = EpsilonGreedy(0.5)
    learner = expected_sarsa(softmax, lambda t: 1 / (1 + jnp.float32(t) / 200), initial=7.0)
    run = train(learner, mdp, steps=50_000, runs=64)
    assert (run.q[:, ~allowed] == 7.0).all()
    assert (run.q[:, allowed] != 7.0).all()
    target = the_fixed_point(mdp, softmax)  # the mask counts in the value too
    np.testing.assert_allclose(run.q.mean(0)[allowed], target[allowed], atol=0.1)


def test_any_mdp_is_an_environment(monkeypatch):
    """Only the parameters differ; what is compiled is the same."""
    given = []

    def learn(runs, schedules, recorder, *, params, **options):
        given.append((params, runs, recorder, options))
        return {"q": np.zeros((runs.setting.size, 2, 2))}

    monkeypatch.setattr(functional, "learn", learn)
    mdp = random_mdp(0, n_states=2, n_actions=2, discount=0.75)
    for environment in (mdp, tabular.params(mdp)):
        assert train(q_learning(Max()), environment, steps=5, runs=3).q.shape == (3, 2, 2)
    jax.tree.map(np.testing.assert_array_equal, *given)
    assert (given[0][1].learner.discount == 0.75).all()


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


@pytest.mark.release
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


EIGHT_DEVICES = """
import json, jax
from mellowmax import Boltzmann
from mellowmax.environments import taxi
from mellowmax.learning import sarsa, train
assert len(jax.devices()) == 8
params = taxi.params("S.F/FD.", rewards=(0.0, 1.0, 3.0))
run = train(sarsa(Boltzmann(5.0), 0.4), params, steps=700, runs=700, bins=7)
print(json.dumps([run.q[::50].tobytes().hex(), run.rewards.tobytes().hex()]))
"""


def test_eight_devices_give_the_numbers_of_one():
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", EIGHT_DEVICES],
        capture_output=True,
        text=True,
        env=os.environ | {"XLA_FLAGS": flags},
    )
    assert done.returncode == 0, done.stderr
    q, rewards = json.loads(done.stdout)
    one = in_a_taxi(sarsa(Boltzmann(5.0), 0.4), runs=700)
    assert one.q[::50].tobytes().hex() == q
    assert one.rewards.tobytes().hex() == rewards


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
        ({"steps": 10, "runs": 0}, "`runs` must be a whole number in \\[1, 4294967295\\], got 0"),
        ({"steps": 10, "runs": [-1]}, "`runs` must be a whole number in .*, got -1"),
        ({"steps": 10, "seed": -1}, r"`seed` must be a whole number in \[0, 4294967295\], got -1"),
        ({"steps": 10, "seed": jnp.zeros(2)}, "`seed` must be a whole number or JAX's"),
    ],
)
def test_a_bad_argument_is_one_sentence(arguments, message):
    wrong_kind = isinstance(arguments.get("seed"), jax.Array)
    with pytest.raises(TypeError if wrong_kind else ValueError, match=message):
        train(sarsa(Mean()), two_state.params(), **arguments)


def test_a_bad_learner_or_environment_is_one_sentence():
    params = two_state.params()
    with pytest.raises(TypeError, match="`learner` must be a Learner"):
        train(Mean(), params, steps=1)
    for environment in (3, lambda: params):
        with pytest.raises(ValueError, match="`environment` must be an MDP, the parameters of an"):
            train(sarsa(Mean()), environment, steps=1)
    with pytest.raises(ValueError, match=r"`initial` must be a number .*2, 2\), got \(3, 2\)"):
        train(sarsa(Mean(), initial=np.zeros((3, 2))), params, steps=1)
    with pytest.raises(ValueError, match=r"must broadcast against each other.*\(2,\), \(3,\)"):
        train(sarsa(Boltzmann(np.ones(2)), np.ones(3)), params, steps=1)
    with pytest.raises(ValueError, match="`steps` must be given where no episode ends, got None"):
        train(sarsa(Mean()), garnet(4, 2, 2, seed=0), episodes=1)
