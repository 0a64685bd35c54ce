"""Models of how people choose: from parameters to the log-likelihood of what was observed.

- Quantal response: every player plays softmax against what the others do, in the equilibrium on
  the principal branch: the first on it at the parameter.
- Level k: level 0 plays at random, level k plays softmax against level k - 1.
- Quantal level-k (Stahl and Wilson, 1994; Wright and Leyton-Brown, 2010): a population of levels
  0, 1 and 2. Each level has its own parameter, and level 2 believes in a level 1 with another one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Floats
from ..softmax import Softmax
from .family import Family
from .observations import Block, Observations
from .responses import Response
from .trace import trace

__all__ = ["Likelihood", "level", "quantal_level_k", "quantal_response"]

Likelihood = Callable[[float], Floats]
"""From a parameter to the log-likelihood of each game, `[G]`."""


def quantal_response(observed: Observations, family: Family, last: float) -> Likelihood:
    """The log-likelihood of quantal response, for parameters from 0 to `last`."""
    branches = [trace(game, family, [0.0, last]) for game in observed.games]

    def likelihood(parameter: float) -> Floats:
        result = []
        for branch, counts in zip(branches, observed.counts, strict=True):
            logs = branch.at(parameter)[0].log_profile
            result.append(sum(_sum(own, log) for own, log in zip(counts, logs, strict=False)))
        return np.array(result)

    return likelihood


def level(observed: Observations, family: Family, k: int) -> Likelihood:
    """The log-likelihood of level k, with one parameter for all levels."""

    def likelihood(parameter: float) -> Floats:
        softmaxes = [family(parameter)] * k
        return _of_games(observed, lambda block: _log_policy(block, softmaxes))

    return likelihood


def quantal_level_k(observed: Observations, family: Family) -> Callable[[Floats, Floats], Floats]:
    """The log-likelihood of quantal level-k.

    It takes the shares of the levels, `[3]`, and the parameters of level 1, of level 2, and of the
    level 1 that level 2 believes in, `[3]`.
    """

    def likelihood(shares: Floats, parameters: Floats) -> Floats:
        first, second, believed = (family(float(one)) for one in parameters)

        def mixed(block: Block) -> Floats:
            uniform = np.broadcast_to(block.payoffs.uniform, block.counts.shape)
            levels = (
                uniform,
                *map(np.exp, (_log_policy(block, [first]), _log_policy(block, [believed, second]))),
            )
            with np.errstate(divide="ignore"):  # of an action beyond those of a player
                return np.log(sum(s * own for s, own in zip(shares, levels, strict=True)))

        return _of_games(observed, mixed)

    return likelihood


def _log_policy(block: Block, softmaxes: list[Softmax]) -> Floats:
    """The log-probabilities of the highest level, `[G, N, A]`."""
    payoffs = block.payoffs
    profile = np.broadcast_to(payoffs.uniform, block.counts.shape)
    for softmax in softmaxes[:-1]:
        profile = Response(payoffs, softmax).policy(payoffs.values(profile))
    return Response(payoffs, softmaxes[-1]).log_policy(payoffs.values(profile))


def _of_games(observed: Observations, logs: Callable[[Block], Floats]) -> Floats:
    result = np.zeros(len(observed))
    for block in observed.blocks:
        result[block.which] = _sum(block.counts, logs(block), (-2, -1))
    return result


def _sum(counts: Floats, logs: Floats, axis: tuple[int, ...] | None = None) -> Floats:
    """The log-likelihood of counts; an action that nobody chose may have the probability 0."""
    chosen = counts > 0
    return np.asarray((counts * np.where(chosen, logs, 0.0)).sum(axis))
