"""Layer 4: environments, as pure JAX functions and as Gymnasium environments of the same.

An environment is a module with `params(...)`, `reset(key, params)` and
`step(key, state, action, params)`, written for one instance. Any MDP is one through `tabular`.

Importing this registers `mellowmax/TwoState-v0` and `mellowmax/MultiPassengerTaxi-v0` with
Gymnasium; `gymnasium.make("mellowmax.environments:mellowmax/TwoState-v0")` does both.
"""

from .._registration import register
from . import tabular, taxi, two_state

__all__ = ["tabular", "taxi", "two_state"]

register()
