"""Models of how people choose, fitted to their choices by maximum likelihood.

A model of one parameter is fitted in `fit_parameter`, quantal level-k in `fit_levels`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._common import checks
from .._common.extras import needed_by
from ..softmax import Softmax
from .family import Family
from .fit_levels import fit_levels
from .fit_parameter import fit_parameter
from .fitted import Fit
from .game import Game
from .models import Likelihood, level, quantal_response
from .observations import Observations
from .policy_jacobian import check_smooth

__all__ = ["MODELS", "Fit", "fit"]

MODELS = ("qre", "level-1", "level-2", "qlk")
"""Quantal response, one level of thinking, two levels, and quantal level-k."""


def fit(
    games: Game | Sequence[Game],
    counts: Sequence[Any],
    family: Family,
    *,
    model: str = "qre",
) -> Fit:
    """Fit a model to how often people chose each action.

    Args:
        games: one game, or several that share the parameters.
        counts: for each game how often each action was chosen: a list for each player, or one list
            for both players of a symmetric game. They need not be whole.
        family: from a parameter to a softmax, such as the class `Mellowmax`.
        model: `"qre"` for quantal response, `"level-1"`, `"level-2"`, or `"qlk"` for quantal
            level-k.

    Returns:
        The `Fit`: parameters, intervals, likelihoods, and `left_out`.

    Raises:
        ValueError: for counts that are not those of the games, in a sentence that names player and
            action, and for the name of no model.

    Examples:
        >>> from mellowmax import Boltzmann, Mellowmax
        >>> game = Game.from_arrays([[1.1141, 0], [0, 0.2785]], [[0, 1.1141], [1.1141, 0]])
        >>> counts = [[67.456, 60.544], [46.848, 81.152]]
        >>> print(fit(game, counts, Boltzmann))
        qre: log-likelihood -174.765 (-177.446 at random)
          parameter 1.84561    95 % from 0.4106 to 4.056
          The counts of the game are not all whole, as where they come from percentages.
        >>> fit(game, counts, Mellowmax, model="level-1").log_likelihood > -177.446
        True

    References:
        Asadi and Littman (2017), section 8, names both models.
    """
    observed = Observations.of(games, counts)
    checks.function("family", family, "a function from a parameter to a Softmax")
    checks.one_of("model", model, MODELS)
    with needed_by("mellowmax.games.fit", "jax"):
        import scipy  # noqa: F401 - what the extra installs
    checks.instance("family", family(1.0), Softmax, "a function from a parameter to a Softmax")
    if model == "qlk":
        return fit_levels(observed, family)
    if model == "qre":
        check_smooth(family(1.0))
        likelihood: Callable[[float], Likelihood] = functools.partial(
            quantal_response, observed, family
        )
    else:
        of_level = level(observed, family, int(model[-1]))

        def likelihood(last: float) -> Likelihood:
            return of_level

    return fit_parameter(model, observed, likelihood)
