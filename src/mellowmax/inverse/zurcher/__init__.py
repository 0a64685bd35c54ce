"""Harold Zurcher's buses: when the engines of a bus company were replaced (Rust, 1987).

`buses.csv` has a bus a line: the group, the number of the bus, the reading of its odometer when its
engine was replaced for the first and for the second time (0 for never), the reading in the first
month, and the miles of each month after it. They are Rust's own data, of his groups 1 to 4, as
spread with his program NFXP, from the repository OpenSourceEconomics/rust-data (MIT), commit
2acbb588efd6ddc9f581ab7a14c02e6e2e640fe0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np

from ..._common import checks
from ..._typing import ArrayLike, Floats, Integers
from ...mdp import MDP
from ...softmax import LogSumExp
from ..demonstrations import Demonstrations
from ..demonstrator import AnyDemonstrator
from ..likelihood import Environment, Question, environments_of, seen_from
from ..rewards import Linear

__all__ = ["Zurcher", "zurcher"]

MILES = 450_000
"""What the states divide into bins."""
KEEP, REPLACE = 0, 1


@dataclasses.dataclass(frozen=True, eq=False)
class Zurcher:
    """The model of some groups of buses, and what was decided about them."""

    mdp: MDP
    """The states are mileages since the last replacement; action 0 keeps the engine, 1 replaces it.
    Without rewards."""
    demonstrations: Demonstrations
    """An episode is a bus, a step a month."""
    reward: Linear
    """The parameters are the cost of a replacement and 1000 times that of a bin of mileage."""
    increments: Integers
    """How often the mileage rose by 0, 1, 2, ... bins in a month."""

    _rises: Integers = dataclasses.field(repr=False)
    """`[N]`, by how many bins the mileage rose before each decision."""

    def standard_errors(
        self, parameters: ArrayLike, demonstrator: AnyDemonstrator | None = None
    ) -> Floats:
        """`[2]`, the standard errors of Rust's tables, for the estimates of `fit`.

        They are those of the full likelihood, in which the probabilities of the increments are
        estimated from the same months, by outer products of its gradients; those of an `Estimate`
        take the probabilities as known.

        Args:
            parameters: the estimates.
            demonstrator: what was fitted, as in `fit`; None for log-sum-exp.

        Examples:
            >>> from mellowmax import LogSumExp
            >>> from mellowmax.inverse import fit
            >>> buses = zurcher([4])
            >>> found = fit(buses.mdp, buses.demonstrations, buses.reward, LogSumExp(1.0))
            >>> print(buses.standard_errors(found.parameters).round(3))
            [1.582 0.639]
        """
        theta = checks.numbers("parameters", parameters)
        checks.finite("parameters", theta, ["parameter"])
        if theta.shape != (2,):
            raise ValueError(f"`parameters` must be the 2 estimates, got the shape {theta.shape}")
        return _errors(self, theta, LogSumExp(1.0) if demonstrator is None else demonstrator)

    @property
    def log_likelihood_of_increments(self) -> float:
        """What the increments add to the log-likelihood of the decisions, in Rust's tables."""
        seen = self.increments[self.increments > 0]
        return float((seen * np.log(seen / seen.sum())).sum())


def zurcher(groups: Sequence[int] = (4,), *, bins: int = 90, discount: float = 0.9999) -> Zurcher:
    """Rust's model of when to replace the engine of a bus.

    Args:
        groups: which of the groups 1 to 4.
        bins: into how many bins 450,000 miles are divided; Rust has 90 and 175.
        discount: of a month.

    Examples:
        >>> buses = zurcher([4])
        >>> buses.mdp
        MDP(states=90, actions=2, branches=3, discount=0.9999)
        >>> buses.demonstrations
        Demonstrations(decisions=4292, episodes=37)
    """
    chosen = [
        checks.whole("groups", group, 1, 4)
        for group in checks.instances("groups", groups, object, "numbers from 1 to 4")
    ]
    if not chosen:
        raise ValueError("`groups` must have at least one group, got none")
    bins = checks.whole("bins", bins, 2)
    states, actions, buses, increments = [], [], [], []
    lines = resources.files(__name__).joinpath("buses.csv").read_text().splitlines()[1:]
    for number, line in enumerate(lines):
        group, _, first, second, *miles = map(int, line.split(","))
        if group not in chosen:
            continue
        odometer = np.cumsum(miles)
        engine = np.zeros(len(odometer), np.int64)
        for replacement in (first, second):
            engine += (odometer >= replacement) & (replacement > 0)
        since = odometer - np.choose(engine, [0, first, second])
        bin_of = np.clip(np.ceil(since * bins / MILES).astype(np.int64), 1, bins)
        replaced = np.append(np.diff(engine), 0)
        started = np.where(replaced > 0, 0, bin_of)[:-1]  # a new engine has run 0 miles
        states.append(bin_of[1:] - 1)  # the first month is left out, as in Rust
        actions.append(replaced[1:])
        buses.append(np.full(len(odometer) - 1, number))
        increments.append(bin_of[1:] - started)
    counts = np.bincount(np.concatenate(increments)).astype(np.int32)
    demonstrations = Demonstrations.from_arrays(
        np.concatenate(states), np.concatenate(actions), episodes=np.concatenate(buses)
    )
    steps = np.arange(len(counts))
    keep = np.minimum(np.arange(bins)[:, None] + steps, bins - 1)
    successors = np.stack([keep, np.broadcast_to(np.minimum(steps, bins - 1), keep.shape)], 1)
    probabilities = np.broadcast_to(counts / counts.sum(), successors.shape)
    mdp = MDP(successors, probabilities, np.zeros((bins, 2)), discount)
    reward = Linear(_features(bins), ["RC", "theta"])
    return Zurcher(mdp, demonstrations, reward, counts, np.concatenate(increments))


def _errors(buses: Zurcher, theta: Floats, demonstrator: AnyDemonstrator) -> Floats:
    """The errors by the outer products of the full likelihood's gradients."""
    question = Question.of(buses.reward, demonstrator, None)
    [_], [seen], [environment] = environments_of(buses.mdp, buses.demonstrations)
    shares = buses.increments / buses.increments.sum()
    with jax.enable_x64(True):
        where = jnp.asarray(np.append(theta, shares[:-1]))  # they sum to 1
        scores = np.asarray(_scores(where, environment, question))
    each = scores[seen.states, seen.actions, buses._rises]
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(each.T @ each))[:2]))


@jax.jit
def _scores(where: jax.Array, environment: Environment, question: Question) -> jax.Array:
    """`[S, A, rises, k]`, the gradient of the log-probability of an action and the rise before."""

    def log_probability(where: jax.Array) -> jax.Array:
        shares = jnp.append(where[2:], 1 - jnp.sum(where[2:]))
        probabilities = jnp.broadcast_to(shares, environment.model.probabilities.shape)
        model = dataclasses.replace(environment.model, probabilities=probabilities)
        seen = seen_from(where[:2], dataclasses.replace(environment, model=model), question)
        return seen.log_policy[..., None] + jnp.log(shares)[None, None]

    return jax.jacfwd(log_probability)(where)


def _features(bins: int) -> Floats:
    features = np.zeros((bins, 2, 2))
    features[:, REPLACE, 0] = -1.0
    features[:, KEEP, 1] = -0.001 * np.arange(bins)
    return features
