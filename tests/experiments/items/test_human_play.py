"""The item on human play: what its tables hold, and verdicts by its rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import check_columns, check_in_short
from mellowmax import Boltzmann, Mellowmax
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import human_play as item
from mellowmax.experiments.items.human_play.verdict import SEEN, decided, totals
from mellowmax.games import fit, human_play

PAPER = "Kuelpmann and Kuzmics, matching pennies"
CONFIG = item.Config((PAPER,))


@pytest.fixture(scope="module")
def tables():
    cells = {name: item.run(spec) for name, spec in item.cells(CONFIG).items()}
    return item.tables(CONFIG, cells)


def of(paper, gains, payoffs=None):
    """Games of a paper in which mellowmax gains this much, under both models."""
    rows = [
        {"paper": paper, "model": model, "game": str(k), "gain": gain, "decisions": 50.0}
        | {"payoffs": k if payoffs is None else payoffs[k], "fresh": paper not in SEEN}
        | dict.fromkeys(("uniform", "boltzmann", "mellowmax"), -1.0)
        | dict.fromkeys(("boltzmann_left_out", "mellowmax_left_out"), -1.0)
        for model, own in gains.items()
        for k, gain in enumerate(own)
    ]
    return pd.DataFrame(rows)


def verdict_of(games):
    return item.judge({"totals": totals(games)})


def test_the_score_is_that_of_games_left_out(tables):
    played = human_play().of(PAPER)
    games, counts = [one.game for one in played], [one.counts for one in played]
    gains = {}
    for model, family in (("qre", Boltzmann), ("qre", Mellowmax), ("qlk", Boltzmann)):
        found = fit(games, counts, family, model=model)
        row = tables["papers"].query("model == @model").iloc[0]
        assert row[family.__name__.lower()] == pytest.approx(found.log_likelihood)
        if model == "qre":
            gains[family] = found.left_out.sum()
    gain = gains[Mellowmax] - gains[Boltzmann]
    for table in ("papers", "totals"):
        (found,) = tables[table].query("model == 'qre'")["gain"]
        assert found == pytest.approx(gain, abs=1e-9)


def test_all_games_that_are_here_had_been_looked_at(tables):
    assert set(human_play().papers) == set(SEEN)
    verdict = item.judge(tables)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "Not decided on fresh data, of which there are none" in verdict.summary
    check_in_short(verdict)


@pytest.mark.parametrize(
    ("zs", "holds"),
    [
        ((2.1, 2.1), True),
        ((2.1, 1.9), "mixed"),
        ((2.1, -1.9), "mixed"),
        ((2.1, -2.1), False),
        ((0.0, -2.1), False),
        ((1.9, -1.9), None),
        ((np.nan, 5.0), None),
    ],
)
def test_the_rule(zs, holds):
    assert decided(dict(zip(("qre", "qlk"), zs, strict=True))) == holds


def test_fresh_games_decide_and_those_seen_do_not(rng):
    better, worse = (rng.normal(mean, 1.0, 40) for mean in (2.0, -2.0))
    gains = {"qre": better, "qlk": better}
    seen = of(SEEN[0], {"qre": worse, "qlk": worse})
    verdict = verdict_of(pd.concat([seen, of("Another (2027)", gains)]))
    assert verdict.outcome is Outcome.REPRODUCED
    assert "Of the games that had been looked at this is a report only" in verdict.summary
    assert verdict_of(seen).outcome is Outcome.UNDECIDED
    mixed = of("Another (2027)", {"qre": better, "qlk": better - better.mean()})
    assert verdict_of(mixed).outcome is Outcome.PARTLY
    against = of("Another (2027)", {"qre": better, "qlk": worse})
    assert verdict_of(against).outcome is Outcome.NOT
    for games in (seen, mixed, against):
        check_in_short(verdict_of(games))


def test_games_with_the_same_payoffs_count_once(rng):
    """A game that is there twice adds no evidence."""
    gains = rng.normal(0.3, 1.0, 20)
    once = of("Another (2027)", {"qre": gains, "qlk": gains})
    twice = of(
        "Another (2027)",
        dict.fromkeys(("qre", "qlk"), np.tile(gains, 2)),
        payoffs=[*range(20), *range(20)],
    )
    alone, doubled = (totals(games).iloc[0] for games in (once, twice))
    assert doubled["z"] == pytest.approx(alone["z"])
    assert doubled["gain"] == pytest.approx(2 * alone["gain"])
    # It is Student's statistic of the mean.
    assert alone["z"] == pytest.approx(gains.mean() / (gains.std(ddof=1) / 20**0.5))


def test_tables_figures_and_words_are_as_they_are_described(tables):
    check_columns(item, tables)
    with style.styled():
        assert set(item.plot(tables)) == set(item.CAPTIONS)
    assert len({*item.cells(item.SCALES["paper"])}) == 4 * len(SEEN)
