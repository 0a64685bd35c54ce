"""The item on uniqueness: a game with three equilibria, random games, and verdicts by its rule."""

from __future__ import annotations

import dataclasses

import mpmath
import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import check_columns, check_in_short
from mellowmax import Boltzmann, Mellowmax
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import uniqueness
from mellowmax.experiments.items.uniqueness.verdict import MARGIN, PAYOFFS, changes
from mellowmax.games import Game, equilibria

CONFIG = uniqueness.Config(games=6, larger=2, betas=(20.0,), omegas=(20.0, 100.0))


@pytest.fixture(scope="module")
def cells():
    return {name: uniqueness.run(spec) for name, spec in uniqueness.cells(CONFIG).items()}


@pytest.fixture(scope="module")
def tables(cells):
    return uniqueness.tables(CONFIG, cells)


def exact_answer(left):
    """Mellowmax's answer to its answer, in 30 digits, with roots of its defining equation."""

    def policy(values):
        mean = mpmath.fsum(map(mpmath.exp, values)) / len(values)
        apart = [q - mpmath.log(mean) for q in values]
        beta = mpmath.findroot(
            lambda b: mpmath.fsum(d * mpmath.exp(b * (d - max(apart))) for d in apart),
            (0, 1),
            solver="bisect",
            verify=False,
        )
        weights = [mpmath.exp(beta * (d - max(apart))) for d in apart]
        return [w / mpmath.fsum(weights) for w in weights]

    row = policy([left * own[0] + (1 - left) * own[1] for own in PAYOFFS])
    lost = [mpmath.fdot(row, column) for column in zip(*PAYOFFS, strict=True)]
    return policy([-one for one in lost])[0]


def test_the_answers_are_those_of_exact_arithmetic(tables):
    """So that their signs, more than 1e-6 from 0, are proved: three changes of them."""
    ours = tables["answers"].query("softmax == 'mellowmax'").set_index("left")["away"]
    signs = []
    for left in (0.48, 0.5, 0.518, 0.53):
        place = ours.index[abs(ours.index - left).argmin()]
        with mpmath.workdps(30):
            exact = exact_answer(mpmath.mpf(float(place))) - mpmath.mpf(float(place))
        assert ours.loc[place] == pytest.approx(float(exact), abs=1e-11)
        assert abs(exact) > MARGIN
        signs.append(int(mpmath.sign(exact)))
    assert signs == [1, -1, 1, -1]


def test_there_are_as_many_equilibria_as_changes(tables):
    for name, count in (("mellowmax", 3), ("boltzmann", 1)):
        own = tables["equilibria"].query("softmax == @name")
        assert changes(tables["answers"], name) == len(own) == count
        assert own["index"].sum() == 1
    found = tables["equilibria"].query("softmax == 'mellowmax'")["left"]
    assert found.tolist() == pytest.approx([0.4847896153, 0.5143938095, 0.5210251060], abs=1e-9)


def test_the_verdict_is_by_the_answers_alone(tables):
    verdict = uniqueness.judge(tables)
    assert verdict.outcome is Outcome.NOT
    check_in_short(verdict)
    once = tables["answers"].assign(away=0.5 - tables["answers"]["left"])
    assert uniqueness.judge(tables | {"answers": once}).outcome is Outcome.UNDECIDED
    near = tables["answers"].assign(away=MARGIN / 2 * tables["answers"]["away"])
    assert uniqueness.judge(tables | {"answers": near}).outcome is Outcome.UNDECIDED
    none = tables["counts"].assign(several=0, share=0.0)
    assert uniqueness.judge(tables | {"counts": none}).outcome is Outcome.NOT


def test_random_games_are_counted(tables):
    counts = tables["counts"].set_index(["kind", "softmax", "parameter"])
    assert len(counts) == 9
    for parameter, softmax in ((20.0, Boltzmann(20.0)), (100.0, Mellowmax(100.0))):
        name = "boltzmann" if isinstance(softmax, Boltzmann) else "mellowmax"
        games = [Game(np.random.default_rng([3611, 0, i]).random((2, 2, 2))) for i in range(6)]
        found = [equilibria(game, softmax) for game in games]
        row = counts.loc["2 x 2", name, parameter]
        assert row["several"] == sum(len(each) > 1 for each in found)
        assert row["proved"] == sum(each.complete for each in found) == 6
        assert row["equilibria"] == sum(map(len, found))
        regrets = [point.regret for each in found for point in each]
        assert row["regret"] == pytest.approx(np.mean(regrets))
    logit = counts.loc["zero-sum 3 x 2", "boltzmann", 20.0]
    assert (logit["several"], logit["proved"], logit["games"]) == (0, 2, 2)


def test_cells_that_are_cut_add_up(cells):
    config = dataclasses.replace(uniqueness.SCALES["paper"], games=600)
    own = [spec for spec in uniqueness.cells(config).values() if spec["kind"] == "2 x 2"]
    assert [i for s in own for i in range(s["first"], s["first"] + s["count"])] == [*range(600)]
    once = uniqueness.tables(CONFIG, cells)["counts"]
    again = {f"{name}-again": cell for name, cell in cells.items() if name != "game"}
    twice = uniqueness.tables(CONFIG, cells | again)["counts"]
    assert (twice["several"] == 2 * once["several"]).all()
    pd.testing.assert_series_equal(twice["regret"], once["regret"])


def test_tables_figures_and_words_are_as_they_are_described(tables):
    check_columns(uniqueness, tables)
    with style.styled():
        assert set(uniqueness.plot(tables)) == set(uniqueness.CAPTIONS)
    verdict = uniqueness.judge(tables)
    assert len(verdict.beside) == 3
    assert verdict.summary.endswith(".")
