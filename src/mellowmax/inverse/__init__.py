"""Inverse reinforcement learning: from demonstrations and a softmax to rewards (section 8).

A demonstrator plans with one softmax and acts by another, or by the same. `fit` finds the
parameters of the reward that make what it did most probable, says how sure they are, and which of
them no demonstrations could tell. `log_likelihood` is for every other way to use the likelihood.
"""

from .._common.extras import needed_by

with needed_by("mellowmax.inverse", "jax"):
    from .batch import Estimates, fit_each
    from .demonstrations import Demonstrations
    from .demonstrator import Demonstrator
    from .estimate import Estimate, FitProgress, FitStatus, NotFittedError
    from .fit import fit
    from .likelihood import log_likelihood
    from .rewards import Linear, Table
    from .sample import Posterior, sample
    from .zurcher import Zurcher, zurcher

__all__ = [
    "Demonstrations",
    "Demonstrator",
    "Estimate",
    "Estimates",
    "FitProgress",
    "FitStatus",
    "Linear",
    "NotFittedError",
    "Posterior",
    "Table",
    "Zurcher",
    "fit",
    "fit_each",
    "log_likelihood",
    "sample",
    "zurcher",
]
