"""The table of section 7.1: value iteration on random MDPs, under boltz and under mm.

The paper made 200 random MDPs and states neither beta and omega, nor delta, nor the discount, nor
the initial values. Here every setting of a grid gets the same MDPs, and some settings very many of
them, for rates. Fixed points are counted by a search for all of them (`planning.batch`): the count
is a lower bound.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from ..._typing import Floats
from ...mdp import random_mdp
from ...planning.batch import Batch, find_fixed_points, value_iteration
from ...softmax import SOFTMAXES, Softmax
from .. import paper
from ..intervals import share_interval
from ..item import NAMES, Caption, Claim, Spec, Verdict
from ..printed_rates import draw_rates
from ..printed_table import KEYS, LEVEL, PRINTED, SAMPLE, SETTING, z_of_numbers, z_of_settings

__all__ = [*NAMES]

TITLE = "Value iteration on random MDPs"
SOURCE = "The table of section 7.1"
VERSION = 1
RULE = """\
A setting is beta = omega, a discount, a delta, and whether the mean counts MDPs that did not
terminate as 1000 iterations or leaves them out. Each of the six printed numbers is compared with
ours: counts by Fisher's exact test of two proportions (which for many MDPs is the binomial range of
200), means by the normal test with our spread, for 200 MDPs against ours. Both give a z, and a
number is reproduced where |z| <= 1.96 (95 %). The nearest setting has the smallest root mean square
of the six z on the grid, where all settings have the same MDPs. The claims are the six numbers at
the nearest setting, from the most MDPs that it has, and that mm is better than boltz there in all
three respects. Numbers that no setting of the grid reproduces are named, and so is how many one
setting reproduces together at most. All that is for sweeps in place, which are the paper's
Algorithm 2; synchronous sweeps are run beside them, and change nothing in the verdict."""
DEVIATIONS = (
    "beta = omega, delta, the discount and the initial values are not stated: a grid of the first "
    "three, and initial values of 0.",
    "Fixed points are counted by a search from many starts, for boltz; it is checked by the sum of "
    "their indices, and can still miss a pair. mm has one fixed point by the paper's theorem.",
    "What enters the mean for an MDP that did not terminate is not stated: 1000 iterations, or "
    "nothing.",
    "Synchronous sweeps are run on the grid too, since the paper's own program is not known; they "
    "do not enter the verdict.",
    "Negative entries of the raw transitions become 0; the paper does not mention them.",
    "The rule was written when runs on 1,000 other MDPs (seed 0) had been seen; deltas were made "
    "finer, and the synchronous sweeps added, after the first results.",
)
CAPTIONS = {
    "iterations": Caption(
        "The mean number of iterations, by beta = omega, for sweeps in place: one panel for each "
        "discount, one mark for each delta, all on one scale. The pink lines are the paper's two "
        "means. A setting that reproduces the table has a mark of boltz (dashed, orange) and of mm "
        "(solid, blue) of one delta on its own pink line.",
        "Four panels of mean iterations against beta = omega on a logarithmic axis. Curves of mm "
        "lie below those of boltz with the same delta; both rise with the discount and with a "
        "smaller delta. The paper's lines, at 201 and 232, are crossed by some curves of the "
        "larger discounts.",
    ),
    "unterminated": Caption(
        "The share of MDPs that did not terminate within 1000 iterations, by beta = omega, in the "
        "same way. The paper's line for boltz is at 4 %, that for mm at 0.",
        "Four panels of shares against beta = omega. Under mm none fails but for the smallest "
        "deltas with the largest discounts; under boltz some do at middle values of beta.",
    ),
    "several": Caption(
        "The share of MDPs in which Boltzmann's softmax has more than one fixed point, by beta "
        "and discount, with 95 % intervals. The pink line is the paper's count, 3 of 200. "
        "Mellowmax has one fixed point always.",
        "Four curves of shares against beta. They are 0 for small beta, rise with the discount, "
        "and are of the size of the paper's 1.5 % at most for middle and large beta.",
    ),
}
SETTINGS = {
    "grid": "MDPs of every setting of the grid",
    "rates": "MDPs of the settings with rates",
    "parameters": "beta = omega of the grid",
    "discounts": "discounts of the grid",
    "exponents": "deltas of the grid, as powers of 10",
    "rated": "settings with rates: beta = omega, discount",
    "rated_exponents": "deltas of the rates, as powers of 10",
    "limit": "iterations after which an MDP does not terminate",
    "seed": "seed of the random MDPs",
}
_SETTING = {
    "sweeps": "in place, as Algorithm 2 has it, or synchronous",
    "beta": "of boltz, and the omega of mm",
    "discount": "of the MDPs",
    "delta": "a sweep whose changes are all smaller ends the run",
}
_COUNTED = {
    **_SETTING,
    "operator": "boltz or mm",
    "mdps": "how many",
    "several": "how many have more than one fixed point, as far as the search finds them",
    "unstable": "how many have no fixed point at which synchronous sweeps are stable",
    "doubtful": "how many have fixed points whose indices do not sum to 1: one is missing",
    "unterminated": "how many took more than the limit of 1000 iterations",
    "iterations": "their mean number, where those that did not terminate count as the limit",
    "error": "the standard error of that mean",
    "terminated_iterations": "the mean of those that terminated",
    "terminated_error": "its standard error",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "sample": _COUNTED,
    "rates": {
        **_COUNTED,
        **{
            f"{name}_{end}": f"the {which} end of the 95 % interval (Clopper-Pearson) of the share"
            for name in ("unterminated", "several")
            for end, which in (("low", "lower"), ("high", "upper"))
        },
    },
    "settings": {
        **_SETTING,
        "left_out": "does the mean leave out MDPs that did not terminate?",
        **{f"z_{o}_{n}": f"of the printed number: {n} under {o}" for o, n in PRINTED},
        "reproduced": "how many of the six have |z| <= 1.96",
        "distance": "the root mean square of the six z",
    },
}


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    grid: int
    """MDPs of every setting of the grid, the 200 of the sample among them (section 7.1: 200)."""
    rates: int
    """MDPs of the settings in `rated` (section 7.1: 200)."""
    parameters: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 16.55, 30.0)
    """beta = omega of the grid: section 7.1 states none; 16.55 is that of figure 5."""
    discounts: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99)
    """Section 7.1 states none; 0.98 is that of figure 1."""
    exponents: tuple[float, ...] = tuple(-k / 4 for k in range(4, 37))
    """The deltas, as powers of 10: section 7.1 states none."""
    rated: tuple[tuple[float, float], ...] = ((7.0, 0.98), (10.0, 0.98), (7.0, 0.99), (10.0, 0.99))
    """beta = omega and discount of the rates. They were chosen beforehand: these came nearest to
    the table on the same grid with 2,000 other MDPs (seed 5)."""
    rated_exponents: tuple[float, ...] = tuple(-k / 4 for k in range(4, 21))
    """Deltas of the rates, as powers of 10."""
    limit: int = 1000
    """Iterations after which an MDP does not terminate (section 7.1)."""
    seed: int = 71
    """MDP number i is `random_mdp([seed, i])`."""


SCALES: Mapping[str, Config] = {
    "quick": Config(grid=SAMPLE, rates=2_000),
    "paper": Config(grid=2_000, rates=100_000),
}
SECONDS = {"quick": 60.0, "paper": 430.0}
_OPERATORS = ("boltz", "mm")
_METHODS = {"in place": "in-place", "synchronous": "synchronous"}
_STATES, _ACTIONS = 10, 5  # the most that a random MDP has (section 7.1)
_CELL = {"grid": 600, "rate": 10_000}


def _spans(first: int, total: int, most: int) -> list[tuple[int, int]]:
    """`(first, count)` of the parts that `first` to `total` is cut into."""
    return [(i, min(most, total - i)) for i in range(first, total, most)]


def cells(config: Config) -> dict[str, Spec]:
    """The grid by discount, the sample first; the rates by parameter, so many MDPs at a time."""
    common = {"seed": config.seed, "limit": config.limit}
    result: dict[str, Spec] = {}
    parts = [(0, SAMPLE), *_spans(SAMPLE, config.grid, _CELL["grid"])]
    for discount in config.discounts:
        for first, count in parts:
            result[f"grid-{discount:g}-{first}"] = common | {
                "first": first,
                "count": count,
                "discount": discount,
                "parameters": list(config.parameters),
                "sweeps": list(_METHODS),
                "exponents": list(config.exponents),
            }
    for first, count in _spans(0, config.rates, _CELL["rate"]):
        for parameter, discount in config.rated:
            result[f"rate-{parameter:g}-{discount:g}-{first}"] = common | {
                "first": first,
                "count": count,
                "discount": discount,
                "parameters": [parameter],
                "sweeps": ["in place"],
                "exponents": list(config.rated_exponents),
            }
    return result


@functools.lru_cache(maxsize=1)
def _batch(seed: int, first: int, count: int) -> Batch:
    """The MDPs of a cell, kept for the next, which often has the same."""
    mdps = [random_mdp([seed, number]) for number in range(first, first + count)]
    return Batch.of(mdps, n_states=_STATES, n_actions=_ACTIONS)


def run(spec: Spec) -> pd.DataFrame:
    """Make a cell: sums over its MDPs, for each parameter, operator and delta."""
    batch = _batch(spec["seed"], spec["first"], spec["count"])
    n, parameters = len(batch), spec["parameters"]
    deltas = [10.0**exponent for exponent in spec["exponents"]]
    every = batch[np.tile(np.arange(n), len(parameters))]
    rows = []
    for operator in _OPERATORS:
        kind = SOFTMAXES[paper.OPERATORS[operator]]
        softmax = kind(np.repeat(parameters, n))  # type: ignore[call-arg]
        points = _points(every, softmax, spec["discount"]).reshape(-1, len(parameters), n)
        for sweeps in spec["sweeps"]:
            counts = value_iteration(
                every,
                softmax,
                tolerances=deltas,
                discount=spec["discount"],
                max_iterations=spec["limit"],
                method=_METHODS[sweeps],
            ).iterations.reshape(len(deltas), len(parameters), n)
            for d, i in np.ndindex(*counts.shape[:2]):
                key = (sweeps, parameters[i], spec["discount"], deltas[d], operator)
                found = zip(_FOUND, points[:, i].sum(-1).tolist(), strict=True)
                own = _sums(counts[d, i].astype(np.float64), spec["limit"])
                rows.append(dict(zip(KEYS, key, strict=True)) | {"mdps": n, **dict(found), **own})
    return pd.DataFrame(rows)


def _sums(counts: Floats, limit: int) -> dict[str, float]:
    """Sums over the iterations of some MDPs, which are 0 where one did not terminate."""
    capped = np.where(counts == 0, limit, counts)
    return {
        "unterminated": int((counts == 0).sum()),
        "sum": capped.sum(),
        "squares": (capped**2).sum(),
        "terminated_sum": counts.sum(),
        "terminated_squares": (counts**2).sum(),
    }


_FOUND = ("several", "unstable", "doubtful")


def _points(batch: Batch, softmax: Softmax, discount: float) -> npt.NDArray[np.int64]:
    """Of each MDP: has it several fixed points, no stable one, or is one missing?"""
    if softmax.non_expansion:  # one fixed point, a stable one: the paper's theorem
        return np.zeros((len(_FOUND), len(batch)), np.int64)
    found = find_fixed_points(batch, softmax, discount=discount)
    stable = np.bincount(found.mdp, found.stable, minlength=len(batch))
    return np.stack([found.counts > 1, stable == 0, found.index_sums != 1]).astype(np.int64)


def _summed(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The sums of several cells, with means and standard errors in their place."""
    table = pd.concat(parts, ignore_index=True).groupby(KEYS, sort=False).sum().reset_index()
    done = table.mdps - table.unterminated
    for name, n in (("", table.mdps), ("terminated_", done)):
        total, squares = table.pop(f"{name}sum"), table.pop(f"{name}squares")
        mean = total / n.where(n > 0)
        variance = (squares / n.where(n > 0) - mean**2).clip(lower=0)
        table[f"{name}iterations"] = mean
        table[f"{name}error"] = (variance / (n - 1).where(n > 1)) ** 0.5
    return table


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The sample of 200, the rates from all MDPs of a setting, and how near each setting comes."""
    grid = [table for name, table in cells.items() if name.startswith("grid")]
    sample = [table for table in grid if table.mdps.iloc[0] == SAMPLE]
    rated = [table for name, table in cells.items() if name.startswith("rate")]
    rates = pd.concat([_summed(rated), _summed(grid)], ignore_index=True)
    rates = rates.sort_values("mdps", ascending=False, kind="stable").drop_duplicates(KEYS)
    rates = rates.sort_values(KEYS, kind="stable", ignore_index=True)
    for name in ("unterminated", "several"):
        _, rates[f"{name}_low"], rates[f"{name}_high"] = share_interval(rates[name], rates.mdps)
    return {"sample": _summed(sample), "rates": rates, "settings": z_of_settings(_summed(grid))}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Mean iterations and shares against beta, for each discount and some deltas."""
    rates = tables["rates"]
    return draw_rates(rates[rates.sweeps == "in place"])


def _nearest(
    tables: Mapping[str, pd.DataFrame], sweeps: str = "in place"
) -> tuple[pd.Series, dict[str, dict[str, Any]]]:
    """The nearest setting, and its row of the rates for each operator."""
    settings, rates = tables["settings"], tables["rates"]
    settings = settings[settings.sweeps == sweeps]
    best = settings.loc[settings.distance.idxmin()]
    for name in SETTING:
        rates = rates[rates[name] == best[name]]
    return best, {row["operator"]: row for row in rates.to_dict("records")}


def _words(setting: pd.Series) -> str:
    counted = "left out of" if setting.left_out else "as 1000 in"
    return (
        f"beta = omega = {setting.beta:g}, discount {setting.discount:g}, delta "
        f"{setting.delta:.2g}, with MDPs that did not terminate {counted} the mean"
    )


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By `RULE`."""
    settings = tables["settings"]
    settings = settings[settings.sweeps == "in place"]
    best, own = _nearest(tables)
    prefix, zs = "terminated_" if best.left_out else "", z_of_numbers(own, bool(best.left_out))
    words = {
        "unterminated": "MDPs that did not terminate in 1000 iterations",
        "several": "MDPs with more than one fixed point",
        "iterations": "Iterations on average",
    }
    claims, never = [], []
    for (operator, name), printed in PRINTED.items():
        mine, z = own[operator], zs[operator, name]
        if name == "iterations":
            theirs = f"{printed:.2f}"
            ours = f"{mine[prefix + name]:.2f} +- {LEVEL * mine[prefix + 'error']:.2f}"
        else:
            theirs = f"{printed:.0f} of {SAMPLE} ({printed / SAMPLE:.1%})"
            low, high = mine[f"{name}_low"], mine[f"{name}_high"]
            share = mine[name] / mine["mdps"]
            ours = f"{mine[name]} of {mine['mdps']} ({share:.2%}, {low:.2%} to {high:.2%})"
        statement = f"{words[name]}, {operator}."
        claims.append(Claim(statement, theirs, f"{ours}; z = {z:.2f}", bool(abs(z) <= LEVEL)))
        if not (settings[f"z_{operator}_{name}"].abs() <= LEVEL).any():
            never.append(f"{words[name]}, {operator}")
    held = sum(claim.holds is True for claim in claims)
    boltz, mm = own["boltz"], own["mm"]
    names = ("unterminated", "several", prefix + "iterations")
    better = [bool(mm[name] < boltz[name]) for name in names]
    claims.append(
        Claim(
            "mm is better than boltz in all three respects.",
            "in all three",
            f"in {sum(better)} of 3 at the nearest setting",
            all(better),
        )
    )
    lost = ", ".join(never) if never else "none"
    most = int(settings.reproduced.max())
    other, beside = _nearest(tables, "synchronous")
    summary = (
        f"{held} of the six numbers are reproduced at the setting that comes nearest, and no "
        f"setting reproduces more than {most} together; mm is better than boltz there in "
        f"{sum(better)} of three respects. The setting is {_words(best)}. Numbers that none "
        f"reproduces even alone: {lost}. Synchronous sweeps, which are not Algorithm 2, reproduce "
        f"{int(other.reproduced)} at their nearest setting, {_words(other)}: "
        f"{beside['boltz']['unterminated']} of {beside['boltz']['mdps']} do not terminate under "
        f"boltz there, {beside['boltz']['unstable']} have no fixed point that is stable under such "
        "sweeps."
    )
    return Verdict(tuple(claims), summary)
