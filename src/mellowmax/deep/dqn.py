"""Deep Q-learning, which learns from single steps, with any softmax in the targets.

A network estimates the action values `Q(s, .)`. It plays epsilon-greedily; every step goes into a
replay buffer, and every few steps the network is moved, on a minibatch from the buffer, towards

    r + discount * softmax.value(Q'(s', .)),        and towards r alone where the episode ended.

`Q'` is the target network, a copy of the network that is renewed every so many updates, or the
network itself. With `Max` and a target network this is DQN. With `Mellowmax` and none it is
DeepMellow, whose authors found the copy dispensable: mellowmax is a non-expansion that moves
smoothly with the estimates, and it falls short of their maximum, which is biased upwards.

`Dqn` is pure functions of one run; it does not know where the steps come from.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .._common import checks
from .._common.discount import DEFAULT
from .._rows.arguments import check_parameter
from .._typing import ArrayLike
from ..softmax import EpsilonGreedy, Max, Softmax
from .network import Network, Policy
from .optimiser import ADAM, learning_rate_for, step
from .replay import Replay, Transitions

__all__ = ["LEARNING_RATE", "Dqn", "DqnState", "dqn"]

LEARNING_RATE = 1e-3


class DqnState(eqx.Module):
    """The state of a run: its networks, its optimiser and its replay buffer."""

    network: Network
    """The action values."""
    target: Network | None
    """The copy that the targets are made with; None for the network itself."""
    optimiser: Any
    """The state of the optimiser."""
    updates: jax.Array
    """How many there have been."""
    sound: jax.Array
    """Has everything been finite so far? An update by which a weight would not be is not made, and
    the run has ended."""
    replay: Replay
    """It counts the steps of the run, too."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["softmax", "learning_rate", "discount", "target"],
    meta_fields=[
        "hidden",
        "depth",
        "capacity",
        "minibatch",
        "learning_starts",
        "train_frequency",
        "first_epsilon",
        "last_epsilon",
        "exploration_steps",
        "huber",
        "optimiser",
    ],
)
@dataclasses.dataclass(frozen=True)
class Dqn:
    """A learner; made by `dqn`. Its methods are pure functions of one run."""

    softmax: Softmax
    learning_rate: jax.Array | float | None
    discount: jax.Array | float | None
    target: jax.Array | float | None
    hidden: int
    depth: int
    capacity: int
    minibatch: int
    learning_starts: int
    train_frequency: int
    first_epsilon: float
    last_epsilon: float
    exploration_steps: int
    huber: float
    optimiser: optax.GradientTransformation

    @property
    def batch(self) -> int:
        """How many episodes are logged at a time: each for itself."""
        return 1

    def init(self, key: jax.Array, n_observations: int, n_actions: int) -> DqnState:
        """The initial state of a run.

        Args:
            key: a JAX key.
            n_observations: the size of an observation.
            n_actions: how many actions there are.
        """
        network = self._network(key, n_observations, n_actions)
        return DqnState(
            network,
            None if self.target is None else network,
            self.optimiser.init(network),
            jnp.uint32(0),
            jnp.bool_(True),
            Replay.empty(self.capacity, n_observations),
        )

    def _network(self, key: jax.Array, n_observations: int, n_actions: int) -> Network:
        return Network.init(key, (n_observations, *[self.hidden] * self.depth, n_actions))

    def policy(self, state: DqnState) -> Policy:
        """The policy that has been learned: the greedy one."""
        return Policy(state.network, Max())

    def epsilon(self, step: jax.Array) -> jax.Array:
        """The probability of a random action at a step of the run."""
        share = jnp.minimum(step.astype(jnp.float32) / max(1, self.exploration_steps), 1)
        return self.first_epsilon + share * (self.last_epsilon - self.first_epsilon)

    def act(
        self, network: Network, step: jax.Array, uniform: jax.Array, seen: jax.Array
    ) -> jax.Array:
        """The action, epsilon-greedily, that a random number from 0 to 1 decides on.

        Args:
            network: of what has been learned so far.
            step: how many steps the run has taken.
            uniform: the random number.
            seen: what is seen before the action, `[D]`.
        """
        return Policy(network, EpsilonGreedy(self.epsilon(step))).act(uniform, seen)

    def learn(self, state: DqnState, key: jax.Array, stepped: jax.Array | bool = True) -> DqnState:
        """An update, if the steps that were recorded make one due.

        Args:
            state: what has been learned so far.
            key: a JAX key, which draws the minibatch.
            stepped: was a step recorded since the last time?
        """
        steps = state.replay.count
        due = stepped & state.sound & (steps % jnp.uint32(self.train_frequency) == 0)
        due &= steps >= jnp.uint32(max(1, self.learning_starts))

        # The buffer is not among what is chosen from: it would be copied.
        def update(rest: DqnState) -> DqnState:
            learned = self.update(rest, state.replay.sample(key, self.minibatch))
            leaves = jax.tree.leaves(learned.network)
            sound = jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()
            kept: DqnState = jax.tree.map(lambda x, y: jnp.where(sound, x, y), learned, rest)
            return dataclasses.replace(kept, sound=sound)

        rest = dataclasses.replace(state, replay=None)  # type: ignore[arg-type]
        learned: DqnState = lax.cond(due, update, lambda rest: rest, rest)
        return dataclasses.replace(learned, replay=state.replay)

    def update(self, state: DqnState, steps: Transitions) -> DqnState:
        """A step of the optimiser.

        Args:
            state: what has been learned so far.
            steps: a minibatch.
        """
        targets = self.targets(state, steps)
        descent = jax.grad(self.loss)(state.network, steps, targets)
        network, optimiser = step(
            self.optimiser, self.learning_rate, descent, state.optimiser, state.network
        )
        updates = state.updates + jnp.uint32(1)
        target = state.target
        if target is not None:
            renewed = updates % jnp.asarray(self.target).astype(jnp.uint32) == 0
            target = jax.tree.map(lambda x, y: jnp.where(renewed, x, y), network, target)
        return DqnState(network, target, optimiser, updates, state.sound, state.replay)

    def targets(self, state: DqnState, steps: Transitions) -> jax.Array:
        """The targets of the values of the actions taken, `[B]`."""
        network = state.network if state.target is None else state.target
        later = self.softmax.value(jax.vmap(network)(steps.after))
        discount = jnp.asarray(DEFAULT if self.discount is None else self.discount, jnp.float32)
        return steps.reward + discount * jnp.where(steps.terminated, 0, later)

    def loss(self, network: Network, steps: Transitions, targets: jax.Array) -> jax.Array:
        """The mean of Huber's loss of the errors: half their squares, and linear beyond `huber`."""
        values = jax.vmap(network)(steps.seen)
        taken = jax.nn.one_hot(steps.action, values.shape[-1], dtype=values.dtype)
        errors = (values * taken).sum(-1) - targets
        clipped = jnp.clip(errors, -self.huber, self.huber)
        return (clipped * (errors - clipped / 2)).mean()


def dqn(
    softmax: Softmax,
    learning_rate: ArrayLike | None = None,
    *,
    discount: ArrayLike | None = None,
    target: ArrayLike | None = None,
    hidden: int = 64,
    depth: int = 2,
    capacity: int = 10_000,
    minibatch: int = 64,
    learning_starts: int = 1000,
    train_frequency: int = 4,
    first_epsilon: float = 1.0,
    last_epsilon: float = 0.05,
    exploration_steps: int = 5000,
    huber: float = math.inf,
    optimiser: optax.GradientTransformation = ADAM,
) -> Dqn:
    """Deep Q-learning with the value of a softmax in its targets.

    `dqn(Max(), target=250)` is DQN with a target network; `dqn(Mellowmax(5.0))` is DeepMellow,
    which has none. All of them play epsilon-greedily while they learn, and the policy that comes of
    it is the greedy one.

    Args:
        softmax: any. Its value stands where DQN has the maximum; its policy is not used.
        learning_rate: multiplies the optimiser's steps; None for 0.001, or for that of the
            optimiser if it has one of its own.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        target: updates between two copies of the network to the target network;
            None for no target network. In an array of settings 1 is the same as None.
        hidden: units of a hidden layer.
        depth: the number of hidden layers.
        capacity: steps that the replay buffer can hold.
        minibatch: steps in an update.
        learning_starts: steps of a run before its first update.
        train_frequency: steps from one update to the next.
        first_epsilon: the probability of a random action at the first step of a run.
        last_epsilon: that from the step `exploration_steps` on; it falls linearly in between.
        exploration_steps: steps from the first epsilon to the last.
        huber: the error up to which the loss is half its square; beyond, it is linear. Infinity is
            the squared loss, as in CleanRL; Stable-Baselines3 has 1. Without a target network a
            small one may diverge: it is slow to correct estimates that are far too large.
        optimiser: of optax, with or without a learning rate of its own: `optax.adam(0.02)`, for
            which `learning_rate` must be None, or `optax.scale_by_adam()`, which it multiplies.
            Which of the two it is shows when it is tried out on a gradient. Transformations can be
            chained: `optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.02))`.

    Arrays of parameters, learning rates, discounts and targets that broadcast against each other
    make a grid of settings, each of which `train` runs.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> learner = dqn(Mellowmax(5.0), capacity=100)
        >>> state = learner.init(jax.random.key(0), n_observations=4, n_actions=2)
        >>> state.target is None, state.replay.rows.shape
        (True, (100, 11))

    References:
        Mnih et al., "Human-level control through deep reinforcement learning" (2015). Kim, Asadi,
        Littman and Konidaris, "DeepMellow: Removing the Need for a Target Network in Deep
        Q-Learning" (IJCAI 2019).
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    if target is not None:
        check_parameter("target", target, 1.0)
        if (np.asarray(target) % 1).any():
            raise ValueError(f"`target` must be None or whole numbers, got {target!r}")
    huber = checks.real("huber", huber, 0.0, infinite=True)
    if huber == 0:
        raise ValueError(f"`huber` must be above 0, got {huber!r}")

    def array(value: ArrayLike | None) -> Any:
        return np.asarray(value) if isinstance(value, list | tuple) else value

    learner = Dqn(
        softmax,
        None,
        array(discount),
        array(target),
        hidden=checks.whole("hidden", hidden, 1),
        depth=checks.whole("depth", depth, 0),
        capacity=checks.whole("capacity", capacity, 1),
        minibatch=checks.whole("minibatch", minibatch, 1),
        learning_starts=checks.whole("learning_starts", learning_starts, 0),
        train_frequency=checks.whole("train_frequency", train_frequency, 1),
        first_epsilon=checks.real("first_epsilon", first_epsilon, 0.0, 1.0),
        last_epsilon=checks.real("last_epsilon", last_epsilon, 0.0, 1.0),
        exploration_steps=checks.whole("exploration_steps", exploration_steps, 0),
        huber=huber,
        optimiser=optimiser,
    )
    weights = functools.partial(learner._network, jax.random.key(0), 2, 2)
    rate = learning_rate_for(optimiser, learning_rate, LEARNING_RATE, weights)
    return dataclasses.replace(learner, learning_rate=rate)
