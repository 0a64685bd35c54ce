"""What section 7.3 leaves open, as settings of one learner.

The paper does not say how an action is weighted: with which discount, by the return to go or that
of the whole episode, with a baseline or normalised, and what the gradient is a mean over. Its
sentence on the layers can be read as one hidden layer or as two. Here each of these is a number of
the learner, so that the runs of all readings are trained in one program.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ....deep import Episodes, Policy, Reinforce, ReinforceState, mlp, reinforce
from ....deep.policy_gradient import leave_one_out_mean, n_steps, normalised
from ....softmax import Softmax
from .softmax import BoltzmannOrMellowmax

__all__ = [
    "AT_USUAL_RATE",
    "BATCH",
    "LEARNING_RATE",
    "READING",
    "READINGS",
    "USUAL_RATE",
    "Reading",
    "ReadingLearner",
    "Weighing",
    "learner_of",
]

LEARNING_RATE = 0.005
"""Learning rate of Adam (section 7.3)."""
BATCH = 10
"""The number of episodes of an update (section 7.3)."""
READING = ["reading", "discount", "learning_rate", "batch", "temperature", "fallback"]
"""The columns that identify a reading."""


class Weighing(NamedTuple):
    """How actions are weighed, and the layers of the network: 0 or 1 each, except `scale`."""

    to_go: Any = 0.0
    """With the return from the action on, and not that of the whole episode?"""
    others: Any = 0.0
    """Minus the mean of the other episodes of the batch at the same step?"""
    normalised: Any = 0.0
    """Brought to mean 0 and standard deviation 1 within the batch?"""
    per_step: Any = 0.0
    """Is the gradient a mean over the steps of a batch, and not over its episodes?"""
    scale: Any = 1.0
    """What everything is multiplied with."""
    two_layers: Any = 0.0
    """Has the network two hidden layers?"""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReadingLearner:
    """A learner that weighs actions by numbers, made of a `Reinforce` that takes the steps.

    If any run has two hidden layers, all do. For a run with one, the second is the identity, and
    is not trained.
    """

    learns_from: ClassVar[Literal["episodes"]] = "episodes"

    learner: Reinforce
    """Its hyperparameters, its policy gradient and its optimiser."""
    weighing: Weighing
    """The numbers of each run."""

    @property
    def softmax(self) -> Softmax:
        """The softmax of the policy."""
        return self.learner.softmax

    @property
    def discount(self) -> Any:
        """The discount of each run."""
        return self.learner.discount

    @property
    def batch(self) -> int:
        """The number of episodes in an update."""
        return self.learner.batch

    def init(self, key: jax.Array, observation: Any, n_actions: int) -> ReinforceState:
        """The initial state of a run; an unused second layer is the identity."""
        state = self.learner.init(key, observation, n_actions)
        if len(state.network.layers) == 2:
            return state
        layer = state.network.layers[1]
        two = self.weighing.two_layers == 1.0
        identity = jnp.eye(len(layer.weight), dtype=layer.weight.dtype)
        weight = jnp.where(two, layer.weight, identity)
        network = eqx.tree_at(lambda network: network.layers[1].weight, state.network, weight)
        return ReinforceState(network, state.baseline, state.optimiser)

    def policy(self, state: ReinforceState) -> Policy:
        """The policy that has been learned."""
        return self.learner.policy(state)

    def update(
        self, state: ReinforceState, episodes: Episodes, key: jax.Array | None = None
    ) -> ReinforceState:
        """Learn from a batch of episodes; the gradient of an unused second layer is 0."""
        advantages = self.advantages(episodes)
        ascent = self.learner.gradient(self.policy(state), episodes, advantages)
        if len(state.network.layers) == 3:
            two = self.weighing.two_layers == 1.0
            held = jax.tree.map(lambda x: jnp.where(two, x, 0), ascent.layers[1])
            ascent = eqx.tree_at(lambda network: network.layers[1], ascent, held)
        return self.learner.stepped(state, ascent)

    def advantages(self, episodes: Episodes) -> jax.Array:
        """The advantages of the actions, by the run's weighing, `[T, B]`."""
        weighing, mask = self.weighing, episodes.mask()
        returns = episodes.returns_to_go(self.discount)
        result = jnp.where(weighing.to_go == 1.0, returns, returns[0])
        others = jnp.where(weighing.others == 1.0, leave_one_out_mean(result), 0)
        result, steps = jnp.where(mask, result - others, 0), n_steps(episodes)
        result = jnp.where(weighing.normalised == 1.0, normalised(result, mask, steps), result)
        factor = jnp.where(weighing.per_step == 1.0, episodes.lengths.size / steps, 1)
        return result * (weighing.scale * factor)


class Reading(NamedTuple):
    """A way to read what the paper does not state."""

    name: str
    discount: float
    weighing: Weighing
    learning_rate: float = LEARNING_RATE
    batch: int = BATCH
    """How many episodes there are between two updates."""
    temperature: str = "moves"
    """Mellowmax's inverse temperature in the gradient: it moves with the values, or is held."""
    fallback: str = "none"
    """Where mellowmax's policy is Boltzmann's at omega: none, or where the search overflows."""

    @property
    def identity(self) -> dict[str, Any]:
        """Its values of the columns `READING`."""
        return {"reading": self.name} | {name: getattr(self, name) for name in READING[1:]}


WEIGHINGS = (
    Reading("whole return", 0.99, Weighing()),
    Reading("whole return, normalised", 0.99, Weighing(normalised=1.0)),
    Reading("reward to go", 0.99, Weighing(to_go=1.0)),
    Reading("reward to go, normalised", 0.99, Weighing(to_go=1.0, normalised=1.0)),
    Reading("reward to go, others as baseline", 0.99, Weighing(to_go=1.0, others=1.0)),
    Reading("whole return", 1.0, Weighing()),
    Reading("whole return, normalised", 1.0, Weighing(normalised=1.0)),
    Reading("reward to go", 1.0, Weighing(to_go=1.0)),
    Reading("reward to go, normalised", 1.0, Weighing(to_go=1.0, normalised=1.0)),
    Reading("reward to go, others as baseline", 1.0, Weighing(to_go=1.0, others=1.0)),
)
"""Ways to weigh an action."""
READINGS = (
    *WEIGHINGS,
    Reading("whole return", 1.0, Weighing(), LEARNING_RATE / 10),
    Reading("whole return, two hidden layers", 1.0, Weighing(two_layers=1.0)),
    Reading("whole return, mean over steps", 1.0, Weighing(per_step=1.0)),
    Reading("whole return, sum over episodes", 1.0, Weighing(scale=10.0)),
    Reading("whole return, divided by 100", 1.0, Weighing(scale=0.01)),
)
"""These, and the whole return with one further thing read in another way."""

USUAL_RATE = 0.001
"""The usual learning rate of Adam."""
AT_USUAL_RATE = tuple(reading._replace(learning_rate=USUAL_RATE) for reading in WEIGHINGS)
"""The ways to weigh an action at that rate."""


def learner_of(table: pd.DataFrame, hidden: int = 16) -> ReadingLearner:
    """A learner with a setting for each row of a table.

    Args:
        table: with columns of `runs.setting_rows`; one that is missing has its default. All rows
            have the same batch.
        hidden: how many units a hidden layer has.
    """
    (batch,) = set(table["batch"]) if "batch" in table else (BATCH,)

    def column(name: str, default: float) -> Any:
        return table[name].to_numpy(np.float64) if name in table else np.full(len(table), default)

    softmax = BoltzmannOrMellowmax(
        column("parameter", 1.0),
        (table["policy"] == "mellowmax").to_numpy(np.float64),
        column("through_temperature", 1.0),
        column("falls_back", 0.0),
    )
    rates = column("learning_rate", LEARNING_RATE)
    weighing = Weighing(*(column(name, x) for name, x in Weighing()._asdict().items()))
    learner = reinforce(
        softmax,
        rates,
        discount=column("discount", 1.0),
        batch=int(batch),
        network=mlp(hidden, 2 if weighing.two_layers.any() else 1),
    )
    return ReadingLearner(learner, weighing)
