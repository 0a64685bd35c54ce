"""Soft actor-critic for discrete actions, which learns from single steps.

An actor, a network with a softmax as its last layer, chooses the actions. Two critics estimate the
action values `Q(s, .)` of a problem in which the policy also earns its entropy, times a temperature
`alpha`. Every few steps all of them learn from a minibatch of a replay buffer: the critics towards

    r + discount * (sum_a policy(a | s') min Q'(s', a) + alpha * entropy(policy(. | s'))),

which is r alone where the episode ended, and the actor up the gradient of

    sum_a policy(a | s) min Q(s, a) + alpha * entropy(policy(. | s)).

The minimum is over the two critics, and `Q'` are slow averages of them. The sums over actions are
computed, not sampled. The temperature is fixed, or it is tuned: it falls where the entropy is above
a target, and rises where it is below.

The softmax is the actor's last layer and nothing else: the entropy is that of its policy, and the
temperature is only its weight. With `LogSumExp`, or with `Boltzmann`, whose policy is the same,
this is soft actor-critic as it is known. The policy that is best in the end is Boltzmann's of the
critics' values, with an inverse temperature of `1 / alpha`. Another softmax can represent it too,
by other outputs of the network. A learner without an actor, whose targets have the softmax's own
value, is `dqn`.

The methods of `Sac` are pure functions of one run; they do not know where the steps come from.
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
from ..policies import choose
from ..policies import entropy as entropy_of
from ..softmax import Mean, Softmax
from . import keys
from .learner import STATIC
from .network import Policy, mlp
from .observation import Seen, as_shapes, parted, unmasked, values_in, vector
from .optimiser import ADAM, Weights, learning_rate_for, step
from .policy_gradient import check_last_layer
from .replay import Replay, Transitions, learn_when_due
from .schedule import Linear, now
from .trainable import MakeNetwork, check_draws, draw, example

__all__ = ["LEARNING_RATE", "Sac", "SacState", "sac"]

LEARNING_RATE = 1e-3
DEFAULT_NETWORK = mlp(64, 2)


class SacState(eqx.Module):
    """The state of a run: its networks, its temperature, its optimiser and its replay buffer."""

    network: Any
    """The actor's network: a `Network` or a `Trainable`."""
    critics: tuple[Any, Any]
    """The networks of the action values."""
    averages: tuple[Any, Any]
    """Slow averages of the critics, which the targets are computed with."""
    log_temperature: jax.Array
    """The logarithm of the temperature; not used if that is fixed."""
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
        return self.network, self.critics, self.log_temperature


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sac:
    """A learner; made by `sac`. Its methods are pure functions of one run."""

    learns_from: ClassVar[Literal["steps"]] = "steps"
    batch: ClassVar[int] = 1

    softmax: Any
    learning_rate: Any
    discount: jax.Array | float | None
    temperature: jax.Array | float | None
    entropy_target: jax.Array | float
    averaging: jax.Array | float
    network: MakeNetwork = field(metadata=STATIC)
    capacity: int = field(metadata=STATIC)
    minibatch: int = field(metadata=STATIC)
    learning_starts: int = field(metadata=STATIC)
    train_frequency: int = field(metadata=STATIC)
    optimiser: optax.GradientTransformation = field(metadata=STATIC)

    def init(self, key: jax.Array, observation: int | PyTree, n_actions: int) -> SacState:
        """The initial state of a run.

        Args:
            key: a JAX key.
            observation: the shapes and dtypes of an observation, a tree of `jax.ShapeDtypeStruct`
                or an example; a number is the size of a vector.
            n_actions: how many actions there are.
        """
        shapes = as_shapes(observation)
        trained = network, critics, log_temperature = _trained(self.network, key, shapes, n_actions)
        return SacState(
            network,
            critics,
            critics,
            log_temperature,
            self.optimiser.init(trained),
            jnp.uint32(0),
            jnp.bool_(True),
            Replay.empty(self.capacity, shapes),
        )

    def policy(self, state: SacState) -> Policy:
        """The policy that has been learned: the actor's."""
        return Policy(state.network, now(self, state.updates).softmax)

    def act(
        self, network: Weights, step: jax.Array, uniform: jax.Array, observation: PyTree
    ) -> jax.Array:
        """The action that a uniform random number chooses: any, before the first update.

        Args:
            network: the actor's network.
            step: how many steps the run has taken.
            uniform: the random number, in [0, 1).
            observation: the observation before the action.
        """
        learned = Policy(network, now(self, self._updates(step)).softmax).probabilities(observation)
        evenly = Policy(network, Mean()).probabilities(observation)
        some = jnp.where(step < self.learning_starts, evenly, learned)
        return choose(some, uniform).astype(jnp.int32)

    def _updates(self, step: jax.Array) -> jax.Array:
        """How many updates there have been after this many steps."""
        first = (max(1, self.learning_starts) - 1) // self.train_frequency
        return jnp.maximum(step.astype(jnp.int32) // self.train_frequency - first, 0)

    def learn(self, state: SacState, key: jax.Array, stepped: jax.Array | bool = True) -> SacState:
        """Make an update, if the number of steps in the replay buffer makes one due.

        Args:
            state: what has been learned so far.
            key: a JAX key, which draws the minibatch.
            stepped: was a step added to the buffer since the last call?
        """
        return learn_when_due(self, state, key, stepped)

    def update(self, state: SacState, steps: Transitions) -> SacState:
        """The state after a step of the optimiser.

        Args:
            state: what has been learned so far.
            steps: a minibatch.
        """
        self = now(self, state.updates)
        targets, alpha = self.targets(state, steps), self._alpha(state)
        values = _least(state.critics, steps.observation)
        actor, entropy = jax.grad(self._actor_loss, has_aux=True)(
            state.network, steps, values, alpha
        )
        critics = jax.grad(_critic_loss)(state.critics, steps, targets)
        excess = entropy - self.entropy_target * _log_count(steps.observation, values.shape[-1])
        temperature = excess if self.temperature is None else jnp.zeros_like(excess)
        (network, learned, log_temperature), optimiser = step(
            self.optimiser,
            self.learning_rate,
            (actor, critics, temperature),
            state.optimiser,
            state.trained,
        )
        averages = jax.tree.map(
            lambda slow, fast: slow + self.averaging * (fast - slow), state.averages, learned
        )
        return SacState(
            network,
            learned,
            averages,
            log_temperature,
            optimiser,
            state.updates + jnp.uint32(1),
            state.finite,
            state.replay,
        )

    def targets(self, state: SacState, steps: Transitions) -> jax.Array:
        """The targets of the values of the actions taken, `[B]`."""
        policy = now(self, state.updates)._policy(state.network, steps.next_observation)
        values = _least(state.averages, steps.next_observation)
        later = (policy * values).sum(-1) + self._alpha(state) * entropy_of(policy)
        discount = jnp.asarray(DEFAULT if self.discount is None else self.discount, jnp.float32)
        return steps.reward + discount * jnp.where(steps.terminated, 0, later)

    def _policy(self, network: Weights, seen: PyTree) -> jax.Array:
        """The probabilities of all actions, `[B, A]`."""
        values, legal = values_in(network, seen)
        return self.softmax.policy(values, where=legal)

    def _alpha(self, state: SacState) -> jax.Array:
        """The temperature."""
        if self.temperature is None:
            return jnp.exp(state.log_temperature)
        return jnp.asarray(self.temperature, jnp.float32)

    def _actor_loss(
        self, network: Weights, steps: Transitions, values: jax.Array, alpha: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The loss of the actor, and the mean entropy of its policy."""
        policy = self._policy(network, steps.observation)
        entropy = entropy_of(policy).mean()
        return -(policy * values).sum(-1).mean() - alpha * entropy, entropy


def _trained(network: MakeNetwork, key: jax.Array, observation: PyTree, n_actions: int) -> Weights:
    """The actor's network, the critics and the temperature's logarithm, as they are at first."""
    of_actor, of_one, of_other = keys.networks(key, 3)
    critics = [draw(network, of_each, observation, n_actions) for of_each in (of_one, of_other)]
    return draw(network, of_actor, observation, n_actions), tuple(critics), jnp.float32(0)


def _least(critics: tuple[Weights, Weights], observations: PyTree) -> jax.Array:
    """The smaller of the two critics' values of each action, `[B, A]`."""
    one, other = (jax.vmap(critic)(unmasked(observations)) for critic in critics)
    return jnp.minimum(one, other)


def _log_count(seen: PyTree, n_actions: int) -> jax.Array | float:
    """The largest entropy that a policy can have, on average over what is seen."""
    if not isinstance(seen, Seen):
        return math.log(n_actions)
    legal = jax.vmap(lambda one: parted(one)[1])(seen)
    return jnp.log(jnp.asarray(legal).sum(-1, dtype=jnp.float32)).mean()


def _critic_loss(
    critics: tuple[Weights, Weights], steps: Transitions, targets: jax.Array
) -> jax.Array:
    """Half the mean squared errors of both critics, together."""
    total = jnp.zeros((), targets.dtype)
    for critic in critics:
        values = jax.vmap(critic)(unmasked(steps.observation))
        taken = jnp.take_along_axis(values, steps.action[:, None], axis=1)[:, 0]
        total += ((taken - targets) ** 2).mean() / 2
    return total


def sac(
    softmax: Softmax | Linear,
    learning_rate: ArrayLike | Linear | None = None,
    *,
    discount: ArrayLike | None = None,
    temperature: ArrayLike | None = None,
    entropy_target: ArrayLike = 0.5,
    averaging: ArrayLike = 0.005,
    network: MakeNetwork = DEFAULT_NETWORK,
    capacity: int = 10_000,
    minibatch: int = 64,
    learning_starts: int = 1000,
    train_frequency: int = 4,
    optimiser: optax.GradientTransformation = ADAM,
) -> Sac:
    """Soft actor-critic for discrete actions, with a softmax as the actor's last layer.

    Args:
        softmax: the last layer. The policies of `Max`, `Mean` and `EpsilonGreedy` do not change
            when the network's weights change a little, so they are refused. With `LogSumExp` or
            `Boltzmann` this is soft actor-critic as it is known.
        learning_rate: multiplies the optimiser's steps; None for 0.001, or for the optimiser's own
            learning rate if it has one.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        temperature: the weight of the policy's entropy; None for one that is tuned, from 1 on.
        entropy_target: the entropy at which a temperature is tuned, as a share of the largest, that
            of a uniform policy. Near 1 the temperature can grow without bound.
        averaging: how far the averages of the critics move towards the critics in each update.
        network: a function of a key, the shapes of an observation (a tree of
            `jax.ShapeDtypeStruct`) and the number of outputs, which draws an Equinox module from
            one observation to its outputs. It draws the actor's network and both critics.
        capacity: steps that the replay buffer can hold.
        minibatch: steps in an update.
        learning_starts: steps of a run before its first update; their actions are drawn evenly.
        train_frequency: steps from one update to the next.
        optimiser: an optax transformation, with or without a learning rate of its own, as for
            `dqn`. It trains the networks and the logarithm of the temperature together.

    The softmax and the learning rate may change while a run learns: see `linear`.

    Arrays of parameters, learning rates, discounts and of the other numbers that need not be whole
    broadcast against each other and make a grid of settings, each of which `train` runs.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import LogSumExp
        >>> learner = sac(LogSumExp(1.0), capacity=100)
        >>> state = learner.init(jax.random.key(0), observation=4, n_actions=2)
        >>> len(state.critics), float(jnp.exp(state.log_temperature))
        (2, 1.0)

    References:
        Haarnoja, Zhou, Abbeel and Levine, "Soft actor-critic: off-policy maximum entropy deep
        reinforcement learning with a stochastic actor" (ICML 2018). Christodoulou, "Soft
        actor-critic for discrete action settings" (2019).
    """
    check_last_layer(softmax, "SAC")
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    if temperature is not None:
        check_parameter("temperature", temperature, 0.0)
    check_parameter("entropy_target", entropy_target, 0.0, 1.0)
    check_parameter("averaging", averaging, 0.0, 1.0)
    check_draws(network)

    def array(number: ArrayLike | None) -> Any:
        return np.asarray(number) if isinstance(number, list | tuple) else number

    learner = Sac(
        softmax,
        None,
        array(discount),
        array(temperature),
        array(entropy_target),
        array(averaging),
        network=network,
        capacity=checks.whole("capacity", capacity, 1),
        minibatch=checks.whole("minibatch", minibatch, 1),
        learning_starts=checks.whole("learning_starts", learning_starts, 0),
        train_frequency=checks.whole("train_frequency", train_frequency, 1),
        optimiser=optimiser,
    )
    weights = functools.partial(_trained, example(network), jax.random.key(0), vector(2), 2)
    rate = learning_rate_for(optimiser, learning_rate, LEARNING_RATE, weights)
    return dataclasses.replace(learner, learning_rate=rate)
