"""PPO: its parts by loops, its update by hand, what it learns, its checkpoints and its errors."""

from __future__ import annotations

import collections
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.trainings import PPO, assert_same, ppo_on_cartpole, ppo_on_two_states
from mellowmax import Boltzmann, Max, Mellowmax, Sparsemax
from mellowmax.cli.describe import describe_training
from mellowmax.deep import (
    FunctionalEnvironment,
    Ppo,
    Segment,
    Transitions,
    evaluate,
    load_policy,
    ppo,
    reinforce,
    train,
)
from mellowmax.deep.ppo import clipped_error, clipped_objective
from mellowmax.deep.segments import generalised_advantages
from mellowmax.environments import two_state
from mellowmax.policies import choose

STEPS, ENVIRONMENTS = 12, 3


def segment_of(rng, n_observations=4, n_actions=3):
    """Random steps, some of which end an episode; half of those ends are cuts."""
    shape = (STEPS, ENVIRONMENTS)
    ended = rng.random(shape) < 0.4
    steps = Transitions(
        rng.normal(size=(*shape, n_observations)).astype(np.float32),
        rng.integers(0, n_actions, shape).astype(np.int32),
        rng.normal(size=shape).astype(np.float32),
        ended & (rng.random(shape) < 0.5),
        rng.normal(size=(*shape, n_observations)).astype(np.float32),
    )
    return Segment(jax.tree.map(jnp.asarray, steps), jnp.asarray(ended))


def advantages_by_loop(segment, values, next_values, discount, trace):
    """Forward sums of errors, until an episode or the segment ends."""
    reward, terminated, ended = (
        np.asarray(x) for x in (segment.steps.reward, segment.steps.terminated, segment.ended)
    )
    result = np.zeros(reward.shape)
    for t in range(STEPS):
        for e in range(ENVIRONMENTS):
            for k in range(t, STEPS):
                later = 0.0 if terminated[k, e] else discount * next_values[k, e]
                error = reward[k, e] + later - values[k, e]
                result[t, e] += (discount * trace) ** (k - t) * error
                if ended[k, e]:
                    break
    return result


@pytest.mark.parametrize("trace", [0.0, 0.9, 1.0])
def test_advantages_are_those_of_a_loop(rng, trace):
    segment = segment_of(rng)
    values, next_values = rng.normal(size=(2, STEPS, ENVIRONMENTS))
    got = jax.jit(generalised_advantages)(
        segment,
        jnp.float32(values),
        jnp.float32(next_values),
        jnp.float32(0.97),
        jnp.float32(trace),
    )
    ends = np.asarray(segment.ended)
    assert (ends & ~np.asarray(segment.steps.terminated)).any()  # cuts
    expected = advantages_by_loop(segment, values, next_values, 0.97, trace)
    np.testing.assert_allclose(got, expected, atol=1e-5 if trace == 1.0 else 2e-6)


def test_clipped_losses_are_those_of_a_loop(rng):
    ratio, advantage = rng.uniform(0.5, 1.5, 64), rng.normal(size=64)
    value, before, target = rng.normal(size=(3, 64))
    gains, misses = [], []
    for r, a in zip(ratio, advantage, strict=True):
        limit = min(r, 1.2) if a > 0 else max(r, 0.8)
        gains.append(limit * a)
    for v, b, t in zip(value, before, target, strict=True):
        near = b + min(max(v - b, -0.2), 0.2)
        misses.append(max((v - t) ** 2, (near - t) ** 2) / 2)
    single = [jnp.float32(x) for x in (ratio, advantage)]
    assert clipped_objective(*single, 0.2) == pytest.approx(np.mean(gains), abs=1e-6)
    single = [jnp.float32(x) for x in (value, before, target)]
    assert clipped_error(*single, 0.2) == pytest.approx(np.mean(misses), abs=1e-6)


update = jax.jit(Ppo.update)


def test_an_update_is_the_one_of_paper_and_pencil(rng):
    """One layer, all steps in one minibatch and plain descent, so that no ratio is clipped.

    The log-probability of an action has the derivative `1[action] - p` with respect to the outputs,
    and the entropy `-p (log p + entropy)`.
    """
    learner = ppo(
        Boltzmann(2.0),
        0.1,
        discount=0.9,
        trace=0.8,
        environments=ENVIRONMENTS,
        steps=STEPS,
        epochs=1,
        minibatches=1,
        entropy=0.3,
        value=0.7,
        optimiser=optax.identity(),
        **PPO["linear"],
    )
    state = learner.init(jax.random.key(0), 4, 3)
    segment = segment_of(rng)
    learned = update(learner, state, segment, jax.random.key(1))
    weights, critic = (
        [np.asarray(x, np.float64) for x in (network.layers[0].weight, network.layers[0].bias)]
        for network in (state.network, state.critic)
    )
    before, after = (
        np.asarray(x, np.float64).reshape(-1, 4)
        for x in (segment.steps.observation, segment.steps.next_observation)
    )
    values, next_values = (x @ critic[0].T + critic[1] for x in (before, after))
    shape = (STEPS, ENVIRONMENTS)
    advantages = advantages_by_loop(
        segment, values.reshape(shape), next_values.reshape(shape), 0.9, 0.8
    ).reshape(-1)
    count = STEPS * ENVIRONMENTS
    normal = (advantages - advantages.mean()) / advantages.std()
    p = np.exp(2.0 * (before @ weights[0].T + weights[1]))
    p /= p.sum(1, keepdims=True)
    taken = np.eye(3)[np.asarray(segment.steps.action).reshape(-1)]
    entropy = -(p * np.log(p)).sum(1, keepdims=True)
    up = normal[:, None] * (taken - p) - 0.3 * p * (np.log(p) + entropy)
    up *= 2.0 / count  # the softmax's parameter
    down = -0.7 * advantages[:, None] / count
    for network, old, slope in (
        (learned.network, weights, up),
        (learned.critic, critic, -down),
    ):
        layer = network.layers[0]
        np.testing.assert_allclose(layer.weight, old[0] + 0.1 * slope.T @ before, atol=1e-6)
        np.testing.assert_allclose(layer.bias, old[1] + 0.1 * slope.sum(0), atol=1e-6)
    assert learned.updates == 1


def test_the_critic_moves_as_far_as_its_clip_allows(rng):
    """In many small steps: to the least squares of the targets, or not half as far."""
    segment = segment_of(rng)
    x = np.asarray(segment.steps.observation, np.float64).reshape(-1, 4)
    x = np.column_stack([x, np.ones(len(x))])
    moved = {}
    for limit in (np.inf, 0.05, None):
        learner = ppo(Boltzmann(1.0), 0.2, discount=0.0, environments=ENVIRONMENTS, steps=STEPS,
                      epochs=200, minibatches=1, clip=0.05, value=1.0, value_clip=limit,
                      optimiser=optax.identity(), **PPO["linear"])  # fmt: skip
        state = learner.init(jax.random.key(0), 4, 3)
        learned = update(learner, state, segment, jax.random.key(1))
        before, after = (
            x @ np.append(np.asarray(y.weight), y.bias)
            for y in (state.critic.layers[0], learned.critic.layers[0])
        )
        moved[limit] = np.abs(after - before).mean(), after
    reward = np.asarray(segment.steps.reward, np.float64).reshape(-1)  # the discount is 0
    best = x @ np.linalg.lstsq(x, reward)[0]
    np.testing.assert_allclose(moved[np.inf][1], best, atol=1e-4)
    assert 2 * moved[0.05][0] < moved[np.inf][0]
    assert moved[None][0] == moved[0.05][0]


def test_an_epoch_has_every_step_once_in_an_order_of_its_own(rng):
    """In small steps the critic moves as far by all minibatches as by all steps in one.

    One step in place of another changes that by a tenth or so.
    """
    segment = segment_of(rng)
    moves = []
    for minibatches, key in ((1, 0), (4, 1), (4, 2)):
        learner = ppo(Boltzmann(1.0), 1e-3 / minibatches, environments=ENVIRONMENTS, steps=STEPS,
                      epochs=1, minibatches=minibatches, optimiser=optax.identity(),
                      **PPO["linear"])  # fmt: skip
        state = learner.init(jax.random.key(0), 4, 3)
        learned = update(learner, state, segment, jax.random.key(key))
        moves.append(learned.critic.layers[0].weight - state.critic.layers[0].weight)
    whole, one, other = map(np.asarray, moves)
    np.testing.assert_allclose(one, whole, atol=0.01 * np.abs(whole).max())
    assert (one != other).any()


@pytest.mark.parametrize("softmax", [Boltzmann(30.0), Sparsemax(1.0)])
def test_probabilities_of_nothing_spoil_nothing(rng, softmax):
    """Some actions have the probability 0, and soon some of those that were taken."""
    learner = ppo(
        softmax, 10.0, environments=ENVIRONMENTS, steps=STEPS, minibatches=2, **PPO["linear"]
    )
    state = learner.init(jax.random.key(0), 4, 3)
    steps, ended = segment_of(rng)
    policy = jax.vmap(jax.vmap(learner.policy(state).probabilities))(steps.observation)
    actions = choose(policy, jnp.float32(rng.random(ended.shape))).astype(jnp.int32)
    played = Segment(steps._replace(action=actions), ended)
    learned = update(learner, state, played, jax.random.key(1))
    later = jax.vmap(jax.vmap(learner.policy(learned).probabilities))(steps.observation)
    assert (policy == 0).any()
    assert (jnp.take_along_axis(later, actions[..., None], axis=-1) == 0).any()
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(learned))


def test_a_gradient_is_clipped_to_a_length(rng):
    """That of both networks together."""
    learner = ppo(
        Boltzmann(1.0),
        1.0,
        environments=ENVIRONMENTS,
        steps=STEPS,
        epochs=1,
        minibatches=1,
        optimiser=optax.clip_by_global_norm(0.5),
        **PPO["linear"],
    )
    state = learner.init(jax.random.key(0), 4, 3)
    segment = segment_of(rng)
    large = segment._replace(steps=segment.steps._replace(reward=100 * segment.steps.reward))
    learned = update(learner, state, large, jax.random.key(1))
    moved = jax.tree.map(
        lambda x, y: x - y, (learned.network, learned.critic), (state.network, state.critic)
    )
    length = np.sqrt(sum((np.float64(x) ** 2).sum() for x in jax.tree.leaves(moved)))
    assert length == pytest.approx(0.5, rel=1e-4)


class Stopping:
    """Go on for 1, or stop for 1.6."""

    @staticmethod
    def reset(key, params):
        return jnp.float32(1)

    @staticmethod
    def step(key, state, action, params):
        return state, jnp.where(action == 1, jnp.float32(1.6), 1), action == 1

    @staticmethod
    def observe(state, params):
        return state[None]


@pytest.mark.parametrize("max_steps", [1, 50])
def test_an_end_is_worth_nothing_and_a_cut_is_not_an_end(max_steps):
    """Going on is worth 2; it would be 1 if a cut were an end, and stopping 2.6 if an end were not.

    The chance of going on was above 0.999 in all of 20 other runs.
    """
    params = collections.namedtuple("Params", "n_actions")(2)
    environment = FunctionalEnvironment(Stopping, params, max_steps=max_steps)
    learner = ppo(
        Boltzmann(1.0), 0.05, discount=0.5, environments=4, steps=16, entropy=0.0, **PPO["linear"]
    )
    result = train(learner, environment, steps=6400)
    policy = jax.tree.map(lambda x: x[0], result.policies)
    assert policy.probabilities(jnp.ones(1, jnp.float32))[0] > 0.9


class Images:
    """Three places, each seen as an image. The action of the place's own number pays 1.

    The action of the next place's number is not legal, and costs 100.
    """

    @staticmethod
    def reset(key, params):
        return jnp.int32(0)

    @staticmethod
    def step(key, place, action, params):
        wrong = action == (place + 1) % 3
        reward = jnp.where(wrong, -100, jnp.where(action == place, 1, 0)).astype(jnp.float32)
        return (place + 1) % 3, reward, place == 2

    @staticmethod
    def observe(place, params):
        return jax.nn.one_hot(3 * place, 16, dtype=jnp.float32).reshape(4, 4, 1) > 0

    @staticmethod
    def legal(place, params):
        return jnp.arange(3, dtype=jnp.int32) != (place + 1) % 3


class Convolution(eqx.Module):
    """A convolution and a layer."""

    filters: eqx.nn.Conv2d
    last: eqx.nn.Linear
    activation: Callable[[jax.Array], jax.Array]

    def __init__(self, key, observation, n_actions):
        of_filters, of_last = jax.random.split(key)
        height, width, channels = observation.shape
        options = {"dtype": jnp.float32}
        self.filters = eqx.nn.Conv2d(channels, 4, 2, key=of_filters, **options)
        size = 4 * (height - 1) * (width - 1)
        self.last = eqx.nn.Linear(size, n_actions, key=of_last, **options)
        self.activation = jax.nn.relu

    def __call__(self, image):
        seen = jnp.transpose(image.astype(jnp.float32), (2, 0, 1))
        return self.last(jnp.ravel(self.activation(self.filters(seen))))


def test_a_network_of_one_s_own_learns_from_images_and_keeps_to_what_is_legal():
    """The best return is 3; with two legal actions it is 1.5 at random."""
    params = collections.namedtuple("Params", "n_actions")(3)
    environment = FunctionalEnvironment(Images, params, max_steps=9)
    learner = ppo(Boltzmann(1.0), 0.01, network=Convolution, steps=32)
    returns = train(learner, environment, steps=1536).returns[0]
    assert returns.min() >= 0  # never what is not legal
    assert returns[:20].mean() < 2.2
    assert returns[-40:].mean() > 2.5


@pytest.mark.parametrize(
    "learn", [ppo_on_cartpole, pytest.param(ppo_on_two_states, marks=pytest.mark.release)]
)
def test_the_policy_is_read_back_and_described(learn, tmp_path):
    result = learn(runs=2, checkpoint=tmp_path)
    saved = load_policy(tmp_path, 1)
    assert saved.policy.softmax == saved.softmax == Boltzmann(1.0)
    for x, y in zip(
        jax.tree.leaves(saved.policy.network),
        jax.tree.leaves(result.policies.network),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y[1])
    rows = dict(describe_training(sorted(tmp_path.glob("runs-*.npz"))).rows)
    assert rows["training"].startswith("PPO in ")
    assert rows["segment"] == "8 steps of 2 environments, 2 epochs in 4 minibatches"
    if learn is ppo_on_two_states:
        played = evaluate(saved.policy, two_state.params(), episodes=8, max_steps=32)
        assert played.returns.shape == (8,)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (ppo(Mellowmax(1.0), 0.01, **PPO["small"]), "`softmax` was 'Boltzmann' and is 'Mellowmax'"),
        (ppo(Boltzmann(1.0), 0.01, **PPO["small"], clip=0.1), "`clip` was 0.2 and is 0.1$"),
        (ppo(Boltzmann(1.0), 0.01, **PPO["small"], value_clip=9), ".*value_clip"),
        (ppo(Boltzmann(1.0), 0.01, **PPO["small"] | {"epochs": 3}), "`epochs` was 2 and is 3$"),
        (reinforce(Boltzmann(1.0), 0.01), ".*`algorithm` was 'ppo' and is 'reinforce'"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_training_is_refused(learner, message, tmp_path):
    ppo_on_two_states(checkpoint=tmp_path, steps=16)
    rule = "^`checkpoint` must be of a training with the same settings, got another in '.*npz': "
    with pytest.raises(ValueError, match=rule + message):
        train(learner, two_state.params(), max_steps=32, steps=16, checkpoint=tmp_path)


@pytest.mark.parametrize("learn", [ppo_on_two_states, ppo_on_cartpole])
def test_what_diverges_is_said_and_can_still_be_read(learn, tmp_path):
    message = "^the training has diverged: run 0 has a weight or a reward that is not finite after"
    for _ in range(2):
        with pytest.raises(FloatingPointError, match=message):
            learn(rate=1e38, steps=400, checkpoint=tmp_path)
        network = load_policy(tmp_path).policy.network
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(network))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"softmax": 3}, "`softmax` must be a Softmax such as Mellowmax(8.0), got 3"),
        (
            {"softmax": Max()},
            "`softmax` must have a policy that changes with the network's weights, smoothly; got "
            "Max(), whose gradient is 0 wherever it exists, so that PPO learns nothing",
        ),
        ({"learning_rate": -1.0}, "`learning_rate` must be in [0, inf], got -1.0"),
        ({"discount": 1.5}, "`discount` must be in [0, 1], got 1.5"),
        ({"trace": 1.1}, "`trace` must be in [0, 1], got 1.1"),
        ({"clip": -0.1}, "`clip` must be in [0, inf], got -0.1"),
        ({"entropy": -1.0}, "`entropy` must be in [0, inf], got -1.0"),
        ({"value_clip": -1.0}, "`value_clip` must be in [0, inf], got -1.0"),
        ({"environments": 0}, "`environments` must be a whole number of at least 1, got 0"),
        ({"steps": 1.5}, "`steps` must be a whole number of at least 1, got 1.5"),
        ({"epochs": 0}, "`epochs` must be a whole number of at least 1, got 0"),
        ({"minibatches": 3}, "`minibatches` must divide the 512 steps of a segment, got 3"),
        (
            {"minibatches": 512},
            "`minibatches` must be at most half of the 512 steps of a segment, got 512",
        ),
        ({"optimiser": 3}, "`optimiser` must be an optax transformation, got 3"),
    ],
)
def test_a_bad_argument_is_one_sentence(arguments, message):
    with pytest.raises((ValueError, TypeError)) as error:
        ppo(**{"softmax": Boltzmann(1.0), **arguments})
    assert str(error.value) == message


def test_a_setting_does_not_depend_on_the_grid_around_it():
    grid = ppo_on_two_states(Boltzmann(np.array([[1.0], [3.0]])), np.array([0.01, 0.05]), runs=2)
    alone = ppo_on_two_states(Boltzmann(3.0), 0.05, runs=[1])
    most = alone.returns.shape[-1]
    assert np.isnan(grid.returns[1, 1, 1, most:]).all()
    np.testing.assert_array_equal(grid.returns[1, 1, 1, :most], alone.returns[0])
    for x, y in zip(*map(jax.tree.leaves, (grid.policies, alone.policies)), strict=True):
        np.testing.assert_array_equal(x[1, 1, 1], y[0])


@pytest.mark.release
@pytest.mark.parametrize("softmax", [Boltzmann(1.0), Mellowmax(2.0)])
def test_cartpole_is_learned(softmax):
    """CleanRL reports 490 +- 6 after 500,000 steps; at random it is 22.

    After 150,000 steps in the compiled environment, 24 other runs earned 357 on average, with a
    standard deviation of 62: the mean of 4 is below 250 less than once in 1000 times.
    """
    result = train(ppo(softmax), "CartPole-v1", steps=150_000, runs=4, seed=2, workers=0)
    last = [run[np.isfinite(run)][-100:].mean() for run in result.returns]
    print(last)
    assert np.mean(last) > 250


def test_runs_are_different(tmp_path):
    result = ppo_on_two_states(runs=3)
    weights = {x.tobytes() for x in result.policies.network.layers[0].weight}
    assert len(weights) == 3
    assert_same(ppo_on_two_states(runs=3), result)
