"""The table that section 7.1 prints, and how far the numbers of a setting are from it.

The distance of a number is a z: how many standard errors, of the paper's 200 MDPs and of ours, lie
between the printed number and ours.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "KEYS",
    "CRITICAL_Z",
    "PRINTED",
    "SAMPLE",
    "SETTING",
    "z_of_a_count",
    "z_of_numbers",
    "z_of_settings",
]

PRINTED = {
    ("boltz", "unterminated"): 8.0,
    ("boltz", "several"): 3.0,
    ("boltz", "iterations"): 231.65,
    ("mm", "unterminated"): 0.0,
    ("mm", "several"): 0.0,
    ("mm", "iterations"): 201.32,
}
"""The six numbers of the table; the counts are of 200 MDPs."""
SAMPLE = 200
"""How many MDPs the paper has."""
CRITICAL_Z = 1.96
"""A number is reproduced where its |z| is at most this: the critical value of 95 %."""
SETTING = ["sweeps", "beta", "discount", "delta"]
"""The columns that make a setting."""
KEYS = [*SETTING, "operator"]
"""The columns that make a row of the tables of numbers."""


@functools.lru_cache(maxsize=4096)
def z_of_a_count(printed: int, ours: int, n: int) -> float:
    """The z of Fisher's exact test; positive where ours is the larger share."""
    table = [[printed, SAMPLE - printed], [ours, n - ours]]
    p = max(float(stats.fisher_exact(table).pvalue), 1e-300)
    sign = 1 if ours / n >= printed / SAMPLE else -1
    return float(sign * stats.norm.isf(min(p, 1.0) / 2))


def z_of_numbers(
    own: Mapping[str, Mapping[str, Any]], left_out: bool
) -> dict[tuple[str, str], float]:
    """The z of each printed number, from the rows of the two operators.

    Args:
        own: our row of each operator, `"boltz"` and `"mm"`, as names to numbers.
        left_out: does the mean leave out MDPs that did not terminate?
    """
    zs = {}
    prefix = "terminated_" if left_out else ""
    for (operator, name), printed in PRINTED.items():
        mine = own[operator]
        if name == "iterations":
            n = mine["mdps"] - left_out * mine["unterminated"]
            deviation = mine[f"{prefix}error"] * np.sqrt(n)
            error = max(deviation, 1e-9) * np.sqrt(1 / SAMPLE + 1 / max(n, 1))
            z = float((mine[f"{prefix}iterations"] - printed) / error)
            zs[operator, name] = z if np.isfinite(z) else 1e9  # too few terminated
        else:
            zs[operator, name] = z_of_a_count(int(printed), int(mine[name]), int(mine["mdps"]))
    return zs


def z_of_settings(grid: pd.DataFrame) -> pd.DataFrame:
    """The z of each printed number at each setting."""
    rows = []
    for key, pair in grid.groupby(SETTING, sort=False):
        own = {row["operator"]: row for row in pair.to_dict("records")}
        for left_out in (False, True):
            zs = z_of_numbers(own, left_out)
            sizes = np.abs(list(zs.values()))
            rows.append(
                dict(zip(SETTING, key, strict=True))
                | {"left_out": left_out}
                | {f"z_{operator}_{name}": z for (operator, name), z in zs.items()}
                | {
                    "reproduced": int((sizes <= CRITICAL_Z).sum()),
                    "distance": float(np.sqrt((sizes**2).mean())),
                }
            )
    return pd.DataFrame(rows)
