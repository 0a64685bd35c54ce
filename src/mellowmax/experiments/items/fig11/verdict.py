"""Which claims of figure 11 hold, and what the verdict rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...data import paper
from ...item import Claim, Verdict
from . import figures
from .parts import FIGURE, READINGS_OF_PARTS, SMALLER_RATE, Config
from .readings import BATCH, READING
from .text import COUNTS, NEAR, SURE

__all__ = ["COMPARED", "PEAK", "POLICIES", "SHORT", "judge", "of_figure"]

POLICIES = ("boltzmann", "mellowmax")
SHORT = {"boltzmann": "boltz", "mellowmax": "mm"}
"""What the paper's table calls them."""
PEAK = "Mellowmax outperforms Boltzmann at its peak"
"""The claim that matters most."""
COMPARED = "compared"
"""The part of the readings that were compared to choose one."""


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """By `RULE`."""
    means = tables["means"]
    curves = of_figure(tables["curves"])
    whole = _whole(means)
    claims = [_curves(curves[curves["policy"] == policy], policy, whole) for policy in POLICIES]
    claims.append(_peak(tables["counted"], tables["readings"], whole))
    beside = (
        _parts(tables["peaks"]),
        _gradient(tables["gradients"]),
        _origin(tables),
        _reading(tables["readings"]),
    )
    best = f"Best mean return: {_best(means)}."
    return Verdict(
        tuple(claims),
        _summary(means, whole),
        tuple(filter(None, beside)),
        in_short=best,
        kept=_kept(means, tables["measured"]),
    )


def _kept(means: pd.DataFrame, measured: pd.DataFrame) -> str:
    """The runs that are shown, if they were not made here."""
    if measured.empty:
        return ""
    figure = of_figure(means)
    return (
        f"{figure['runs'].min():,} runs of {figure['episodes'].max():,} episodes that were "
        "measured elsewhere and are kept with the package"
    )


def _whole(means: pd.DataFrame) -> bool:
    """Have all settings of the figure been run for all episodes?"""
    full, figure = Config(), of_figure(means)
    n_settings = len(full.betas) + len(full.omegas)
    return len(figure) == n_settings and int(figure["episodes"].min()) == full.episodes


def of_figure(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the figure itself."""
    return table[table["part"] == FIGURE]


def _curves(rows: pd.DataFrame, policy: str, whole: bool) -> Claim:
    """Are a policy's curves the paper's?"""
    distance = (rows["mean_return"] - rows["paper"]).abs().groupby(rows["parameter"]).mean()
    worst = distance.idxmax()
    ours, theirs = (
        figures.of_setting(rows, policy, worst)[name] for name in ("mean_return", "paper")
    )
    return Claim(
        f"The learning curves of {policy}",
        f"at {worst:g}, from {theirs.iloc[0]:.0f} to {theirs.iloc[-1]:.0f}",
        f"at {worst:g}, from {ours.iloc[0]:.0f} to {ours.iloc[-1]:.0f}; "
        f"{(distance <= NEAR).sum()} of {len(distance)} curves within {NEAR:g} on average, the "
        f"farthest {distance.max():.0f} off",
        False if (distance > NEAR).any() else whole or None,
    )


def _peak(counted: pd.DataFrame, readings: pd.DataFrame, whole: bool) -> Claim:
    """Does mellowmax outperform Boltzmann at its peak, in each reading that counts?"""
    theirs = paper("fig11_lunar_lander_means").groupby("policy")["mean_return"].max()
    boltzmann, mellowmax = (theirs[SHORT[policy]] for policy in POLICIES)
    printed = f"best mean return over all episodes {mellowmax:.1f}, Boltzmann's {boltzmann:.1f}"
    if not whole:
        return Claim(PEAK, printed, "not tested by the first episodes alone", None)
    if counted.empty:
        to_the_end = readings.loc[readings["episodes"] == Config().episodes, "distance"]
        return Claim(
            PEAK,
            printed,
            f"not tested: of the {len(to_the_end)} readings that were trained to the end the "
            f"nearest is {to_the_end.min():.0f} off, and the rule asks for {COUNTS:g}",
            None,
        )
    found = (counted["difference"] > 0) & (counted["corrected"] < SURE)
    nearest = counted.loc[counted["distance"].idxmin()]
    return Claim(
        PEAK,
        printed,
        f"in {found.sum()} of {len(counted)} readings; in the nearest, {_words(nearest)}",
        "mixed" if found.any() and not found.all() else bool(found.all()),
    )


def _words(row: pd.Series[Any]) -> str:
    """A difference between two peaks, with its p value after the correction."""
    edge = f"; {row['at_edge']} at the edge of the grid" if row["at_edge"] != "none" else ""
    return (
        f"omega {row['mellowmax']:g} minus beta {row['boltzmann']:g} is {row['difference']:.1f} "
        f"(95 %: {row['low']:.1f} to {row['high']:.1f}; corrected p = {row['corrected']:.2g}; "
        f"{row['detectable']:.0f} would have been found in 80 % of such experiments{edge})"
    )


def _summary(means: pd.DataFrame, whole: bool) -> str:
    """What was found, and how much of the paper's scale it rests on."""
    full, figure = Config(), of_figure(means)
    runs, episodes = int(figure["runs"].min()), int(figure["episodes"].max())
    best, most = (
        ", ".join(
            f"{row['policy']} {row['solved']:.0%} at {row['parameter']:g}"
            for _, row in figure.loc[figure.groupby("policy")[by].idxmax()].iterrows()
        )
        for by in ("mean_return", "solved")
    )
    untested = "" if whole else "This does not test which policy is better in the end. "
    return (
        f"{untested}Best mean return over the episodes that were run: {_best(means)}. "
        f"Runs that solve the domain there: {best}; the most at any parameter: {most}. This rests "
        f"on {len(figure)} of 10 settings, {runs} of {full.runs} runs, {episodes} of "
        f"{full.episodes} episodes."
    )


def _best(means: pd.DataFrame) -> str:
    """The largest mean return of each policy in the figure."""
    return ", ".join(
        f"{policy} {rows['mean_return'].max():.0f} (paper {rows['paper'].max():.0f})"
        for policy, rows in of_figure(means).groupby("policy")
    )


def _parts(peaks: pd.DataFrame) -> str:
    """Who earns more at its peak in each part."""
    parts = "; ".join(f"{row['part']}: {_words(row)}" for _, row in peaks.iterrows())
    many = f"p values corrected for {len(peaks)} tests" if len(peaks) > 1 else "one test"
    return f"At the peaks, by part ({many}): {parts}." if parts else ""


def _gradient(gradients: pd.DataFrame) -> str:
    """What the gradient through the inverse temperature adds where mellowmax earns most."""
    if gradients.empty:
        return ""
    row = gradients.loc[gradients["through"].idxmax()]
    return (
        f"At the smaller rate the gradient through the inverse temperature adds "
        f"{row['difference']:.1f} to the mean return at omega {row['omega']:g} "
        f"(95 %: {row['low']:.1f} to {row['high']:.1f})."
    )


def _origin(tables: Mapping[str, pd.DataFrame]) -> str:
    """Where the runs were made if not here, and what was found when some were made again."""
    made, check = tables["measured"], tables["check"]
    if made.empty:
        return ""
    row = made.iloc[0]
    return (
        f"It was measured on {row['device']}, in {len(made)} cells of up to "
        f"{made['seconds'].max():.0f} s that share it ({made['at'].max()[:10]}, mellowmax "
        f"{row['mellowmax']}, JAX {row['jax']}). Of {check['parameter'].nunique()} settings the "
        f"first episodes were run again here, {check['runs'].max()} times each: they are at most "
        f"{check['standard_errors'].abs().max():.1f} standard errors off."
    )


def _reading(readings: pd.DataFrame) -> str:
    """Which reading was run, how near it is, and what it contradicts in the text."""
    compared = readings[readings["part"] == COMPARED]
    figure = pd.Series(READINGS_OF_PARTS[FIGURE].identity)
    chosen = (compared[READING] == figure).all(axis=1)
    ours, rest = compared[chosen].iloc[0], compared[~chosen]
    whole = rest[rest["episodes"] == Config().episodes]
    parts = "; ".join(
        f"{row['part']} {row['distance']:.1f} off, {_beyond_scatter(row):.1f} without the scatter "
        f"of {row['runs']} runs"
        for _, row in readings[readings["part"] != COMPARED].iterrows()
    )
    next_one = whole.loc[whole.apply(_beyond_scatter, axis=1).idxmin()]
    return (
        f"Of the readings, compared with {ours['runs']} runs of each setting, the figure's is the "
        f"nearest that was trained to the end: {ours['distance']:.1f} off in the root mean square "
        f"over {ours['episodes']:,} episodes, {_beyond_scatter(ours):.1f} without the scatter of "
        f"the runs. It contradicts the text in one thing: updates after {ours['batch']} episodes, "
        f"where {BATCH} are stated. The next one, with batches of {next_one['batch']}, rate "
        f"{next_one['learning_rate']:g}, inverse temperature {next_one['temperature']}, fallback "
        f"{next_one['fallback']}, is {_beyond_scatter(next_one):.1f} off. The parts over all their "
        f"episodes: {parts}. The part called {SMALLER_RATE} contradicts the text in one thing as "
        f"well: the learning rate."
    )


def _beyond_scatter(row: pd.Series[Any]) -> float:
    """The distance of the expected curves: that of the means, without the runs' scatter."""
    return float(max(0.0, row["distance"] ** 2 - row["scatter"] ** 2) ** 0.5)
