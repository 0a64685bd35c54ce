"""Segments: what a run learns from, and that it learns the same however it plays."""

from __future__ import annotations

import collections
import dataclasses
import signal

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.trainings import PPO, assert_same, ppo_on_cartpole, ppo_on_two_states
from mellowmax import Boltzmann
from mellowmax.deep import FunctionalEnvironment, VectorEnvironment, ppo, train
from mellowmax.deep.play import segments_functional, segments_gymnasium

BOTH = pytest.mark.parametrize("learn", [ppo_on_two_states, ppo_on_cartpole])


def shortened(result, episodes):
    """The first episodes of each run of a result."""
    return dataclasses.replace(
        result, returns=result.returns[:, :episodes], lengths=result.lengths[:, :episodes]
    )


@BOTH
def test_a_run_is_the_same_alone_and_among_others(learn):
    among, alone = learn(runs=3), learn(runs=[2])
    assert_same(alone, shortened(among, alone.returns.shape[1]), 0, 2)


@BOTH
def test_a_training_that_was_stopped_is_resumed_as_if_it_had_not_been(learn, tmp_path):
    """In the middle of episodes, and after fewer steps than were wanted in the end."""
    whole = learn(runs=2, seed=4)
    for _ in range(2):
        part = learn(
            runs=2, seed=4, checkpoint=tmp_path / "stopped", callback=lambda progress: True
        )
        assert np.isfinite(part.returns).sum() < np.isfinite(whole.returns).sum()
    assert_same(learn(runs=2, seed=4, checkpoint=tmp_path / "stopped"), whole)
    for steps in (100, 100, 320):  # 100 are no whole segments: there are more when it is done
        more = learn(runs=2, seed=4, steps=steps, checkpoint=tmp_path / "more")
    assert_same(more, whole)
    with pytest.raises(ValueError, match=r"^`steps` must be no fewer than the checkpoint has"):
        learn(runs=2, seed=4, steps=100, checkpoint=tmp_path / "more")


class Noisy:
    """Five steps, rewarded at random with a key that is in the state, as some environments have."""

    @staticmethod
    def reset(key, params):
        return key, jnp.int32(0)

    @staticmethod
    def step(key, state, action, params):
        own, number = state
        own, drawn = jax.random.split(own)
        return (own, number + 1), jax.random.normal(drawn), number >= 4

    @staticmethod
    def observe(state, params):
        return jax.nn.one_hot(state[1], 5)


def test_an_environment_whose_state_has_a_key_is_resumed(tmp_path):
    params = collections.namedtuple("Params", "n_actions")(2)
    environment = FunctionalEnvironment(Noisy, params)
    learner = ppo(Boltzmann(1.0), **PPO["small"])
    for steps in (16, 48):
        part = train(learner, environment, steps=steps, checkpoint=tmp_path)
    assert_same(part, train(learner, environment, steps=48))


def test_a_training_in_a_vector_environment_is_resumed_in_the_middle_of_its_episodes(tmp_path):
    """Which have had different numbers of steps, though Gymnasium's step all environments."""

    def make(count):
        mode = gymnasium.vector.AutoresetMode.DISABLED
        return gymnasium.make_vec(
            "CartPole-v1", count, "sync", vector_kwargs={"autoreset_mode": mode}
        )

    environment = VectorEnvironment(make, max_steps=60)
    options = {"environment": environment, "workers": None, "max_steps": None}
    for steps in (100, 320):
        part = ppo_on_cartpole(**options, steps=steps, checkpoint=tmp_path)
    assert_same(part, ppo_on_cartpole())


def test_runs_side_by_side_in_one_program_learn_what_they_learn_alone(monkeypatch):
    """As on an accelerator, in a block with more lanes than runs; up to rounding, on a CPU.

    XLA's threads on a CPU were once seen to wait for each other for ever in a program of several
    runs, so there is a time limit.
    """
    alone = ppo_on_two_states(runs=3)
    monkeypatch.setattr(segments_functional.FunctionalSegments, "width", lambda *arguments: 4)

    def too_long(*_):
        raise TimeoutError("a program of several runs takes more than two minutes")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(120)
    try:
        result = ppo_on_two_states(runs=3)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(result.lengths, alone.lengths)
    for x, y in zip(jax.tree.leaves(result.policies), jax.tree.leaves(alone.policies), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)


class Counting:
    """Count to 3, or until it is cut off; the reward is the number before the step."""

    @staticmethod
    def reset(key, params):
        return jnp.float32(0)

    @staticmethod
    def step(key, number, action, params):
        return number + 1, number, number + 1 >= params.last

    @staticmethod
    def observe(number, params):
        return number[None]


class CountingInGymnasium(gymnasium.Env):
    """The same."""

    observation_space = gymnasium.spaces.Box(0.0, 100.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, last):
        self.last = last

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.number += 1
        ended = self.number >= self.last
        return np.float32([self.number]), float(self.number - 1), ended, False, {}


@pytest.mark.parametrize("kind", ["functional", "Gymnasium"])
@pytest.mark.parametrize(("last", "max_steps"), [(3, 9), (9, 3)], ids=["ends", "cuts"])
def test_a_segment_has_what_was_played_in_order(kind, last, max_steps, monkeypatch):
    """Episodes of three steps, segments of four; a step leads to its own episode's next number."""
    seen = []
    if kind == "functional":
        params = collections.namedtuple("Params", "last n_actions")(last, 2)
        environment = FunctionalEnvironment(Counting, params, max_steps=max_steps)
        module, options = segments_functional, {}
    else:
        environment, module = lambda: CountingInGymnasium(last), segments_gymnasium
        options = {"workers": 0, "max_steps": max_steps}

    def learn(learner, state, key, segment):
        jax.debug.callback(lambda *x: seen.append(x), *segment.steps, segment.ended, ordered=True)
        return dataclasses.replace(state, updates=state.updates + 1), jnp.bool_(True)

    monkeypatch.setattr(module, "learn", learn)
    monkeypatch.setattr(segments_functional, "SEGMENTS", 1)  # or some would be played in vain
    own = optax.adam(1e-3)  # of this test alone, and so are the programs, which have this `learn`
    learner = ppo(Boltzmann(1.0), optimiser=own, environments=2, steps=4, **PPO["linear"])
    result = train(learner, environment, steps=24, **options)
    before, _, reward, terminated, after, ended = (
        np.concatenate(x).T[0] if np.ndim(x[0]) == 3 else np.concatenate(x).T
        for x in zip(*seen, strict=True)
    )
    cycle = np.tile([0, 1, 2], 4)
    for place in range(2):
        np.testing.assert_array_equal(before[place], cycle)
        np.testing.assert_array_equal(reward[place], cycle)
        np.testing.assert_array_equal(after[place], cycle + 1)
        np.testing.assert_array_equal(ended[place], cycle == 2)
        np.testing.assert_array_equal(terminated[place], (cycle == 2) & (last == 3))
    np.testing.assert_array_equal(result.lengths, np.full((1, 8), 3))
    np.testing.assert_array_equal(result.returns, np.full((1, 8), 3.0))


def test_a_run_in_another_process_is_the_same():
    assert_same(ppo_on_cartpole(workers=1), ppo_on_cartpole())
