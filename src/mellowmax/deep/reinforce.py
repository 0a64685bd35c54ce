"""REINFORCE, which learns from batches of episodes.

The gradient of the expected return with respect to the network's weights is estimated by

    mean over episodes of  sum over steps of  advantage * grad log policy(action | observation),

where the advantage of a step is the return to go, or the return of the whole episode, minus a
baseline that does not depend on the action. `Reinforce.update` is a pure function of the state of a
run and a batch of episodes; it does not know where the episodes come from.

With `reward_to_go` and a discount below 1, later steps count as much as early ones, as they do in
practice: this is not quite the gradient of the discounted return. Without `reward_to_go`, it is.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from dataclasses import field
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .._common import checks
from .._common.discount import DEFAULT
from .._common.former_names import former_argument
from .._rows.arguments import check_parameter
from .._typing import ArrayLike, PyTree
from ..softmax import Mellowmax, Softmax
from . import keys
from .episodes import Episodes
from .learner import STATIC
from .network import HeldTemperature, Policy, mlp
from .observation import as_shapes, unmasked, vector
from .optimiser import ADAM, Weights, learning_rate_for, step
from .policy_gradient import (
    check_last_layer,
    error,
    in_chunks,
    leave_one_out_mean,
    n_steps,
    normalised,
    objective,
    sum_of_gradients,
)
from .schedule import Linear, now
from .trainable import MakeNetwork, check_draws, draw, example

__all__ = [
    "BASELINES",
    "FORMER_BASELINES",
    "LEARNING_RATE",
    "Reinforce",
    "ReinforceState",
    "reinforce",
]

BASELINES = ("none", "leave-one-out", "network")
FORMER_BASELINES = {"others": "leave-one-out"}
"""The names in mellowmax 0.1, which its checkpoints have, and the names of today."""
AVERAGES = ("episodes", "steps", "none")
LEARNING_RATE = 0.005
"""The default, which is the paper's."""


class ReinforceState(eqx.Module):
    """The state of a run: its networks and its optimiser."""

    network: Any
    """The policy's network: a `Network` or a `Trainable`."""
    baseline: Any | None
    """The network that predicts returns, if that is the baseline."""
    optimiser: optax.OptState
    """The state of the optimiser."""
    updates: jax.Array | None = None
    """The number of batches that the run has learned from; None if nothing depends on it."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reinforce:
    """A learner; made by `reinforce`. Its methods are pure functions of one run."""

    learns_from: ClassVar[Literal["episodes"]] = "episodes"

    softmax: Any
    learning_rate: Any
    discount: ArrayLike | None
    batch: int = field(metadata=STATIC)
    network: MakeNetwork = field(metadata=STATIC)
    reward_to_go: bool = field(metadata=STATIC)
    baseline: str = field(metadata=STATIC)
    normalise: bool = field(metadata=STATIC)
    average: str = field(metadata=STATIC)
    minibatch: int | None = field(metadata=STATIC)
    epochs: int = field(metadata=STATIC)
    optimiser: optax.GradientTransformation = field(metadata=STATIC)

    @former_argument("n_observations", "observation")
    def init(self, key: jax.Array, observation: int | PyTree, n_actions: int) -> ReinforceState:
        """The initial state of a run.

        Args:
            key: a JAX key.
            observation: the shapes and dtypes of an observation, a tree of `jax.ShapeDtypeStruct`
                or an example; a number is the size of a vector.
            n_actions: how many actions there are.
        """
        trained = self._networks(key, as_shapes(observation), n_actions)
        network, baseline = trained
        changes = isinstance(self.softmax, Linear) or isinstance(self.learning_rate, Linear)
        updates = jnp.uint32(0) if changes else None
        return ReinforceState(network, baseline, self.optimiser.init(trained), updates)

    def _networks(self, key: jax.Array, observation: PyTree, n_actions: int) -> Weights:
        """The networks of the policy and of the baseline, as they are drawn at first."""
        of_policy, of_baseline = keys.networks(key)
        network, baseline = draw(self.network, of_policy, observation, n_actions), None
        if self.baseline == "network":
            baseline = draw(self.network, of_baseline, observation, 1)
        return network, baseline

    def policy(self, state: ReinforceState) -> Policy:
        """The policy that has been learned."""
        return Policy(state.network, now(self, state.updates).softmax)

    def update(
        self, state: ReinforceState, episodes: Episodes, key: jax.Array | None = None
    ) -> ReinforceState:
        """Learn from a batch of episodes.

        Args:
            state: what has been learned so far.
            episodes: a batch of one run, played by the policy of `state`. `T` must be a multiple of
                128.
            key: a JAX key, which shuffles the steps for minibatches; not needed without them.

        Returns:
            The state after the update.
        """
        counted = None if state.updates is None else state.updates + jnp.uint32(1)
        learned = now(self, state.updates)._learned(state, episodes, key)
        return dataclasses.replace(learned, updates=counted)

    def _learned(
        self, state: ReinforceState, episodes: Episodes, key: jax.Array | None
    ) -> ReinforceState:
        """The state after an update, but for the number of updates."""
        advantages = self.advantages(state, episodes)
        targets = None if state.baseline is None else self._returns(episodes)
        if self.minibatch is not None:
            if key is None:
                raise ValueError("`key` must be a JAX key for a learner with minibatches, got None")
            return self._update_in_minibatches(state, episodes, advantages, targets, key)
        ascent = self.gradient(self.policy(state), episodes, advantages)
        correction = None
        if state.baseline is not None and targets is not None:
            loss = functools.partial(error, count=n_steps(episodes))
            data = (episodes.observations, targets, episodes.mask())
            correction = sum_of_gradients(loss, state.baseline, episodes.lengths, *data)
        return self.stepped(state, ascent, correction)

    def stepped(
        self, state: ReinforceState, ascent: Weights, correction: Weights | None = None
    ) -> ReinforceState:
        """The state after a step of the optimiser.

        Args:
            state: what has been learned so far.
            ascent: the gradient of the expected return with respect to the weights of the policy's
                network.
            correction: the gradient of the baseline's error with respect to its weights.
        """
        descent = jax.tree.map(jnp.negative, ascent)
        trained = (state.network, state.baseline)
        (network, baseline), optimiser = step(
            self.optimiser, self.learning_rate, (descent, correction), state.optimiser, trained
        )
        return ReinforceState(network, baseline, optimiser, state.updates)

    def _update_in_minibatches(
        self,
        state: ReinforceState,
        episodes: Episodes,
        advantages: jax.Array,
        targets: jax.Array | None,
        key: jax.Array,
    ) -> ReinforceState:
        """One step of the optimiser for each minibatch of steps, in random order.

        The gradient of a minibatch is the mean over its steps, as in Keras.
        """
        assert self.minibatch is not None
        size = self.minibatch
        mask = episodes.mask().reshape(-1)
        columns = (episodes.observations, episodes.actions, advantages, targets)
        rows = jax.tree.map(lambda x: jnp.asarray(x).reshape(-1, *x.shape[2:]), columns)
        count = mask.sum(dtype=jnp.int32)

        def one_epoch(epoch: jax.Array, state: ReinforceState) -> ReinforceState:
            draws = jax.random.uniform(keys.epoch(key, epoch), mask.shape, jnp.float32)
            order = jnp.argsort(jnp.where(mask, draws, jnp.inf))
            order = jnp.pad(order, (0, size))

            def one(i: jax.Array, state: ReinforceState) -> ReinforceState:
                chosen = lax.dynamic_slice_in_dim(order, i * size, size)
                counts = i * size + jnp.arange(size, dtype=jnp.int32) < count
                observations, actions, weights, returns = jax.tree.map(lambda x: x[chosen], rows)
                weights = jnp.where(counts, weights, 0)
                n = counts.sum(dtype=jnp.int32).astype(weights.dtype)
                ascent = jax.grad(objective)(
                    state.network, self.softmax, observations, actions, weights, n
                )
                correction = None
                if returns is not None:
                    correction = jax.grad(error)(
                        state.baseline, observations, returns, counts, count=n
                    )
                return self.stepped(state, ascent, correction)

            return lax.fori_loop(0, -(-count // size), one, state)

        return lax.fori_loop(0, self.epochs, one_epoch, state)

    def gradient(self, policy: Policy, episodes: Episodes, advantages: jax.Array) -> Weights:
        """An estimate of the gradient of the expected return with respect to the network's weights.

        Args:
            policy: the one that played the episodes.
            episodes: a batch of one run.
            advantages: the advantage of each step, `[T, B]`; 0 after the end of an episode.
        """
        divisor = {
            "episodes": jnp.asarray(episodes.lengths.size, advantages.dtype),
            "steps": n_steps(episodes),
            "none": jnp.ones((), advantages.dtype),
        }[self.average]

        def weighted(
            network: Weights, observations: PyTree, actions: jax.Array, advantages: jax.Array
        ) -> jax.Array:
            return objective(network, policy.softmax, observations, actions, advantages, divisor)

        data = (episodes.observations, episodes.actions, advantages)
        return sum_of_gradients(weighted, policy.network, episodes.lengths, *data)

    def advantages(self, state: ReinforceState, episodes: Episodes) -> jax.Array:
        """The advantages by which actions are weighted, `[T, B]`; 0 after the end of an episode."""
        mask = episodes.mask()
        result = self._returns(episodes)
        if self.baseline == "leave-one-out":
            result = result - leave_one_out_mean(result)
        if state.baseline is not None:
            seen = unmasked(episodes.observations)
            result = result - in_chunks(jax.vmap(state.baseline), seen)[..., 0]
        result = jnp.where(mask, result, 0)
        if self.normalise:
            result = normalised(result, mask, n_steps(episodes))
        return result

    def _returns(self, episodes: Episodes) -> jax.Array:
        """The return by which each step is weighted, before the baseline is subtracted."""
        discount: Any = DEFAULT if self.discount is None else self.discount
        result = episodes.returns_to_go(discount)
        return result if self.reward_to_go else jnp.broadcast_to(result[0], result.shape)


def reinforce(
    softmax: Softmax | Linear,
    learning_rate: ArrayLike | Linear | None = None,
    *,
    discount: ArrayLike | None = None,
    batch: int = 10,
    network: MakeNetwork | None = None,
    reward_to_go: bool = True,
    baseline: str = "none",
    normalise: bool = False,
    average: str = "episodes",
    minibatch: int | None = None,
    epochs: int = 1,
    through_temperature: bool = True,
    optimiser: optax.GradientTransformation = ADAM,
    hidden: int | None = None,
    depth: int | None = None,
) -> Reinforce:
    """REINFORCE with a network whose last layer is a softmax (section 7.3).

    The defaults are the paper's, where it states them.

    Args:
        softmax: the last layer. The policies of `Max`, `Mean` and `EpsilonGreedy` do not change
            when the network's weights change a little, so they are refused: their gradient is 0.
        learning_rate: multiplies the optimiser's steps; None for 0.005, or for the optimiser's own
            learning rate if it has one.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        batch: episodes in an update.
        network: a function of a key, the shapes of an observation (a tree of
            `jax.ShapeDtypeStruct`) and the number of outputs, which draws an Equinox module from
            one observation to its outputs, such as the class of such a module; None for `mlp()`.
        reward_to_go: weight an action by the return to go, and not by the return of the whole
            episode?
        baseline: what is subtracted from the return: `"none"`; `"leave-one-out"`, its mean over the
            other episodes of the batch at the same step, formerly `"others"`; `"network"`, the
            prediction of a second network of the same kind, which is trained too.
        normalise: scale the advantages of a batch to mean 0 and standard deviation 1?
        average: take the mean of the gradient over the batch's `"episodes"`, over its `"steps"`, or
            the sum (`"none"`).
        minibatch: steps in each optimiser step, in random order; the gradient is the mean over
            them. None for all steps of the batch at once.
        epochs: how often the minibatches go through all steps of a batch.
        through_temperature: let the gradient flow through the inverse temperature of mellowmax's
            policy?
        optimiser: an optax transformation, with or without a learning rate of its own:
            `optax.adam(0.02)`, for which `learning_rate` must be None, or `optax.scale_by_adam()`,
            which it multiplies. The optimiser is tried out on a gradient to see which it is.
        hidden: formerly the units of a hidden layer; now `network=mlp(hidden, depth)`.
        depth: formerly the number of hidden layers; now `network=mlp(hidden, depth)`.

    The softmax and the learning rate may change while a run learns: see `linear`.

    Arrays of parameters, learning rates and discounts that broadcast against each other make a grid
    of settings, each of which `train` runs.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> learner = reinforce(Mellowmax(8.0), discount=1.0, baseline="leave-one-out")
        >>> state = learner.init(jax.random.key(0), observation=4, n_actions=2)
        >>> print(learner.policy(state).probabilities(jnp.zeros(4, jnp.float32)))
        [0.5 0.5]

    References:
        Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
        learning" (1992).
    """
    check_last_layer(softmax, "REINFORCE")
    if not through_temperature:
        if type(softmax) is not Mellowmax or softmax.prior is not None:
            rule = "`through_temperature` must be True for a softmax other than Mellowmax(omega)"
            raise ValueError(f"{rule}, got False for {softmax!r}")
        softmax = HeldTemperature(softmax.omega)
    if isinstance(baseline, str) and baseline in FORMER_BASELINES:
        new = FORMER_BASELINES[baseline]
        message = f"baseline {baseline!r} is now {new!r}; the old name will go"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        baseline = new
    checks.one_of("baseline", baseline, BASELINES)
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    if hidden is not None or depth is not None:
        network = _former_network(network, hidden, depth)
    network = mlp() if network is None else network
    check_draws(network)
    checks.one_of("average", average, AVERAGES)
    epochs = checks.whole("epochs", epochs, 1)
    if minibatch is not None:
        minibatch = checks.whole("minibatch", minibatch, 1)
        if average != "episodes":
            rule = "`average` must be left as it is with minibatches, which are means over steps"
            raise ValueError(f"{rule}, got {average!r}")
    elif epochs != 1:
        raise ValueError(f"`epochs` must be 1 without minibatches, got {epochs!r}")
    least = 2 if baseline == "leave-one-out" else 1
    learner = Reinforce(
        softmax,
        None,
        np.asarray(discount) if isinstance(discount, list | tuple) else discount,
        batch=checks.whole("batch", batch, least),
        network=network,
        reward_to_go=bool(reward_to_go),
        baseline=baseline,
        normalise=bool(normalise),
        average=average,
        minibatch=minibatch,
        epochs=epochs,
        optimiser=optimiser,
    )
    tried = dataclasses.replace(learner, network=example(network))
    weights = functools.partial(tried._networks, jax.random.key(0), vector(2), 2)
    rate = learning_rate_for(optimiser, learning_rate, LEARNING_RATE, weights)
    return dataclasses.replace(learner, learning_rate=rate)


def _former_network(
    network: MakeNetwork | None, hidden: int | None, depth: int | None
) -> MakeNetwork:
    """The network of the arguments of mellowmax 0.1, with a warning."""
    if network is not None:
        name, value = ("hidden", hidden) if hidden is not None else ("depth", depth)
        raise ValueError(f"`{name}` must be left out where there is a `network`, got {value!r}")
    result = mlp(16 if hidden is None else hidden, 1 if depth is None else depth)
    message = "`hidden` and `depth` are now `network=mlp(hidden, depth)`; the old names will go"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return result
