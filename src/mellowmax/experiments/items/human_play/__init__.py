"""Human play, beyond the paper: does mellowmax serve in models of how people choose?

Section 8 of the paper says that mellowmax could make a good replacement of logit in quantal
response and quantal level-k. Here both models are fitted with both softmaxes to what people did in
games that they played once, paper by paper, and judged by the games that a fit leaves out. All of
these games had been looked at before the rule was written, so that the verdict waits for others.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from ....games import Game, fit, human_play
from ....softmax import SOFTMAXES
from ...item import NAMES, Spec
from .figures import draw_gains
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import MODELS, SEEN, judge, totals

__all__ = [*NAMES]

VERSION = 2
_SOFTMAXES = ("boltzmann", "mellowmax")
_QUICK = (
    "Stahl and Wilson (1994)",
    "Goeree and Holt (2001)",
    "Rydval and Ortmann (2005)",
    "Kuelpmann and Kuzmics, matching pennies",
)


@dataclasses.dataclass(frozen=True)
class Config:
    """What is fitted."""

    papers: tuple[str, ...]
    """Each is fitted by itself."""
    models: tuple[str, ...] = tuple(MODELS)
    """Quantal response, with one parameter, and quantal level-k, with five."""


SCALES: Mapping[str, Config] = {"quick": Config(_QUICK), "paper": Config(human_play().papers)}
SECONDS = {"quick": 15.0, "paper": 200.0}


def cells(config: Config) -> dict[str, Spec]:
    """A cell for each paper, model and softmax."""
    return {
        f"{_slug(paper)}-{model}-{softmax}": {"paper": paper, "model": model, "softmax": softmax}
        for paper in config.papers
        for model in config.models
        for softmax in _SOFTMAXES
    }


def _slug(paper: str) -> str:
    return re.sub("[^a-z0-9]+", "-", paper.lower()).strip("-")


def run(spec: Spec) -> pd.DataFrame:
    """Fit a model to the games of a paper: how likely each game is, and is if it is left out."""
    played = human_play().of(spec["paper"])
    found = fit(
        [one.game for one in played],
        [one.counts for one in played],
        SOFTMAXES[spec["softmax"]],
        model=spec["model"],
    )
    return pd.DataFrame(
        {
            **spec,
            "game": [one.game.title for one in played],
            "payoffs": [_payoffs(one.game) for one in played],
            "decisions": [one.decisions for one in played],
            "uniform": found.uniform,
            "fitted": found.log_likelihoods,
            "left_out": found.left_out,
        }
    )


def _payoffs(game: Game) -> str:
    """Payoffs as a text: games that are called otherwise can have the same."""
    return str([payoff.tolist() for payoff in game.payoffs])


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The two softmaxes side by side, for each game, for each paper, and in total."""
    whole = pd.concat(cells.values(), ignore_index=True)
    sides = []
    for name in _SOFTMAXES:
        own = whole[whole["softmax"] == name].drop(columns="softmax").reset_index(drop=True)
        if name == "mellowmax":
            own = own[["fitted", "left_out"]]
        sides.append(own.rename(columns={"fitted": name, "left_out": f"{name}_left_out"}))
    games = pd.concat(sides, axis=1)
    games["gain"] = games["mellowmax_left_out"] - games["boltzmann_left_out"]
    games["fresh"] = ~games["paper"].isin(SEEN)
    games["payoffs"] = pd.factorize(games["payoffs"])[0]
    keys = ["paper", "model", "fresh"]
    numbers = list(COLUMNS["papers"])[len(keys) + 1 :]
    of_papers = games.groupby(keys, sort=False)
    papers = of_papers[numbers].sum().reset_index()
    papers.insert(len(keys), "games", of_papers.size().to_numpy())
    return {"games": games[list(COLUMNS["games"])], "papers": papers, "totals": totals(games)}


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """What mellowmax gains over logit in each paper."""
    return {"gains": draw_gains(tables["papers"])}
