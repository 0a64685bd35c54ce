"""What section 7.3 leaves open, as settings of one learner.

The paper does not say how an action is weighed: the discount, whether with the return from it on or
that of the whole episode, with a baseline or normalised, over what the gradient is a mean; and
its sentence on the layers can be read as one hidden layer or as two. Here each of these is a number
of the learner, so that the runs of all readings are trained in one program.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ....deep import Episodes, Network, Policy, Reinforce, ReinforceState, reinforce
from ....deep.gradients import mean_of_others, n_steps, normalised
from .softmax import BoltzmannOrMellowmax

__all__ = [
    "AT_USUAL_RATE",
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
READING = ["reading", "discount", "learning_rate"]
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


OTHER_FIELDS = [
    field.name
    for field in dataclasses.fields(Reinforce)
    if field.name not in ("softmax", "learning_rate", "discount")
]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["softmax", "learning_rate", "discount", "weighing"],
    meta_fields=OTHER_FIELDS,
)
@dataclasses.dataclass(frozen=True)
class ReadingLearner(Reinforce):
    """REINFORCE with the weighing of an action given by numbers.

    If any run has two hidden layers, all do. For a run with one, the second is the identity, and
    is not trained.
    """

    weighing: Weighing = dataclasses.field(default_factory=Weighing)

    def init(self, key: jax.Array, n_observations: int, n_actions: int) -> ReinforceState:
        """The initial state of a run; an unused second layer is the identity."""
        state = super().init(key, n_observations, n_actions)
        if self.depth == 1:
            return state
        layer = state.network.layers[1]
        two = self.weighing.two_layers == 1.0
        weight = jnp.where(two, layer.weight, jnp.eye(self.hidden, dtype=layer.weight.dtype))
        network = eqx.tree_at(lambda network: network.layers[1].weight, state.network, weight)
        return ReinforceState(network, state.baseline, state.optimiser)

    def gradient(self, policy: Policy, episodes: Episodes, advantages: jax.Array) -> Network:
        """The gradient; that of an unused second layer is 0."""
        gradient = super().gradient(policy, episodes, advantages)
        if self.depth == 1:
            return gradient
        two = self.weighing.two_layers == 1.0
        held = jax.tree.map(lambda x: jnp.where(two, x, 0), gradient.layers[1])
        result: Network = eqx.tree_at(lambda network: network.layers[1], gradient, held)
        return result

    def advantages(self, state: ReinforceState, episodes: Episodes) -> jax.Array:
        """The advantages of the actions, by the run's weighing."""
        weighing, live = self.weighing, episodes.live()
        assert self.discount is not None
        earned = episodes.earned(self.discount)
        result = jnp.where(weighing.to_go == 1.0, earned, earned[0])
        others = jnp.where(weighing.others == 1.0, mean_of_others(result), 0)
        result, steps = jnp.where(live, result - others, 0), n_steps(episodes)
        result = jnp.where(weighing.normalised == 1.0, normalised(result, live, steps), result)
        share = jnp.where(weighing.per_step == 1.0, episodes.lengths.size / steps, 1)
        return result * (weighing.scale * share)


class Reading(NamedTuple):
    """A way to read what the paper does not state."""

    name: str
    discount: float
    weighing: Weighing
    learning_rate: float = LEARNING_RATE


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
"""One thing read otherwise at a time."""

USUAL_RATE = 0.001
"""The usual learning rate of Adam."""
AT_USUAL_RATE = tuple(reading._replace(learning_rate=USUAL_RATE) for reading in WEIGHINGS)
"""The ways to weigh an action at that rate."""


def learner_of(table: pd.DataFrame, batch: int = 10, hidden: int = 16) -> ReadingLearner:
    """A learner with a setting for each row of a table.

    Args:
        table: with the columns `policy`, `parameter`, `discount`, `learning_rate`, those of
            `Weighing`, and `through_temperature`; a column that is missing has its default.
        batch: how many episodes there are between two updates.
        hidden: how many units a hidden layer has.
    """

    def column(name: str, default: float) -> Any:
        return table[name].to_numpy(np.float64) if name in table else np.full(len(table), default)

    softmax = BoltzmannOrMellowmax(
        column("parameter", 1.0),
        (table["policy"] == "mellowmax").to_numpy(np.float64),
        column("through_temperature", 1.0),
    )
    rates = column("learning_rate", LEARNING_RATE)
    plain = reinforce(softmax, rates, discount=column("discount", 1.0), batch=batch, hidden=hidden)
    weighing = Weighing(*(column(name, x) for name, x in Weighing()._asdict().items()))
    depth = 2 if weighing.two_layers.any() else 1
    fields = {name: getattr(plain, name) for name in OTHER_FIELDS} | {"depth": depth}
    return ReadingLearner(
        softmax=plain.softmax,
        learning_rate=plain.learning_rate,
        discount=plain.discount,
        weighing=weighing,
        **fields,
    )
