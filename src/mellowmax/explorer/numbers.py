"""Numbers for the page, rounded to a few digits: they are only drawn."""

from __future__ import annotations

import numpy as np

from .._typing import Floats

__all__ = ["percent", "rounded"]


def rounded(values: Floats, digits: int = 4) -> list[float]:
    """Numbers rounded to some significant digits; whole ones without a point.

    Examples:
        >>> rounded(np.array([0.123456, 12345.6, 2.0]))
        [0.1235, 12350, 2]
    """
    short = (float(f"{value:.{digits}g}") for value in np.ravel(values).tolist())
    return [int(value) if value == int(value) else value for value in short]


def percent(policy: Floats) -> list[int]:
    """Probabilities `[S, A]` in hundredths, state by state.

    Examples:
        >>> percent(np.array([[0.123, 0.877]]))
        [12, 88]
    """
    return np.rint(100 * np.ravel(policy)).astype(int).tolist()
