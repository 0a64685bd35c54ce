"""Small trainings and policies: one learner and one size of network for each kind of environment.

What has been compiled for one test serves all. The softmax is Boltzmann's unless it matters:
mellowmax's gradient takes ten times as long to compile.
"""

from __future__ import annotations

import functools

import jax
import numpy as np

from mellowmax import Boltzmann, Mellowmax
from mellowmax.deep import Network, Policy, dqn, mlp, ppo, reinforce, sac, train
from mellowmax.deep.optimiser import ADAM
from mellowmax.environments import two_state

SOFTMAX = Boltzmann(1.0)
CARTPOLE = functools.partial(reinforce, batch=4, baseline="leave-one-out", normalise=True)
TABULAR = functools.partial(reinforce, batch=4, baseline="network", discount=1.0)
Q_SOFTMAX = Mellowmax(5.0)
Q_LEARNING = {
    "network": mlp(8, 1),
    "capacity": 50,
    "minibatch": 8,
    "learning_starts": 20,
    "train_frequency": 3,
    "exploration_steps": 100,
}


SOFT = {
    name: Q_LEARNING[name]
    for name in ("network", "capacity", "minibatch", "learning_starts", "train_frequency")
}
SMALL = {"environments": 2, "steps": 8, "epochs": 2, "minibatches": 4}
PPO = {
    "small": SMALL | {"network": mlp(8, 1)},
    "linear": {"network": mlp(1, 0)},
}


def on_cartpole(softmax=SOFTMAX, rate=0.02, *, discount=None, **options):
    """In a Gymnasium environment; episodes of at most 256 steps need one program."""
    options = {"environment": "CartPole-v1", "workers": 0, "max_steps": 256, **options}
    return train(CARTPOLE(softmax, rate, discount=discount), **options)


def on_two_states(softmax=SOFTMAX, rate=0.05, *, optimiser=ADAM, discount=1.0, **options):
    """In a functional environment."""
    options = {"environment": two_state.params(), "max_steps": 32, **options}
    return train(TABULAR(softmax, rate, optimiser=optimiser, discount=discount), **options)


def q_on_two_states(softmax=Q_SOFTMAX, rate=0.01, *, target=None, **options):
    """Deep Q-learning in a functional environment."""
    learner = dqn(softmax, rate, target=target, **Q_LEARNING)
    options = {"environment": two_state.params(), "max_steps": 32, "episodes": 40, **options}
    return train(learner, **options)


def q_on_cartpole(softmax=Q_SOFTMAX, rate=0.01, **options):
    """Deep Q-learning in a Gymnasium environment."""
    options = {
        "environment": "CartPole-v1",
        "workers": 0,
        "max_steps": 60,
        "episodes": 8,
        **options,
    }
    return train(dqn(softmax, rate, **Q_LEARNING), **options)


def ppo_on_two_states(softmax=SOFTMAX, rate=0.01, **options):
    """PPO in a functional environment."""
    learner = ppo(softmax, rate, **PPO["small"])
    options = {"environment": two_state.params(), "max_steps": 32, "steps": 320, **options}
    return train(learner, **options)


def ppo_on_cartpole(softmax=SOFTMAX, rate=0.01, **options):
    """PPO in a Gymnasium environment."""
    learner = ppo(softmax, rate, **PPO["small"])
    options = {
        "environment": "CartPole-v1",
        "workers": 0,
        "max_steps": 60,
        "steps": 320,
        **options,
    }
    return train(learner, **options)


def sac_on_two_states(softmax=SOFTMAX, rate=0.01, *, temperature=None, **options):
    """Soft actor-critic in a functional environment."""
    learner = sac(softmax, rate, temperature=temperature, **SOFT)
    options = {"environment": two_state.params(), "max_steps": 32, "steps": 200, **options}
    return train(learner, **options)


def assert_same(one, other, at=..., other_at=...):
    """Bit for bit: the returns, the lengths and the weights of some runs of two trainings."""
    for x, y in (
        (one.returns, other.returns),
        (one.lengths, other.lengths),
        *zip(
            jax.tree.leaves(one.policies.network),
            jax.tree.leaves(other.policies.network),
            strict=True,
        ),
    ):
        np.testing.assert_array_equal(x[at], y[other_at])


def table_policy(table):
    """A policy that has these probabilities in states that are one-hot."""
    n_states, n_actions = table.shape
    shapes = jax.eval_shape(lambda: Network.init(jax.random.key(0), (n_states, 16, n_actions)))
    identity, zero = np.eye(16, n_states, dtype=np.float32), np.zeros(16, np.float32)
    outputs = np.zeros((n_actions, 16), np.float32)
    outputs[:, :n_states] = np.log(table).T
    layers = [identity, zero, outputs, np.zeros(n_actions, np.float32)]
    return Policy(jax.tree.unflatten(jax.tree.structure(shapes), layers), Boltzmann(1.0))
