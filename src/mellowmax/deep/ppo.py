"""Proximal policy optimisation, which learns from segments of a few environments side by side.

The policy is a network with a softmax as its last layer, as in REINFORCE, and a second network, the
critic, predicts returns. A segment has some steps of each environment. What it teaches is gone
through several times, in minibatches. For each step, the ratio of the action's probability to what
it was when the action was taken multiplies the action's advantage, but gains from a ratio that has
moved by more than `clip` do not count:

    min(ratio * advantage, clip(ratio, 1 - clip, 1 + clip) * advantage).

The critic's loss is clipped in the same way, and the entropy of the policy is added as a bonus. It
is that of the softmax's own policy, so the bonus means the same for every softmax.

The methods of `Ppo` are pure functions of one run; they do not know where the steps come from.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import field
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .._common import checks
from .._common.discount import DEFAULT
from .._rows.arguments import check_parameter
from .._typing import ArrayLike, PyTree
from ..policies import entropy as entropy_of
from ..softmax import Softmax
from . import keys
from .learner import STATIC
from .network import Policy, mlp
from .observation import as_shapes, unmasked, values_in, vector
from .optimiser import CLIPPED_ADAM, Weights, learning_rate_for, step
from .policy_gradient import check_last_layer
from .schedule import Linear, now
from .segments import Segment, generalised_advantages
from .trainable import MakeNetwork, check_draws, draw, example

__all__ = ["LEARNING_RATE", "Ppo", "PpoState", "clipped_objective", "clipped_error", "ppo"]

LEARNING_RATE = 2.5e-4
DEFAULT_NETWORK = mlp(64, 2, "tanh", "orthogonal")
TINY = np.float32(1e-8)
"""Added to a deviation that something is divided by."""


class PpoState(eqx.Module):
    """The state of a run: its networks and its optimiser."""

    network: Any
    """The policy's network: a `Network` or a `Trainable`."""
    critic: Any
    """The network that predicts returns."""
    optimiser: optax.OptState
    """The state of the optimiser."""
    updates: jax.Array
    """The number of segments that the run has learned from."""


class _Rows(NamedTuple):
    """What is learned from steps, `[B, ...]` each."""

    observation: PyTree
    action: jax.Array
    log_probability: jax.Array
    """The logarithm of the action's probability, when it was taken."""
    advantage: jax.Array
    value: jax.Array
    """What the critic predicted, before it learned from the segment."""
    target: jax.Array
    """What the critic should have predicted."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ppo:
    """A learner; made by `ppo`. Its methods are pure functions of one run."""

    learns_from: ClassVar[Literal["segments"]] = "segments"
    batch: ClassVar[int] = 1

    softmax: Any
    learning_rate: Any
    discount: jax.Array | float | None
    trace: jax.Array | float
    clip: jax.Array | float
    entropy: jax.Array | float
    value: jax.Array | float
    environments: int = field(metadata=STATIC)
    steps: int = field(metadata=STATIC)
    epochs: int = field(metadata=STATIC)
    minibatches: int = field(metadata=STATIC)
    network: MakeNetwork = field(metadata=STATIC)
    optimiser: optax.GradientTransformation = field(metadata=STATIC)
    value_clip: jax.Array | float | None = None

    def init(self, key: jax.Array, observation: int | PyTree, n_actions: int) -> PpoState:
        """The initial state of a run.

        Args:
            key: a JAX key.
            observation: the shapes and dtypes of an observation, a tree of `jax.ShapeDtypeStruct`
                or an example; a number is the size of a vector.
            n_actions: how many actions there are.
        """
        networks = _networks(self.network, key, as_shapes(observation), n_actions)
        network, critic = networks
        return PpoState(network, critic, self.optimiser.init(networks), jnp.uint32(0))

    def policy(self, state: PpoState) -> Policy:
        """The policy that has been learned."""
        return Policy(state.network, now(self, state.updates).softmax)

    def update(self, state: PpoState, segment: Segment, key: jax.Array) -> PpoState:
        """Learn from a segment.

        Args:
            state: what has been learned so far.
            segment: `steps` steps of `environments` environments, played by the policy of `state`.
            key: a JAX key, which shuffles the steps.
        """
        self = now(self, state.updates)
        rows = self._rows(state, segment)
        count = self.steps * self.environments
        numbers = jnp.arange(count, dtype=jnp.int32)

        def one_minibatch(state: PpoState, chosen: jax.Array) -> tuple[PpoState, None]:
            some = jax.tree.map(lambda x: x[chosen], rows)
            networks = (state.network, state.critic)
            descent = jax.grad(self._loss)(networks, some)
            (network, critic), optimiser = step(
                self.optimiser, self.learning_rate, descent, state.optimiser, networks
            )
            return PpoState(network, critic, optimiser, state.updates), None

        def one_epoch(state: PpoState, epoch: jax.Array) -> tuple[PpoState, None]:
            order = jax.random.permutation(keys.epoch(key, epoch), numbers)
            return lax.scan(one_minibatch, state, order.reshape(self.minibatches, -1))

        epochs = jnp.arange(self.epochs, dtype=jnp.uint32)
        state, _ = lax.scan(one_epoch, state, epochs)
        return dataclasses.replace(state, updates=state.updates + jnp.uint32(1))

    def _rows(self, state: PpoState, segment: Segment) -> _Rows:
        """The steps of a segment one below the other, with what is to be learned from them."""
        steps = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), segment.steps)
        values, next_values = (
            jax.vmap(state.critic)(unmasked(x))[:, 0].reshape(segment.ended.shape)
            for x in (steps.observation, steps.next_observation)
        )
        discount = jnp.asarray(DEFAULT if self.discount is None else self.discount, jnp.float32)
        advantages = generalised_advantages(segment, values, next_values, discount, self.trace)
        log_policy = self._log_policy(state.network, steps.observation)
        targets = advantages + values
        flat = (x.reshape(-1) for x in (advantages, values, targets))
        return _Rows(steps.observation, steps.action, _taken(log_policy, steps.action), *flat)

    def _log_policy(self, network: Weights, seen: PyTree) -> jax.Array:
        """The logarithms of the probabilities of all actions, `[B, A]`."""
        values, legal = values_in(network, seen)
        return self.softmax.log_policy(values, where=legal)

    def _loss(self, networks: tuple[Weights, Weights], rows: _Rows) -> jax.Array:
        """The loss of a minibatch."""
        network, critic = networks
        log_policy = self._log_policy(network, rows.observation)
        ratio = jnp.exp(_taken(log_policy, rows.action) - rows.log_probability)
        centred = rows.advantage - rows.advantage.mean()
        advantage = centred / (jnp.sqrt((centred * centred).mean()) + TINY)
        value = jax.vmap(critic)(unmasked(rows.observation))[:, 0]
        value_clip = self.clip if self.value_clip is None else self.value_clip
        return (
            -clipped_objective(ratio, advantage, self.clip)
            + self.value * clipped_error(value, rows.value, rows.target, value_clip)
            - self.entropy * entropy_of(jnp.exp(log_policy)).mean()
        )


def _networks(network: MakeNetwork, key: jax.Array, observation: PyTree, n_actions: int) -> Weights:
    """The networks of the policy and of the critic, as they are drawn at first."""
    of_policy, of_critic = keys.networks(key)
    return draw(network, of_policy, observation, n_actions), draw(
        network, of_critic, observation, 1
    )


def _taken(log_policy: jax.Array, action: jax.Array) -> jax.Array:
    """The logarithms of the probabilities of the actions that were taken, `[B]`."""
    return jnp.take_along_axis(log_policy, action[:, None], axis=1)[:, 0]


def clipped_objective(ratio: jax.Array, advantage: jax.Array, clip: jax.Array | float) -> jax.Array:
    """The mean over steps of what a policy gains; a gain beyond the clip does not count.

    Args:
        ratio: the probability of each action, over what it was when the action was taken.
        advantage: of each action.
        clip: how far a ratio may be from 1.
    """
    near = jnp.clip(ratio, 1 - clip, 1 + clip)
    return jnp.minimum(ratio * advantage, near * advantage).mean()


def clipped_error(
    value: jax.Array, before: jax.Array, target: jax.Array, clip: jax.Array | float
) -> jax.Array:
    """Half the mean squared error of predictions; progress beyond the clip does not count.

    Args:
        value: the predictions.
        before: what they were when the steps were played.
        target: what they should be.
        clip: how far a prediction may move.
    """
    near = before + jnp.clip(value - before, -clip, clip)
    error, near_error = value - target, near - target
    return jnp.maximum(error * error, near_error * near_error).mean() / 2


def ppo(
    softmax: Softmax | Linear,
    learning_rate: ArrayLike | Linear | None = None,
    *,
    discount: ArrayLike | None = None,
    trace: ArrayLike = 0.95,
    environments: int = 4,
    steps: int = 128,
    epochs: int = 4,
    minibatches: int = 4,
    clip: ArrayLike = 0.2,
    entropy: ArrayLike = 0.01,
    value: ArrayLike = 0.5,
    value_clip: ArrayLike | None = None,
    network: MakeNetwork = DEFAULT_NETWORK,
    optimiser: optax.GradientTransformation = CLIPPED_ADAM,
) -> Ppo:
    """Proximal policy optimisation with a network whose last layer is a softmax.

    Args:
        softmax: the last layer. The policies of `Max`, `Mean` and `EpsilonGreedy` do not change
            when the network's weights change a little, so they are refused.
        learning_rate: multiplies the optimiser's steps; None for 0.00025, or for the optimiser's
            own learning rate if it has one.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        trace: the lambda of generalised advantages, from 0 to 1.
        environments: how many of them each run plays in, side by side.
        steps: how many steps of each environment a segment has, from which the run learns.
        epochs: how often the minibatches go through all steps of a segment.
        minibatches: the number of minibatches of an epoch; they divide the steps of a segment in
            all environments evenly, into two steps or more.
        clip: how far the probability of an action may move, as a share, before what is gained by it
            does not count any more.
        entropy: the weight of the policy's entropy, in nats, in what is maximised.
        value: the weight of the critic's loss, against that of the policy.
        value_clip: how far a prediction of the critic may move before what is gained by it does not
            count any more; infinity for any distance, None for `clip`. Returns of hundreds are
            learned faster without this limit.
        network: a function of a key, the shapes of an observation (a tree of
            `jax.ShapeDtypeStruct`) and the number of outputs, which draws an Equinox module from
            one observation to its outputs. It draws the critic too, with one output.
        optimiser: an optax transformation, with or without a learning rate of its own, as for
            `reinforce`. It trains both networks together. The default is Adam with an epsilon of
            0.00001, after the gradient of both networks was clipped to a length of 0.5.

    The softmax and the learning rate may change while a run learns: see `linear`.

    Arrays of parameters, learning rates, discounts and of the other numbers that need not be whole
    broadcast against each other and make a grid of settings, each of which `train` runs.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> learner = ppo(Mellowmax(2.0), environments=8, steps=32)
        >>> state = learner.init(jax.random.key(0), observation=4, n_actions=2)
        >>> print(learner.policy(state).probabilities(jnp.zeros(4, jnp.float32)))
        [0.5 0.5]

    References:
        Schulman, Wolski, Dhariwal, Radford and Klimov, "Proximal policy optimization algorithms"
        (2017). Huang, Dossa, Raffin, Kanervisto and Wang, "The 37 implementation details of
        proximal policy optimization" (ICLR 2022).
    """
    check_last_layer(softmax, "PPO")
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    check_parameter("trace", trace, 0.0, 1.0)
    for name, number in {"clip": clip, "entropy": entropy, "value": value}.items():
        check_parameter(name, number, 0.0)
    if value_clip is not None:
        check_parameter("value_clip", value_clip, 0.0)
    check_draws(network)
    environments = checks.whole("environments", environments, 1)
    steps = checks.whole("steps", steps, 1)
    minibatches = checks.whole("minibatches", minibatches, 1)
    if environments * steps % minibatches:
        rule = f"`minibatches` must divide the {environments * steps} steps of a segment"
        raise ValueError(f"{rule}, got {minibatches}")
    if environments * steps == minibatches:  # the advantage of a single step is scaled to 0
        rule = f"`minibatches` must be at most half of the {minibatches} steps of a segment"
        raise ValueError(f"{rule}, got {minibatches}")

    def array(number: ArrayLike | None) -> Any:
        return np.asarray(number) if isinstance(number, list | tuple) else number

    learner = Ppo(
        softmax,
        None,
        array(discount),
        array(trace),
        array(clip),
        array(entropy),
        array(value),
        environments=environments,
        steps=steps,
        epochs=checks.whole("epochs", epochs, 1),
        minibatches=minibatches,
        network=network,
        optimiser=optimiser,
        value_clip=array(value_clip),
    )
    weights = functools.partial(_networks, example(network), jax.random.key(0), vector(2), 2)
    rate = learning_rate_for(optimiser, learning_rate, LEARNING_RATE, weights)
    return dataclasses.replace(learner, learning_rate=rate)
