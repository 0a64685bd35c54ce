"""Softmax operators for reinforcement learning: right for every input, with exact gradients.

From Asadi and Littman, "An Alternative Softmax Operator for Reinforcement Learning" (ICML 2017).

    >>> from mellowmax import Mellowmax, mellowmax, mellowmax_policy
    >>> print(mellowmax([1.0, 2.0, 3.0], 5.0).round(4))
    2.7816
    >>> print(mellowmax_policy([1.0, 2.0, 3.0], 5.0).round(4))
    [0.0305 0.1574 0.8121]

Operators and policies are functions on arrays of NumPy, PyTorch, JAX, CuPy or any other Array API
library; `Max`, `Mean`, `EpsilonGreedy`, `Boltzmann` and `Mellowmax` pair each operator with its
policy. Importing this package needs NumPy and array-api-compat alone.

The rest is loaded on first use: `mellowmax.mdp` and `mellowmax.planning` (models and their fixed
points), `mellowmax.games` (quantal response equilibria), `mellowmax.inverse` (rewards from
demonstrations), `mellowmax.environments`, `mellowmax.learning` and `mellowmax.deep` (tabular
learning and policy gradient),
`mellowmax.experiments` and `mellowmax.report` (the paper's figures and tables),
`mellowmax.explorer` (the page of `mellowmax explore`), `mellowmax.properties` (what the paper asks
of a softmax), `mellowmax.torch` (a softmax as a module of PyTorch).
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from . import operators, policies, softmax
from ._rows.libraries.torch_compiler import allow_in_graph
from .operators import *
from .policies import *
from .softmax import *

if TYPE_CHECKING:
    from . import deep as deep
    from . import environments as environments
    from . import experiments as experiments
    from . import explorer as explorer
    from . import games as games
    from . import inverse as inverse
    from . import learning as learning
    from . import mdp as mdp
    from . import planning as planning
    from . import properties as properties
    from . import report as report
    from . import torch as torch

__version__ = "0.2.0"

__all__ = ["__version__", *operators.__all__, *policies.__all__, *softmax.__all__]

allow_in_graph(
    getattr(module, name)
    for module in (operators, policies)
    for name in module.__all__
    if name != "sample"  # which takes a generator of random numbers
)

_LOADED = ("operators", "policies", "softmax")
_ON_FIRST_USE = (
    "deep",
    "environments",
    "experiments",
    "explorer",
    "games",
    "inverse",
    "learning",
    "mdp",
    "planning",
    "properties",
    "report",
    "torch",
)


def __getattr__(name: str) -> ModuleType:
    if name in _ON_FIRST_USE:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LOADED, *_ON_FIRST_USE})
