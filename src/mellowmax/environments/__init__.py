"""Environments, as pure JAX functions and as Gymnasium environments of the same.

An environment is a module with `params(...)`, `reset(key, params)` and
`step(key, state, action, params)`, written for one instance. Any MDP is one through `tabular`, and
`gymnax`, `pgx`, `navix`, `jumanji` and `brax` make one of each environment of those packages.

Importing this registers `mellowmax/TwoState-v0`, `mellowmax/MultiPassengerTaxi-v0` and
`mellowmax/LunarLander-v0` with Gymnasium;
`gymnasium.make("mellowmax.environments:mellowmax/TwoState-v0")` does both.
"""

import importlib
from types import ModuleType

from .._common.extras import needed_by
from .._common.gymnasium_ids import register

__all__ = [
    "acrobot",
    "brax",
    "cartpole",
    "gymnax",
    "jumanji",
    "lunar_lander",
    "mountain_car",
    "navix",
    "pgx",
    "tabular",
    "taxi",
    "two_state",
]

register()


def __getattr__(name: str) -> ModuleType:
    """The functional environments, which need JAX, on first use."""
    if name in __all__:
        with needed_by(f"{__name__}.{name}", "jax"):
            return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
