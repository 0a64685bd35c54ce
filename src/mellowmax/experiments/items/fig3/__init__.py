"""Figure 3: non-expansion, drawn there for the maximum, measured here for five operators.

An operator is a non-expansion if it moves no two vectors apart: `|f(x) - f(y)| <= max|x - y|`. The
largest ratio of the two sides is searched for, over random pairs and by improving on the best. A
search can break the property and not prove it; the proofs are in sections 1, 3 and 5.1.

For Boltzmann's softmax of two actions the ratio comes as near as wanted to the `u` with
`u tanh(u) = 1`, which is 1.19968, whatever beta is: it is the largest sum of the absolute entries
of the gradient, attained where beta times the difference of the two values is `2 u`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ....properties import probe
from ....softmax import SOFTMAXES
from ...item import NAMES, Claim, Spec, Verdict
from .figures import draw_pairs
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES]

VERSION = 1
_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True)
class Config:
    """What is searched."""

    parameter: float = 16.55
    """beta and omega; those of figures 5 and 6 (sections 4 and 7)."""
    epsilon: float = 0.1
    """Epsilon of epsilon-greedy; ours."""
    pairs: int = 5000
    """Random pairs of each operator; ours."""
    rounds: int = 300
    """How long to search for the largest ratio; ours."""
    seed: int = 3
    """Seed of the random numbers; ours."""


SCALES = {"quick": Config(pairs=1000, rounds=30), "paper": Config()}
SECONDS = {"quick": 5.0, "paper": 5.0}


def cells(config: Config) -> dict[str, Spec]:
    """One cell for each operator."""
    base = {"pairs": config.pairs, "rounds": config.rounds, "seed": config.seed}
    return {
        name: base | {"operator": name, "parameter": _parameter(config, name)} for name in SOFTMAXES
    }


def _parameter_name(operator: str) -> str | None:
    """The name of an operator's parameter, such as omega; None for an operator without one."""
    fields = dataclasses.fields(SOFTMAXES[operator])  # type: ignore[arg-type]
    return fields[0].name if fields else None


def _parameter(config: Config, operator: str) -> float | None:
    values = {None: None, "epsilon": config.epsilon}
    return values.get(_parameter_name(operator), config.parameter)


def run(spec: Spec) -> pd.DataFrame:
    """Random pairs and, as the last row, the pair that the search found.

    Values are uniform on [0, 1], as large as those of the two-state MDP, and distances on [0, 0.5].
    """
    parameters = [] if spec["parameter"] is None else [spec["parameter"]]
    softmax = SOFTMAXES[spec["operator"]](*parameters)
    rng = np.random.default_rng(spec["seed"])
    x = rng.random((spec["pairs"], 2))
    away = rng.uniform(-1, 1, size=x.shape)
    away *= rng.uniform(0, 0.5, size=(len(x), 1)) / abs(away).max(-1, keepdims=True)
    found = probe(softmax, actions=2, rounds=spec["rounds"], seed=spec["seed"]).non_expansion
    x, y = (np.vstack([a, b]) for a, b in zip((x, x + away), found.witness, strict=True))
    frame = {
        "x1": x[:, 0],
        "x2": x[:, 1],
        "y1": y[:, 0],
        "y2": y[:, 1],
        "distance": abs(x - y).max(-1),
        "moved": abs(softmax.value(x) - softmax.value(y)),
    }
    return pd.DataFrame(frame)


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The random pairs, and for each operator the pair with the largest ratio."""
    rows, pairs = [], []
    for name, table in cells.items():
        ratio = table["moved"] / table["distance"]
        parameter = _parameter_name(name)
        summary = {
            "operator": name,
            "parameter": f"{parameter} = {_parameter(config, name):g}" if parameter else "none",
            "pairs": len(table) - 1,
            "above": int((ratio.iloc[:-1] > 1 + _TOLERANCE).sum()),
            "largest": ratio.max(),
        }
        rows.append(summary | table.loc[ratio.idxmax()].to_dict())
        pairs.append(table.iloc[:-1].assign(operator=name)[list(COLUMNS["pairs"])])
    return {"ratios": pd.DataFrame(rows), "pairs": pd.concat(pairs, ignore_index=True)}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """The pairs of each operator against the line of slope 1, and the largest ratios."""
    return {"pairs": draw_pairs(tables["pairs"], tables["ratios"], 1 + _TOLERANCE)}


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    ratios = tables["ratios"].set_index("operator")
    worst = ratios.loc["boltzmann"]

    def ours(*names: str) -> str:
        parts = [f"{ratios.loc[name, 'largest']:.9f} for {name}" for name in names]
        return f"at most {' and '.join(parts)}"

    def within(*names: str) -> bool:
        return bool((ratios.loc[list(names), "largest"] <= 1 + _TOLERANCE).all())

    never = "a ratio of at most 1"
    claims = (
        Claim("The maximum is a non-expansion", never, ours("max"), within("max")),
        Claim(
            "The mean and epsilon-greedy are non-expansions",
            never,
            ours("mean", "epsilon-greedy"),
            within("mean", "epsilon-greedy"),
        ),
        Claim(
            "Mellowmax is a non-expansion",
            f"{never}, section 5.1",
            ours("mellowmax"),
            within("mellowmax"),
        ),
        Claim(
            "Boltzmann's softmax is not a non-expansion",
            "a ratio above 1 for some pair, cited without an example",
            f"{worst['largest']:.6f} for x = ({worst['x1']:.6f}, {worst['x2']:.6f}) and "
            f"y = ({worst['y1']:.6f}, {worst['y2']:.6f}); {worst['above']} of {worst['pairs']} "
            "random pairs are above 1",
            bool(worst["largest"] > 1 + _TOLERANCE),
        ),
    )
    if all(claim.holds for claim in claims):
        summary = "Of the five operators, Boltzmann's softmax alone moves vectors apart."
    else:
        summary = "The operators that move vectors apart are not those of the paper."
    return Verdict(claims, summary, in_short=summary)
