"""Landers of Gymnasium and ours side by side, in one compiled program for all tests."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.environments import lunar_lander
from mellowmax.environments.gymnasium import Height2016
from mellowmax.environments.lunar_lander import environment, gymnasium
from mellowmax.environments.lunar_lander.game import reward
from mellowmax.environments.lunar_lander.state import Dispersion, Inputs

COUNT = 16
"""The number of landers, the same in every test, so that one program serves all."""
FORCE = 1000.0


class Recorded:
    """A generator of random numbers that keeps a record of them."""

    def __init__(self, seed):
        self.rng, self.given = np.random.default_rng(seed), []

    def uniform(self, low, high, size=None):
        self.given.append(self.rng.uniform(low, high, size))
        return self.given[-1]

    def integers(self, low, high):
        self.given.append(self.rng.integers(low, high))
        return self.given[-1]

    def take(self):
        given, self.given = self.given, []
        return given


class Pair:
    """Equally many of Gymnasium's landers and of ours, with the same random numbers."""

    def __init__(self, seeds, height="v3", wind=False):
        gymnasium = pytest.importorskip("gymnasium")
        pytest.importorskip("Box2D")
        self.program = compiled(height, wind)
        make = functools.partial(gymnasium.make, "LunarLander-v3", enable_wind=wind)
        self.theirs = [make().unwrapped for _ in seeds]
        wrap = Height2016 if height == "2016" else lambda lander: lander
        self.wrapped = [wrap(lander) for lander in self.theirs]
        uniforms, dispersion, self.seen = [], [], []
        for lander, wrapped, seed in zip(self.theirs, self.wrapped, seeds, strict=True):
            lander._np_random = Recorded(seed)
            self.seen.append(wrapped.reset()[0])
            heights, x, y, *gusts, one, two = lander._np_random.take()
            push = [(force + FORCE) / (2 * FORCE) for force in (x, y)]
            # The middle of the interval that becomes the same whole number.
            gusts = [(number + 9999.5) / 19998 for number in gusts] or [0.5, 0.5]
            uniforms.append([*(heights / (400 / 60)), *push, *gusts])
            dispersion.append([one, two])
        state = environment.start(list(np.transpose(uniforms).astype(np.float32)))
        self.ours = self.program(state, np.zeros(COUNT, np.int32), *np.float32(dispersion).T)

    def step(self, actions, state=None, our_actions=None):
        """Take a step on both sides: the results of Gymnasium, as arrays."""
        our_actions = actions if our_actions is None else our_actions
        results = [
            lander.step(int(action))[:3]
            for lander, action in zip(self.wrapped, actions, strict=True)
        ]
        dispersion = np.float32([lander._np_random.take() for lander in self.theirs])
        state = self.ours.state if state is None else state
        self.ours = self.program(state, np.asarray(our_actions, np.int32), *dispersion.T)
        return [np.array(each) for each in zip(*results, strict=True)]


@functools.cache
def compiled(height="v3", wind=False):
    gusts = {"wind_power": 15.0, "turbulence_power": 1.5} if wind else {}
    world = environment.world(lunar_lander.params(height=height, **gusts))
    world = jax.tree.map(lambda x: jnp.broadcast_to(x, (COUNT,)), world)
    step = gymnasium._step_all  # which is compiled once, for the tests of both

    def program(state, action, along, across):
        # Nothing may be promoted by accident.
        with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
            return step(state, Inputs(action, Dispersion(along, across), world))

    return program


@pytest.fixture(scope="session")
def program():
    """A step of `COUNT` landers."""
    return compiled()


@pytest.fixture(scope="session")
def pair():
    """The class that makes Gymnasium's landers and ours from seeds."""
    return Pair


@pytest.fixture(scope="session")
def observed():
    """The observations of landers, `[n, 8]`, as a function of their state."""

    def see(state, metres=400 / 60):
        seen = reward.observation(state, np.float32(metres))
        return np.stack([np.asarray(x) for x in seen], -1)

    return see
