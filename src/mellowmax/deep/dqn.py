"""Deep Q-learning, which learns from single steps, with any softmax in the targets.

A network estimates the action values `Q(s, .)`, and actions are epsilon-greedy in them. Every step
goes into a replay buffer. Every few steps the network is updated on a minibatch from the buffer,
towards the target

    r + discount * softmax.value(Q'(s', .)),        which is r alone where the episode ended.

`Q'` is the target network: a copy of the network that is renewed every `target` updates, or the
network itself. With `Max` and a copy this is DQN. With `Mellowmax` and no copy it is DeepMellow,
whose authors found the copy dispensable: mellowmax is a non-expansion, it moves smoothly with the
estimates, and it is below their maximum, which is biased upwards. With `LogSumExp` it is soft
deep Q-learning, but for the actions, which are epsilon-greedy here too: the value has the softmax's
bonus in it, so nothing else changes.

Two options change the target. `double` lets the network itself choose the next action, and the
target network say what it is worth. `munchausen` adds a part of the advantage of the action that
was taken. A third, duelling, is a matter of the network: `mlp(64, 2, duelling=True)`.

The methods of `Dqn` are pure functions of one run; they do not know where the steps come from.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import field
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._common import checks
from .._common.discount import DEFAULT
from .._rows.arguments import check_parameter
from .._typing import ArrayLike, PyTree
from ..softmax import EpsilonGreedy, Max, Softmax
from .learner import STATIC
from .network import Policy, mlp
from .observation import as_shapes, unmasked, values_in, vector
from .optimiser import ADAM, Weights, learning_rate_for, step
from .replay import Replay, Transitions, learn_when_due
from .schedule import Linear, first_of, now
from .trainable import MakeNetwork, check_draws, draw, example

__all__ = ["LEARNING_RATE", "Dqn", "DqnState", "dqn"]

LEARNING_RATE = 1e-3
DEFAULT_NETWORK = mlp(64, 2)
LOWEST_ADVANTAGE = -1.0
"""The lowest advantage that `munchausen` adds a part of."""


class DqnState(eqx.Module):
    """The state of a run: its networks, its optimiser and its replay buffer."""

    network: Any
    """The network of the action values: a `Network` or a `Trainable`."""
    target: Any | None
    """The copy that the targets are computed with; None for the network itself."""
    optimiser: optax.OptState
    """The state of the optimiser."""
    updates: jax.Array
    """The number of updates so far."""
    finite: jax.Array
    """Have all weights and rewards been finite so far? If not, the run has ended; the update that
    would have made a weight infinite or NaN was not made."""
    replay: Replay
    """The replay buffer, which also counts the steps of the run."""

    @property
    def trained(self) -> Weights:
        """All that the optimiser changes."""
        return self.network


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Dqn:
    """A learner; made by `dqn`. Its methods are pure functions of one run."""

    learns_from: ClassVar[Literal["steps"]] = "steps"
    batch: ClassVar[int] = 1

    softmax: Any
    learning_rate: Any
    discount: jax.Array | float | None
    target: jax.Array | float | None
    network: MakeNetwork = field(metadata=STATIC)
    capacity: int = field(metadata=STATIC)
    minibatch: int = field(metadata=STATIC)
    learning_starts: int = field(metadata=STATIC)
    train_frequency: int = field(metadata=STATIC)
    first_epsilon: float = field(metadata=STATIC)
    last_epsilon: float = field(metadata=STATIC)
    exploration_steps: int = field(metadata=STATIC)
    huber: float = field(metadata=STATIC)
    optimiser: optax.GradientTransformation = field(metadata=STATIC)
    double: bool = field(default=False, metadata=STATIC)
    munchausen: jax.Array | float | None = None

    def init(self, key: jax.Array, observation: int | PyTree, n_actions: int) -> DqnState:
        """The initial state of a run.

        Args:
            key: a JAX key.
            observation: the shapes and dtypes of an observation, a tree of `jax.ShapeDtypeStruct`
                or an example; a number is the size of a vector.
            n_actions: how many actions there are.
        """
        seen = as_shapes(observation)
        network: Weights = draw(self.network, key, seen, n_actions)
        return DqnState(
            network,
            None if self.target is None else network,
            self.optimiser.init(network),
            jnp.uint32(0),
            jnp.bool_(True),
            Replay.empty(self.capacity, seen),
        )

    def policy(self, state: DqnState) -> Policy:
        """The policy that has been learned: the greedy one."""
        return Policy(state.network, Max())

    def epsilon(self, step: jax.Array) -> jax.Array:
        """The probability of a random action at a step of the run."""
        progress = jnp.minimum(step.astype(jnp.float32) / max(1, self.exploration_steps), 1)
        return self.first_epsilon + progress * (self.last_epsilon - self.first_epsilon)

    def act(
        self, network: Weights, step: jax.Array, uniform: jax.Array, observation: PyTree
    ) -> jax.Array:
        """The epsilon-greedy action that a uniform random number chooses.

        Args:
            network: the network of the action values.
            step: how many steps the run has taken.
            uniform: the random number, in [0, 1).
            observation: the observation before the action.
        """
        return Policy(network, EpsilonGreedy(self.epsilon(step))).act(uniform, observation)

    def learn(self, state: DqnState, key: jax.Array, stepped: jax.Array | bool = True) -> DqnState:
        """Make an update, if the number of steps in the replay buffer makes one due.

        Args:
            state: what has been learned so far.
            key: a JAX key, which draws the minibatch.
            stepped: was a step added to the buffer since the last call?
        """
        return learn_when_due(self, state, key, stepped)

    def update(self, state: DqnState, steps: Transitions) -> DqnState:
        """The state after a step of the optimiser.

        Args:
            state: what has been learned so far.
            steps: a minibatch.
        """
        targets = self.targets(state, steps)
        descent = jax.grad(self.loss)(state.network, steps, targets)
        rate = now(self, state.updates).learning_rate
        network, optimiser = step(self.optimiser, rate, descent, state.optimiser, state.network)
        updates = state.updates + jnp.uint32(1)
        target = state.target
        if target is not None:
            renewed = updates % jnp.asarray(self.target).astype(jnp.uint32) == 0
            target = jax.tree.map(lambda x, y: jnp.where(renewed, x, y), network, target)
        return DqnState(network, target, optimiser, updates, state.finite, state.replay)

    def targets(self, state: DqnState, steps: Transitions) -> jax.Array:
        """The targets of the values of the actions taken, `[B]`."""
        self = now(self, state.updates)
        network = state.network if state.target is None else state.target
        values, legal = values_in(network, steps.next_observation)
        if self.double:
            own, _ = values_in(state.network, steps.next_observation)
            policy = self.softmax.policy(own, where=legal)
            next_value = self.softmax.value(own, where=legal) + (policy * (values - own)).sum(-1)
        else:
            next_value = self.softmax.value(values, where=legal)
        reward = steps.reward
        if self.munchausen is not None:
            here, legal = values_in(network, steps.observation)
            advantage = _taken(here, steps.action) - self.softmax.value(here, where=legal)
            reward = reward + self.munchausen * jnp.clip(advantage, LOWEST_ADVANTAGE, 0)
        discount = jnp.asarray(DEFAULT if self.discount is None else self.discount, jnp.float32)
        return reward + discount * jnp.where(steps.terminated, 0, next_value)

    def loss(self, network: Weights, steps: Transitions, targets: jax.Array) -> jax.Array:
        """The mean Huber loss: half the squared error, and linear for errors beyond `huber`."""
        values = jax.vmap(network)(unmasked(steps.observation))
        errors = _taken(values, steps.action) - targets
        clipped = jnp.clip(errors, -self.huber, self.huber)
        return (clipped * (errors - clipped / 2)).mean()


def _taken(values: jax.Array, action: jax.Array) -> jax.Array:
    """The values of the actions that were taken, `[B]`."""
    taken = jax.nn.one_hot(action, values.shape[-1], dtype=values.dtype)
    return (values * taken).sum(-1)


def dqn(
    softmax: Softmax | Linear,
    learning_rate: ArrayLike | Linear | None = None,
    *,
    discount: ArrayLike | None = None,
    target: ArrayLike | None = None,
    double: bool = False,
    munchausen: ArrayLike | None = None,
    network: MakeNetwork = DEFAULT_NETWORK,
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
    which has none. While they learn, their actions are epsilon-greedy; the policy that is learned
    is the greedy one.

    Args:
        softmax: any softmax. Its value, with its bonus where it has one, replaces DQN's maximum;
            its policy is not used.
        learning_rate: multiplies the optimiser's steps; None for 0.001, or for the optimiser's own
            learning rate if it has one.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        target: the number of updates after which the target network is renewed; None for no target
            network. In an array of settings 1 is the same as None.
        double: does the network choose the next action, which the target network then evaluates?
            With `Max` this is double DQN. With any softmax the next value is the mean of the target
            network's values under the softmax's policy of the network's own, plus the softmax's
            bonus. There must be a `target`.
        munchausen: the weight of the advantage `Q'(s, a) - softmax.value(Q'(s, .))` of the action
            taken, cut off below -1 and above 0, which is added to the reward; None for no such
            term. With `LogSumExp` this is Munchausen DQN (0.9 there), since the advantage is then
            the logarithm of the policy over beta.
        network: a function of a key, the shapes of an observation (a tree of
            `jax.ShapeDtypeStruct`) and the number of actions, which draws an Equinox module from
            one observation to the action values, such as the class of such a module; by default
            `mlp(64, 2)`.
        capacity: steps that the replay buffer can hold.
        minibatch: steps in an update.
        learning_starts: steps of a run before its first update.
        train_frequency: steps from one update to the next.
        first_epsilon: the probability of a random action at the first step of a run.
        last_epsilon: the probability from the step `exploration_steps` on; before, it falls
            linearly.
        exploration_steps: steps from the first epsilon to the last.
        huber: the error up to which the loss is half its square; beyond, it is linear. Infinity is
            the squared loss, as in CleanRL; Stable-Baselines3 uses 1. Without a target network
            learning may diverge at a small value, which corrects large errors slowly.
        optimiser: an optax transformation, with or without a learning rate of its own:
            `optax.adam(0.02)`, for which `learning_rate` must be None, or `optax.scale_by_adam()`,
            which it multiplies. The optimiser is tried out on a gradient to see which it is.
            Transformations can be chained:
            `optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.02))`.

    The softmax and the learning rate may change while a run learns: see `linear`.

    Arrays of parameters, learning rates, discounts and targets that broadcast against each other
    make a grid of settings, each of which `train` runs.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> learner = dqn(Mellowmax(5.0), capacity=100)
        >>> state = learner.init(jax.random.key(0), observation=4, n_actions=2)
        >>> state.target is None, state.replay.rows["float32"].shape
        (True, (100, 11))

    References:
        Mnih et al., "Human-level control through deep reinforcement learning" (2015). Kim, Asadi,
        Littman and Konidaris, "DeepMellow: Removing the Need for a Target Network in Deep
        Q-Learning" (IJCAI 2019). Van Hasselt, Guez and Silver, "Deep reinforcement learning with
        double Q-learning" (AAAI 2016). Vieillard, Pietquin and Geist, "Munchausen reinforcement
        learning" (NeurIPS 2020).
    """
    checks.instance("softmax", first_of(softmax), Softmax, "a Softmax such as Mellowmax(5.0)")
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    if target is not None:
        check_parameter("target", target, 1.0)
        if (np.asarray(target) % 1).any():
            raise ValueError(f"`target` must be None or whole numbers, got {target!r}")
    if double and target is None:
        raise ValueError("`target` must be given for `double`, got None")
    if munchausen is not None:
        check_parameter("munchausen", munchausen, 0.0, 1.0)
    check_draws(network)
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
        network=network,
        capacity=checks.whole("capacity", capacity, 1),
        minibatch=checks.whole("minibatch", minibatch, 1),
        learning_starts=checks.whole("learning_starts", learning_starts, 0),
        train_frequency=checks.whole("train_frequency", train_frequency, 1),
        first_epsilon=checks.real("first_epsilon", first_epsilon, 0.0, 1.0),
        last_epsilon=checks.real("last_epsilon", last_epsilon, 0.0, 1.0),
        exploration_steps=checks.whole("exploration_steps", exploration_steps, 0),
        huber=huber,
        optimiser=optimiser,
        double=bool(double),
        munchausen=array(munchausen),
    )
    weights = functools.partial(draw, example(network), jax.random.key(0), vector(2), 2)
    rate = learning_rate_for(optimiser, learning_rate, LEARNING_RATE, weights)
    return dataclasses.replace(learner, learning_rate=rate)
