"""REINFORCE's learner: its gradient against finite differences and every episode there can be."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import brentq

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax
from mellowmax.deep import (
    Episodes,
    HeldTemperature,
    Network,
    Policy,
    Reinforce,
    ReinforceState,
    mlp,
    reinforce,
)
from mellowmax.deep.episodes import _returns_by_halves, _returns_step_by_step

gradient = functools.partial(
    jax.jit(Reinforce.gradient), reinforce(Boltzmann(1.0))
)  # of any learner
advantages = jax.jit(Reinforce.advantages)
update = jax.jit(Reinforce.update)


def network(seed, *sizes, dtype=np.float64):
    """One with random weights and biases."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: Network.init(jax.random.key(0), sizes))
    return jax.tree.map(lambda x: rng.normal(size=x.shape, scale=0.6).astype(dtype), shapes)


def state_of(learner, network, baseline=None):
    """What a run has learned that has these networks, and has not learned before."""
    return ReinforceState(network, baseline, learner.optimiser.init((network, baseline)))


def outputs(network, observations):
    """Those of a network, in NumPy."""
    w, b, v, c = (np.asarray(x) for x in jax.tree.leaves(network))
    return np.maximum(observations @ w.T + b, 0) @ v.T + c


def temperature(q, omega):
    """The one at which a Boltzmann policy is worth what mellowmax says, found by bisection."""
    gaps = q - np.log(np.mean(np.exp(omega * q))) / omega
    return brentq(lambda beta: (np.exp(beta * gaps) * gaps).sum(), -60, 60, xtol=1e-13)


def temperatures(softmax, q):
    if isinstance(softmax, Mean):
        return np.zeros(len(q))
    if isinstance(softmax, Boltzmann):
        return np.full(len(q), softmax.beta)
    return np.array([temperature(row, softmax.omega) for row in q])


def log_policy(softmax, q, betas=None):
    """Logarithms of the probabilities for rows of action values, in NumPy."""
    betas = temperatures(softmax, q) if betas is None else betas
    weights = np.exp(betas[:, None] * q)
    return np.log(weights / weights.sum(1, keepdims=True))


def slopes(function, network, step=1e-5):
    """The gradient of a function of a network by central differences."""
    leaves, tree = jax.tree.flatten(network)
    leaves = [np.array(leaf) for leaf in leaves]
    result = [np.zeros_like(leaf) for leaf in leaves]
    for leaf, slope in zip(leaves, result, strict=True):
        for at in np.ndindex(leaf.shape):
            middle, values = leaf[at], []
            for leaf[at] in (middle - step, middle + step):
                values.append(function(jax.tree.unflatten(tree, leaves)))
            leaf[at], slope[at] = middle, (values[1] - values[0]) / (2 * step)
    return jax.tree.unflatten(tree, result)


def assert_close(got, expected, **tolerances):
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, **tolerances)


LENGTHS = np.array([3, 1, 5], np.int32)
MANY = np.append(LENGTHS, np.ones(45, np.int32))
"""As many episodes as the small MDP below has, so that one program computes all gradients."""


def some_episodes(length=128, seed=0, n_actions=3, lengths=LENGTHS):
    """A few random episodes in float64, with whatever behind their ends."""
    rng = np.random.default_rng(seed)
    shape = (length, len(lengths))
    return Episodes(
        rng.normal(size=(*shape, 3)),
        rng.integers(n_actions, size=shape, dtype=np.int32),
        rng.normal(size=shape),
        lengths,
    )


def steps_of(episodes):
    """Every step of every episode that counts, as the places in the arrays."""
    return [(t, i) for i, length in enumerate(episodes.lengths) for t in range(length)]


def weighed_by_hand(softmax, episodes, weights, betas=None):
    """The objective whose gradient REINFORCE estimates, as a function of a network."""
    places = tuple(np.transpose(steps_of(episodes)))

    def objective(network):
        q = outputs(network, episodes.observations[places])
        rows = log_policy(softmax, q, betas)
        taken = rows[np.arange(len(rows)), episodes.actions[places]]
        return (taken * weights[places]).sum() / len(episodes.lengths)

    return objective


def behind_the_end_is_zero(episodes, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(episodes.mask(), rng.normal(size=episodes.actions.shape), 0.0)


@pytest.mark.parametrize(
    "softmax",
    [Boltzmann(2.0), Boltzmann(-1.5), Mellowmax(5.0), Mellowmax(-3.0), Mean()],
    ids=repr,
)
def test_the_gradient_is_that_of_the_log_probabilities(softmax):
    net, episodes = network(0, 3, 4, 3), some_episodes(lengths=MANY)
    weights = behind_the_end_is_zero(episodes)
    got = gradient(Policy(net, softmax), episodes, weights)
    assert_close(
        got, slopes(weighed_by_hand(softmax, episodes, weights), net), rtol=1e-6, atol=1e-9
    )
    largest = max(abs(x).max() for x in jax.tree.leaves(got))
    assert largest == 0 if isinstance(softmax, Mean) else largest > 0.02


@pytest.mark.parametrize("softmax", [Max(), Mean(), EpsilonGreedy(0.1)], ids=repr)
def test_a_softmax_that_gives_nothing_to_learn_from_is_refused(softmax):
    with pytest.raises(ValueError, match=r"`softmax` must have a policy that changes .* learns no"):
        reinforce(softmax)


def test_a_held_temperature_has_the_gradient_of_boltzmann_s_policy_at_it():
    net, episodes = network(0, 3, 4, 3), some_episodes(lengths=MANY)
    weights = behind_the_end_is_zero(episodes)
    whole, held = Mellowmax(5.0), reinforce(Mellowmax(5.0), through_temperature=False)
    assert held.softmax == HeldTemperature(5.0)
    q = outputs(net, episodes.observations[tuple(np.transpose(steps_of(episodes)))])
    betas = temperatures(whole, q)
    got = gradient(Policy(net, held.softmax), episodes, weights)
    expected = slopes(weighed_by_hand(whole, episodes, weights, betas), net)
    assert_close(got, expected, rtol=1e-6, atol=1e-9)
    other = gradient(Policy(net, whole), episodes, weights)
    differences = jax.tree.map(lambda x, y: abs(x - y).max(), got, other)
    assert max(jax.tree.leaves(differences)) > 0.02
    for row in q:
        for name in ("policy", "log_policy", "value"):
            one, two = (getattr(softmax, name)(row) for softmax in (whole, held.softmax))
            np.testing.assert_allclose(one, two, rtol=1e-14)


@pytest.mark.parametrize("softmax", [Max(), EpsilonGreedy(0.2), EpsilonGreedy(0.0)], ids=repr)
def test_a_policy_with_steps_has_the_gradient_zero(softmax):
    """Also where an action has the probability 0, which can only be behind the end."""
    net, episodes = network(0, 3, 4, 3), some_episodes()
    greedy = outputs(net, episodes.observations).argmax(-1).astype(np.int32)
    episodes = Episodes(
        episodes.observations,
        np.where(episodes.mask(), greedy, episodes.actions),
        episodes.rewards,
        episodes.lengths,
    )
    weights = behind_the_end_is_zero(episodes)
    got = gradient(Policy(net, softmax), episodes, weights)
    assert_close(got, jax.tree.map(jnp.zeros_like, net), atol=0)


def test_an_update_ascends_by_the_learning_rate_times_the_gradient():
    learner = reinforce(Boltzmann(2.0), 0.25, optimiser=optax.identity())
    net, episodes = network(0, 3, 4, 3), some_episodes()
    state = state_of(learner, net)
    weights = advantages(learner, state, episodes)
    expected = slopes(weighed_by_hand(learner.softmax, episodes, np.asarray(weights)), net)
    new = update(learner, state, episodes)
    change = jax.tree.map(lambda x, y: (x - y) / 0.25, new.network, net)
    assert_close(change, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("average", "share"), [("steps", 9), ("none", 1)])
def test_a_gradient_is_a_mean_over_steps_or_a_sum(average, share):
    """Where it is by default a mean over the three episodes."""
    options = {"optimiser": optax.identity(), "batch": 3}
    learner = reinforce(Boltzmann(2.0), 0.25, average=average, **options)
    state, episodes = state_of(learner, network(0, 3, 4, 3)), some_episodes()
    change, of_episodes = (
        jax.tree.map(np.subtract, update(each, state, episodes).network, state.network)
        for each in (learner, reinforce(Boltzmann(2.0), 0.25, **options))
    )
    assert_close(change, jax.tree.map(lambda x: x * 3 / share, of_episodes), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("epochs", [1, 3])
def test_minibatches_go_through_every_step_once_an_epoch(epochs):
    """Of nine steps in threes. With small steps of the optimiser the weights hardly change between
    them, so that all together are what the gradient of all steps gives."""
    rate = 1e-7
    options = {"batch": 3, "baseline": "network", "discount": 0.9, "optimiser": optax.identity()}
    learner = reinforce(Boltzmann(2.0), rate, minibatch=3, epochs=epochs, **options)
    state = state_of(learner, network(0, 3, 4, 3), network(1, 3, 4, 1))
    episodes = some_episodes()
    keyed = jax.jit(lambda key: learner.update(state, episodes, key))
    new, other = keyed(jax.random.key(0)), keyed(jax.random.key(1))
    whole = update(reinforce(Boltzmann(2.0), rate, average="steps", **options), state, episodes)
    for name in ("network", "baseline"):
        was = getattr(state, name)
        change, expected, shuffled = (
            jax.tree.map(lambda x, y: (x - y) / rate, getattr(each, name), was)
            for each in (new, whole, other)
        )
        assert_close(change, jax.tree.map(lambda x: 3 * epochs * x, expected), rtol=1e-4, atol=1e-6)
        leaves = zip(jax.tree.leaves(change), jax.tree.leaves(shuffled), strict=True)
        assert any((x != y).any() for x, y in leaves)  # in another order


def test_each_epoch_has_an_order_of_its_own():
    """Of nine steps one at a time. The k-th of the first epoch counts k times and that of the
    second -k times, so that nothing would remain of two epochs in one order."""
    order = np.array([*range(1, 10), *range(-1, -10, -1)], np.float64)
    rate, optimiser = 1e-7, optax.scale_by_schedule(lambda count: jnp.asarray(order)[count])
    learner = reinforce(
        Boltzmann(2.0), rate, batch=3, minibatch=1, epochs=2, discount=0.9, optimiser=optimiser
    )
    state, episodes = state_of(learner, network(0, 3, 4, 3)), some_episodes()
    new = jax.jit(lambda key: learner.update(state, episodes, key))(jax.random.key(0))
    change = jax.tree.map(lambda x, y: abs(x - y).max() / rate, new.network, state.network)
    assert max(jax.tree.leaves(change)) > 1


def test_the_networks_of_the_policy_and_of_the_baseline_begin_with_weights_of_their_own():
    learner = reinforce(Boltzmann(1.0), baseline="network", network=mlp(16, 2))
    state = learner.init(jax.random.key(0), observation=4, n_actions=3)
    layers = zip(state.network.layers[:-1], state.baseline.layers[:-1], strict=True)
    for of_policy, of_baseline in layers:
        one, other = np.ravel(of_policy.weight), np.ravel(of_baseline.weight)
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.5  # of 64 and 256 weights: 1e-4 by chance
        assert (one != other).all()


def test_a_minibatch_that_is_not_full_is_a_mean_over_what_it_has():
    """Nine steps in fours: two whole ones, and one step alone."""
    rate = 1e-7
    options = {"batch": 3, "optimiser": optax.identity(), "minibatch": 4}
    learner = reinforce(Boltzmann(2.0), rate, **options)
    state, episodes = state_of(learner, network(0, 3, 4, 3)), some_episodes()
    weights = np.asarray(advantages(learner, state, episodes))
    new = jax.jit(lambda key: learner.update(state, episodes, key))(jax.random.key(3))
    change = np.concatenate(
        [
            ((x - y) / rate).ravel()
            for x, y in zip(
                jax.tree.leaves(new.network), jax.tree.leaves(state.network), strict=True
            )
        ]
    )

    def gradient_of(places):
        alone = np.zeros_like(weights)
        alone[tuple(np.transpose(places))] = weights[tuple(np.transpose(places))]
        slope = slopes(weighed_by_hand(learner.softmax, episodes, 3 * alone), state.network)
        return np.concatenate([x.ravel() for x in jax.tree.leaves(slope)])

    steps = steps_of(episodes)
    expected = [(gradient_of(steps) + 3 * gradient_of([step])) / 4 for step in steps]
    assert sum(np.allclose(change, each, rtol=1e-4, atol=1e-5) for each in expected) == 1


# A small MDP that surely ends: from a state on to a later one, of which number 3 is the end.

N_STATES, N_ACTIONS = 3, 3
LATER = np.arange(4) > np.arange(3)[:, None]
CHANCES = np.random.default_rng(5).random((3, 3, 4)) * LATER[:, None]
CHANCES /= CHANCES.sum(-1, keepdims=True)
REWARDS = np.random.default_rng(6).normal(size=(3, 3, 4))


def ways(state=0):
    """Every way from a state to the end: steps of (state, action, reward), and its probability

    with the policy's part left out.
    """
    if state == 3:
        yield (), 1.0
        return
    for action in range(N_ACTIONS):
        for after in range(state + 1, 4):
            for rest, p in ways(after):
                step = (state, action, REWARDS[state, action, after])
                yield (step, *rest), CHANCES[state, action, after] * p


WAYS = list(ways())


def policy_table(softmax, network):
    return np.exp(log_policy(softmax, outputs(network, np.eye(N_STATES))))


def probabilities_of_ways(table):
    return np.array([p * np.prod([table[s, a] for s, a, _ in way]) for way, p in WAYS])


def action_values(table, discount):
    """The values of every state and action, backwards from the end."""
    values, q = np.zeros(4), np.zeros((3, 3))
    for s in (2, 1, 0):
        q[s] = (CHANCES[s] * (REWARDS[s] + discount * values)).sum(-1)
        values[s] = table[s] @ q[s]
    return q


def visits(table):
    """How often a state is visited on average."""
    result = np.array([1.0, 0, 0, 0])
    for s in range(3):
        result += result[s] * (table[s] @ CHANCES[s])
    return result[:3]


def expected_return(softmax, discount, network):
    table = policy_table(softmax, network)
    return table[0] @ action_values(table, discount)[0]


def surrogate(softmax, discount, network):
    """A function whose gradient at `network` is `sum E[grad log policy * Q]` over the steps."""
    table = policy_table(softmax, network)
    weights = visits(table)[:, None] * action_values(table, discount)
    return lambda other: (policy_table(softmax, other) * weights).sum()


def groups_of_ways(size):
    """Every batch of `size` episodes as `Episodes` with an axis of batches first."""
    chosen = np.stack(np.meshgrid(*[range(len(WAYS))] * size, indexing="ij"), -1).reshape(-1, size)
    shape = (len(WAYS), 128)
    states, actions, rewards = np.zeros(shape, int), np.zeros(shape, np.int32), np.zeros(shape)
    for i, (way, _) in enumerate(WAYS):
        for t, step in enumerate(way):
            states[i, t], actions[i, t], rewards[i, t] = step
    lengths = np.array([len(way) for way, _ in WAYS], np.int32)
    arrays = [x[chosen].swapaxes(1, 2) for x in (np.eye(N_STATES)[states], actions, rewards)]
    return chosen, Episodes(*arrays, lengths[chosen])


@jax.jit
def all_advantages(learner, state, episodes):
    return jax.vmap(lambda one: learner.advantages(state, one))(episodes)


def expectation(learner, state, size=1):
    """Of the estimate from a batch of `size` episodes, over all batches there can be.

    An estimate is a mean over episodes, so their mean, weighed with the probabilities of the
    batches, is the estimate of one large batch with weighed advantages.
    """
    chosen, episodes = groups_of_ways(size)
    p = probabilities_of_ways(policy_table(learner.softmax, state.network))
    np.testing.assert_allclose(p.sum(), 1, rtol=1e-12)
    any_softmax = dataclasses.replace(learner, softmax=Mean())
    weights = np.asarray(all_advantages(any_softmax, state, episodes))
    weights = weights * (p[chosen].prod(1) * len(chosen))[:, None, None]
    arrays = (episodes.observations, episodes.actions, episodes.rewards, weights)
    *arrays, weights = (joined(x) for x in arrays)
    large = Episodes(*arrays, episodes.lengths.reshape(-1))
    return gradient(Policy(state.network, learner.softmax), large, weights)


def joined(array):
    """`[batches, T, B, ...]` as `[T, batches * B, ...]`."""
    return array.swapaxes(0, 1).reshape(array.shape[1], -1, *array.shape[3:])


SOFTMAXES = [Boltzmann(2.0), Mellowmax(5.0)]
STATE = ReinforceState(network(2, 3, 4, 3), None, None)


@pytest.mark.parametrize("softmax", SOFTMAXES, ids=repr)
@pytest.mark.parametrize(("reward_to_go", "discount"), [(False, 0.9), (False, 1.0), (True, 1.0)])
def test_the_estimate_s_expectation_is_the_gradient_of_the_return(softmax, reward_to_go, discount):
    learner = reinforce(softmax, discount=discount, reward_to_go=reward_to_go)
    exact = slopes(functools.partial(expected_return, softmax, discount), STATE.network)
    assert max(abs(x).max() for x in jax.tree.leaves(exact)) > 0.05
    assert_close(expectation(learner, STATE), exact, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("softmax", SOFTMAXES, ids=repr)
def test_the_expectation_of_a_discounted_reward_to_go(softmax):
    learner = reinforce(softmax, discount=0.9)
    expected = slopes(surrogate(softmax, 0.9, STATE.network), STATE.network)
    got = expectation(learner, STATE)
    assert_close(got, expected, rtol=1e-6, atol=1e-9)
    exact = slopes(functools.partial(expected_return, softmax, 0.9), STATE.network)
    differences = jax.tree.map(lambda x, y: abs(x - y).max(), got, exact)
    assert max(jax.tree.leaves(differences)) > 1e-3  # as the module says: not quite


@pytest.mark.parametrize("softmax", SOFTMAXES, ids=repr)
@pytest.mark.parametrize("reward_to_go", [False, True])
def test_a_baseline_network_does_not_change_the_expectation(softmax, reward_to_go):
    settings = {"discount": 0.9, "reward_to_go": reward_to_go}
    without = expectation(reinforce(softmax, **settings), STATE)
    state = ReinforceState(STATE.network, network(3, 3, 4, 1), None)
    assert_close(
        expectation(reinforce(softmax, baseline="network", **settings), state),
        without,
        rtol=1e-9,
        atol=1e-11,
    )


@pytest.mark.parametrize("reward_to_go", [False, True])
def test_the_other_episodes_as_a_baseline_do_not_change_the_expectation(reward_to_go):
    settings = {"discount": 0.9, "reward_to_go": reward_to_go, "batch": 2}
    without = expectation(reinforce(Boltzmann(2.0), **settings), STATE)
    others = reinforce(Boltzmann(2.0), baseline="leave-one-out", **settings)
    assert_close(expectation(others, STATE, size=2), without, rtol=1e-9, atol=1e-11)


def returns_by_hand(episodes, discount):
    result = np.zeros(episodes.rewards.shape)
    for t, i in steps_of(episodes):
        for later in range(t, episodes.lengths[i]):
            result[t, i] += discount ** (later - t) * episodes.rewards[later, i]
    return result


@pytest.mark.parametrize("discount", [0.0, 0.7, 1.0])
def test_the_return_to_go(discount):
    episodes = some_episodes()
    got = episodes.returns_to_go(discount)
    np.testing.assert_allclose(got, returns_by_hand(episodes, discount), rtol=1e-12, atol=1e-13)
    assert (np.asarray(got)[~np.asarray(episodes.mask())] == 0).all()


@pytest.mark.parametrize("steps", [1, 7, 256])
def test_an_accelerator_adds_up_by_halves_what_a_cpu_adds_step_by_step(steps):
    rng = np.random.default_rng(steps)
    discounts, rewards = rng.random((steps, 3)), rng.normal(size=(steps, 3))
    one, other = (
        function(jnp.asarray(discounts), jnp.asarray(rewards))
        for function in (_returns_by_halves, _returns_step_by_step)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    expected = sum(rewards[t] * np.prod(discounts[:t], axis=0) for t in range(steps))
    np.testing.assert_allclose(one[0], expected, rtol=1e-12, atol=1e-14)


def test_the_return_is_the_sum_of_the_rewards():
    episodes = some_episodes()
    expected = [episodes.rewards[:n, i].sum() for i, n in enumerate(episodes.lengths)]
    np.testing.assert_allclose(episodes.returns(), expected, rtol=1e-12)


@pytest.mark.parametrize("reward_to_go", [False, True])
@pytest.mark.parametrize("baseline", ["none", "leave-one-out", "network"])
def test_the_advantage_is_the_return_minus_the_baseline(baseline, reward_to_go):
    episodes = some_episodes()
    learner = reinforce(
        Boltzmann(1.0), discount=0.8, reward_to_go=reward_to_go, baseline=baseline, batch=3
    )
    of_baseline = network(3, 3, 4, 1) if baseline == "network" else None
    got = advantages(learner, ReinforceState(STATE.network, of_baseline, None), episodes)
    returns = returns_by_hand(episodes, 0.8)
    if not reward_to_go:
        returns[:] = returns[0]
    expected = np.zeros_like(returns)
    for t, i in steps_of(episodes):
        others = [j for j in range(3) if j != i]
        subtracted = {
            "none": lambda t, i: 0.0,
            "leave-one-out": lambda t, i, others=others: returns[t, others].mean(),
            "network": lambda t, i: outputs(of_baseline, episodes.observations[t, i])[0],
        }[baseline]
        expected[t, i] = returns[t, i] - subtracted(t, i)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_normalised_advantages_have_mean_0_and_deviation_1():
    episodes = some_episodes(length=256, lengths=np.array([130, 1, 7], np.int32))
    learner = reinforce(
        Boltzmann(1.0), discount=0.8, baseline="leave-one-out", normalise=True, batch=3
    )
    got = np.asarray(advantages(learner, STATE, episodes))
    mask = np.asarray(episodes.mask())
    assert abs(got[mask].mean()) < 1e-13
    assert got[mask].std() == pytest.approx(1, abs=1e-13)
    assert (got[~mask] == 0).all()


def test_normalising_equal_advantages_gives_0():
    episodes = some_episodes(lengths=np.array([1, 1, 1], np.int32))
    same = Episodes(episodes.observations, episodes.actions, np.ones((128, 3)), episodes.lengths)
    got = advantages(reinforce(Boltzmann(1.0), normalise=True, batch=3), STATE, same)
    np.testing.assert_array_equal(got, 0.0)


def padded(episodes, length, seed):
    """The same episodes in float32 and in longer arrays, with large numbers behind their ends."""
    rng = np.random.default_rng(seed)
    mask = np.asarray(episodes.mask())

    def pad(array, behind):
        result = np.full((length, *array.shape[1:]), behind).astype(array.dtype)
        result[: len(array)][mask] = array[mask]
        return result if array.dtype == np.int32 else result.astype(np.float32)

    return Episodes(
        pad(episodes.observations, 1e3 * rng.normal()),
        pad(episodes.actions, rng.integers(3)),
        pad(episodes.rewards, 1e6 * rng.normal()),
        episodes.lengths,
    )


# One program of each softmax for all of the following: three episodes in 256 steps, in float32.


def learner_and_state(softmax, learning_rate=0.005, discount=0.99, **more):
    options = {"batch": 3, "baseline": "network", "normalise": True, "discount": discount}
    learner = reinforce(softmax, learning_rate, **options, **more)
    networks = (network(seed, 3, 4, n, dtype=np.float32) for seed, n in ((2, 3), (3, 1)))
    return learner, state_of(learner, *networks)


SLOW_AT_FIRST = optax.linear_schedule(0.0, 0.5, 2)


@pytest.mark.parametrize(
    ("learning_rate", "more", "updates"),
    [
        (0.25, {}, 1),
        (None, {"optimiser": optax.adam(0.25)}, 1),
        (0.25, {"optimiser": optax.scale_by_adam()}, 1),
        (None, {"optimiser": optax.adam(SLOW_AT_FIRST)}, 2),  # its first step is 0
    ],
    ids=["default", "whole", "without a learning rate", "scheduled"],
)
def test_the_first_step_of_adam_ascends_by_the_learning_rate(learning_rate, more, updates):
    """Whether the learning rate is the learner's or the optimiser's own."""
    learner, state = learner_and_state(Boltzmann(2.0), learning_rate, **more)
    episodes = padded(some_episodes(), 256, 0)
    weights = np.asarray(advantages(learner, state, episodes))
    exact = jax.tree.map(np.float64, state.network)
    expected = slopes(weighed_by_hand(learner.softmax, episodes, weights), exact)
    learned = state
    for _ in range(updates):
        learned = update(learner, learned, episodes)
    change = jax.tree.map(np.subtract, learned.network, state.network)
    for one, slope in zip(jax.tree.leaves(change), jax.tree.leaves(expected), strict=True):
        steep = abs(slope) > 1e-3
        assert steep.any()
        np.testing.assert_allclose(one[steep], 0.25 * np.sign(slope[steep]), rtol=1e-4)


def test_what_is_behind_the_end_does_not_change_a_bit():
    """Neither what stands there nor how much."""
    learner, state = learner_and_state(Boltzmann(2.0))
    episodes = some_episodes(256, lengths=np.array([250, 40, 129], np.int32))
    one, other = (
        update(learner, state, padded(episodes, length, seed))
        for length, seed in ((256, 7), (512, 8))
    )
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x, y)
    assert (one.network.layers[0].weight != state.network.layers[0].weight).any()


def test_what_is_behind_the_end_does_not_change_a_bit_of_mellowmax_s_gradient():
    """Whose loop looks at all rows at once."""
    net, episodes = network(0, 3, 4, 3), some_episodes(lengths=MANY)
    weights = behind_the_end_is_zero(episodes)
    mask = np.asarray(episodes.mask())[..., None]
    grads = []
    for behind in (0.0, 1e-3, 1e3):
        observations = np.where(mask, episodes.observations, behind * episodes.observations)
        changed = dataclasses.replace(episodes, observations=observations)
        grads.append(gradient(Policy(net, Mellowmax(5.0)), changed, weights))
    for other in grads[1:]:
        for x, y in zip(jax.tree.leaves(grads[0]), jax.tree.leaves(other), strict=True):
            assert np.isfinite(x).all()
            np.testing.assert_array_equal(x, y)


def test_numbers_do_not_depend_on_the_flag_for_64_bits():
    learner, first = learner_and_state(Boltzmann(2.0))
    episodes = padded(some_episodes(), 256, 0)
    learned = []
    for flag in (False, True):
        with jax.enable_x64(flag):
            state = first
            for _ in range(3):
                state = update(learner, state, episodes)
        learned.append(jax.tree.leaves(state))
    for x, y in zip(*learned, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_the_baseline_network_learns_the_return_to_go():
    """It explains nothing of the variance of the return to go at first, and then nearly all."""
    lengths = np.array([100, 60, 80], np.int32)
    steps = np.arange(256)[:, None]
    left = np.maximum(lengths - steps, 0)
    observations = np.stack([left / 100, np.ones((256, 3)), np.zeros((256, 3))], -1)
    episodes = Episodes(
        observations.astype(np.float32),
        np.zeros((256, 3), np.int32),
        np.full((256, 3), 0.1, np.float32),
        lengths,
    )
    learner, state = learner_and_state(Boltzmann(0.0), 0.02, discount=1.0)
    mask = np.asarray(episodes.mask())
    returns = 0.1 * left[mask]

    def unexplained(state):
        missed = returns - outputs(state.baseline, observations)[mask][:, 0]
        return (missed**2).mean() / returns.var()

    before = unexplained(state)
    for _ in range(400):
        state = update(learner, state, episodes)
    print(f"unexplained {before:.3f}, then {unexplained(state):.4f}")
    assert before > 1
    assert unexplained(state) < 0.05


def test_a_learner_without_a_discount_has_the_default_one():
    """That is 0.99; `train` puts the environment's own in its place where there is one."""
    learner, state = learner_and_state(Boltzmann(2.0))
    episodes = padded(some_episodes(), 256, 0)
    without = dataclasses.replace(learner, discount=None)
    assert reinforce(Boltzmann(2.0)).discount is None
    np.testing.assert_array_equal(
        advantages(without, state, episodes), advantages(learner, state, episodes)
    )


UP_AND_DOWN = optax.multi_transform(
    {"bias": optax.adam(0.1), "weight": optax.scale_by_adam()},
    lambda weights: jax.tree.map(lambda x: "bias" if x.ndim == 1 else "weight", weights),
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"softmax": 3}, "`softmax` must be a Softmax such as Mellowmax(8.0), got 3"),
        ({"softmax": Mellowmax}, "`softmax` must be a Softmax such as Mellowmax(8.0), got the "
         "class Mellowmax"),
        ({"learning_rate": -0.5}, "`learning_rate` must be in [0, inf], got -0.5"),
        ({"learning_rate": np.nan}, "`learning_rate` must be in [0, inf], got nan"),
        ({"discount": 1.1}, "`discount` must be in [0, 1], got 1.1"),
        ({"discount": np.array([0.5, -1.0])}, "`discount` must be in [0, 1], got [ 0.5 -1. ]"),
        ({"batch": 0}, "`batch` must be a whole number of at least 1, got 0"),
        ({"batch": 2.5}, "`batch` must be a whole number of at least 1, got 2.5"),
        ({"batch": 1, "baseline": "leave-one-out"}, "`batch` must be a whole number of at "
         "least 2, got 1"),
        ({"network": mlp(), "hidden": 8}, "`hidden` must be left out where there is a `network`, "
         "got 8"),
        ({"optimiser": "adam"}, "`optimiser` must be an optax transformation, got 'adam'"),
        ({"learning_rate": 0.1, "optimiser": optax.adam(0.02)}, "`learning_rate` must be None for "
         "an optimiser that has one of its own, got 0.1"),
        ({"optimiser": optax.set_to_zero()}, "`optimiser` must move all weights up the gradient, "
         "or all of them down, got one that moves none in 100 updates"),
        ({"optimiser": UP_AND_DOWN}, "`optimiser` must move all weights up the gradient, or all of "
         "them down, got one that moves some up and some down"),
        ({"optimiser": optax.polyak_sgd()}, "`optimiser` must make steps of gradients and weights "
         "alone, got one that fails: scale_by_polyak.<locals>.update_fn() missing 1 required "
         "keyword-only argument: 'value'"),
        ({"baseline": "mean"}, "`baseline` must be one of none, leave-one-out, network, got "
         "'mean'"),
        ({"through_temperature": False}, "`through_temperature` must be True for a softmax other "
         "than Mellowmax(omega), got False for Boltzmann(beta=1.0)"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_one_sentence(arguments, message):
    wrong_kind = "softmax" in arguments or arguments.get("optimiser") == "adam"
    with pytest.raises(TypeError if wrong_kind else ValueError) as error:
        reinforce(**{"softmax": Boltzmann(1.0), **arguments})
    assert str(error.value) == message
