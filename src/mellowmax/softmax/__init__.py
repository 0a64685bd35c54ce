"""Softmaxes: a softmax is an operator and the policy that goes with it.

There are two kinds. The policy of an *attained* softmax earns its value,
`sum(softmax.policy(q) * q) == softmax.value(q)`: the paper's five, and `Resmax`. The value of a
*regularised* one has a bonus besides, and its policy is the gradient of the value: `LogSumExp`,
`FreeEnergy` and `Sparsemax`.

Planning uses the value and its gradient, tabular learning samples the policy, policy gradient uses
its log-probabilities: an algorithm that takes a `Softmax` works with any of them, and with yours: a
subclass with the four methods, and nothing to be registered.

They are frozen and hashable, and JAX sees through them: their parameter is data, so one
compiled function serves a sweep over it.

This is a module, not a function. What machine learning calls the softmax function, `exp(q)` divided
by its sum, is `mellowmax.boltzmann_policy(q, 1.0)`; its logarithm is `boltzmann_log_policy`. The
operators as functions are `mellowmax.boltzmann`, `mellowmax.mellowmax` and the others of
`mellowmax.operators`, and the policies those of `mellowmax.policies`.
"""

from __future__ import annotations

from .attained import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax, Resmax
from .base import Softmax
from .regularised import FreeEnergy, LogSumExp, Sparsemax

__all__ = [
    "OTHERS",
    "SOFTMAXES",
    "Boltzmann",
    "EpsilonGreedy",
    "FreeEnergy",
    "LogSumExp",
    "Max",
    "Mean",
    "Mellowmax",
    "Resmax",
    "Softmax",
    "Sparsemax",
]

SOFTMAXES: dict[str, type[Softmax]] = {
    "max": Max,
    "mean": Mean,
    "epsilon-greedy": EpsilonGreedy,
    "boltzmann": Boltzmann,
    "mellowmax": Mellowmax,
}
"""The paper's softmaxes, by the names that the command line and the experiments use."""

OTHERS: dict[str, type[Softmax]] = {
    "log-sum-exp": LogSumExp,
    "free-energy": FreeEnergy,
    "sparsemax": Sparsemax,
    "resmax": Resmax,
}
"""Softmaxes that the paper does not have, by the names that the command line uses."""
