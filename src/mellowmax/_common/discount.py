"""The discount that a learner has when it was given none: the environment's, or a default."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import checks

__all__ = ["DEFAULT", "discount_of"]

DEFAULT = 0.99
"""For environments without a discount of their own."""


def discount_of(environment: Any) -> float:
    """The discount of an environment: its own, or 0.99.

    Args:
        environment: an MDP, the parameters of a functional environment, or a Gymnasium environment,
            which may carry a number `discount` under any wrappers.
    """
    if hasattr(environment, "get_wrapper_attr"):
        known = environment.has_wrapper_attr("discount")
        own = environment.get_wrapper_attr("discount") if known else DEFAULT
    else:
        own = getattr(environment, "discount", DEFAULT)
    return checks.real("environment.discount", np.asarray(own)[()], 0, 1)
