"""The item on averagers: its problems, what it counts in them, and verdicts by its rule."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import check_columns, check_in_short
from mellowmax import Boltzmann, Mellowmax
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.items import averagers
from mellowmax.experiments.items.averagers.problems import DISCOUNT, FINE, PROBLEMS
from mellowmax.experiments.items.averagers.verdict import BETA, COMPARED
from mellowmax.mdp import MDP
from mellowmax.planning import fixed_points

CHAINED = [
    [[0.156, 0.022, 0, 0.822], [0.998, 0, 0, 0.002]],
    [[0, 0.307, 0.066, 0.627], [0.334, 0.665, 0, 0.001]],
    [[0, 0.002, 0.202, 0.796], [0, 0.424, 0.572, 0.004]],
]
REWARDS = [[0.441, 0.027], [0.398, 0.087], [0.282, 0.008]]
BRANCHES = np.broadcast_to(np.arange(4), (3, 2, 4))
KNOWN = [
    MDP(BRANCHES, CHAINED, REWARDS, DISCOUNT),  # two limits: 3 ends the episode
    PROBLEMS["random"]([0, 0, 47]),  # no stable fixed point
    PROBLEMS["random"]([0, 0, 0]),  # one limit
    PROBLEMS["coarse line"]([0, 0, 252]),  # one limit, to which sweeps from 0 do not lead
]
KINDS = [*PROBLEMS]


@pytest.fixture(scope="module")
def cell():
    """What is counted in four problems whose fixed points are known."""
    spec = averagers.cells(averagers.SCALES["quick"])["gaussian-0"] | {"count": 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "gaussian", lambda seed: KNOWN[seed[2]])
        return averagers.run(spec)


def counts_of(failing, problems=2000, mellowmax=0):
    """A cell for each kind, in which this many problems do not settle."""
    rows = [
        {"problem": kind, "operator": operator, "parameter": parameter, "problems": problems}
        | {"failing": count, "unsettled": count, "endless": count // 2, "several": 0}
        for kind, of_boltzmann in zip(KINDS, failing, strict=True)
        for operator, count in (("boltzmann", of_boltzmann), ("mellowmax", mellowmax))
        for parameter in (5.0, BETA, 50.0)
    ]
    return averagers.tables(averagers.SCALES["paper"], {"all": pd.DataFrame(rows)})


def test_a_cell_counts_problems_with_several_limits_and_with_none(cell):
    found = [fixed_points(mdp, Boltzmann(BETA)) for mdp in KNOWN]
    assert [sum(point.stable for point in points) for points in found] == [2, 0, 1, 1]
    row = cell[(cell["operator"] == "boltzmann") & (cell["parameter"] == BETA)].iloc[0]
    names = ["problems", "failing", "unsettled", "endless", "several"]
    assert row[names].tolist() == [4, 3, 2, 1, 1]
    ours = cell[cell["operator"] == "mellowmax"]
    assert len(ours) == 3
    assert not ours[names[1:]].any(axis=None)


@pytest.mark.parametrize("softmax", [Boltzmann(BETA), Mellowmax(BETA)])
def test_sweeps_settle_where_those_of_numpy_do(cell, softmax):
    """In each of the four problems, from both initial values."""
    settled = []
    for mdp in KNOWN:
        transitions, rewards = mdp.to_numpy()
        ends = []
        for start in (0.0, 25.0):
            q = np.full(rewards.shape, start)
            for _ in range(1000):
                last, q = q, rewards + DISCOUNT * transitions @ softmax.value(q)
                if abs(q - last).max() < 1e-6:
                    break
            ends.append(abs(q - last).max() < 1e-6)
        settled.append(all(ends))
    name = "boltzmann" if isinstance(softmax, Boltzmann) else "mellowmax"
    row = cell[(cell["operator"] == name) & (cell["parameter"] == BETA)].iloc[0]
    assert row["unsettled"] == settled.count(False)


def test_the_rule_says_what_is_run():
    first, second = averagers._STARTS
    for config in averagers.SCALES.values():
        rule = f"from {first:g} or from {second:g}, which no values exceed, do not settle within "
        assert f"{rule}{config.limit}" in averagers.RULE
        assert config.tolerance == 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_of_its_kind(kind):
    """A mean of anchors, of the size that is said, and the same one for the same seed."""
    mdps = [PROBLEMS[kind]([7, 0, number]) for number in range(20)]
    sizes = {mdp.n_states for mdp in mdps}
    most = averagers._STATES.get(kind, 10)
    assert max(sizes) <= most
    if kind == "fine line":
        assert sizes == {FINE}
    elif kind == "large":
        assert all(size % 4 == 0 for size in sizes)
    assert {mdp.n_actions for mdp in mdps} <= {2, 3, 4, 5}
    assert len({mdp.to_numpy()[1].tobytes() for mdp in mdps}) == 20
    for mdp, again in zip(mdps, (PROBLEMS[kind]([7, 0, i]) for i in range(20)), strict=True):
        transitions, rewards = mdp.to_numpy()
        np.testing.assert_array_equal(again.to_numpy()[0], transitions)
        assert mdp.discount == 0.98
        assert 0 <= rewards.min() <= rewards.max() <= 0.5
        ends = 1 - transitions.sum(-1)
        assert (ends > 0).all() if "line" in kind else (abs(ends) < 1e-9).all()


def test_the_nearest_anchor_groups_states_and_a_gaussian_average_leaves_none_out():
    grouped, smooth = (PROBLEMS[kind]([7, 0, 3]).to_numpy()[0] for kind in ("nearest", "gaussian"))
    assert (smooth > 0).all()
    spread = [np.std(np.log(np.maximum(p, 1e-3)), axis=-1).mean() for p in (grouped, smooth)]
    assert spread[0] > spread[1]


@pytest.mark.parametrize("kind", ["coarse line", "fine line"])
def test_a_move_along_a_line_leads_between_two_neighbours(kind):
    for number in range(10):
        mdp = PROBLEMS[kind]([7, 0, number])
        for to in mdp.to_numpy()[0].reshape(-1, mdp.n_states):
            reached = np.flatnonzero(to)
            assert len(reached) <= 2
            assert np.ptp(reached) <= 1


def test_tables_figures_and_words_are_as_they_are_described(cell):
    assert list(cell.columns) == list(averagers.COLUMNS["shares"])[: len(cell.columns)]
    tables = counts_of([140, 10, 12, 15, 20, 18])
    check_columns(averagers, tables)
    with style.styled():
        assert set(averagers.plot(tables)) == set(averagers.CAPTIONS)
    check_in_short(averagers.judge(tables))
    check_in_short(averagers.judge(counts_of([0] * 6, mellowmax=3)))


def test_cells_that_are_cut_add_up():
    config = dataclasses.replace(averagers.SCALES["paper"], problems=2300)
    specs = averagers.cells(config)
    for kind in KINDS:
        own = [spec for spec in specs.values() if spec["problem"] == kind]
        numbers = [i for s in own for i in range(s["first"], s["first"] + s["count"])]
        assert numbers == [*range(2300)]
    half = counts_of([70, 5, 6, 7, 10, 9], problems=1000)["shares"]
    columns = ["problem", "operator", "parameter", "problems"]
    columns += ["failing", "unsettled", "endless", "several"]
    twice = averagers.tables(config, {"one": half[columns], "other": half[columns]})
    once = averagers.tables(config, {"all": half[columns]})
    assert (twice["shares"]["failing"] == 2 * once["shares"]["failing"]).all()
    widths = [t["shares"]["high"] - t["shares"]["low"] for t in (twice, once)]
    assert (widths[0] < widths[1]).all()


@pytest.mark.parametrize(
    ("failing", "holds"),
    [
        ([140, 10, 10, 10, 20, 20], [False, False, False, False, False]),
        ([10, 10, 10, 140, 20, 20], [False, True, False, True, False]),
        ([100, 100, 100, 115, 20, 80], [None, None, None, None, True]),
        ([0, 0, 0, 0, 0, 0], [False, False, False, False, False]),
    ],
)
def test_a_comparison_is_judged_by_the_rule(failing, holds):
    verdict = averagers.judge(counts_of(failing))
    *compared, can_fail, never = verdict.claims
    assert [claim.holds for claim in compared] == holds
    assert can_fail.holds is any(failing[KINDS.index(k)] for k in averagers.verdict._AVERAGED)
    assert never.holds is True
    assert (verdict.outcome is Outcome.UNDECIDED) == (None in holds)
    assert f"fails more in {holds.count(True)} of 5" in verdict.in_short


def test_one_failure_of_mellowmax_refutes_it():
    verdict = averagers.judge(counts_of([0] * 6, mellowmax=1))
    assert verdict.claims[-1].holds is False
    assert verdict.outcome is Outcome.NOT


def test_a_difference_is_found_by_chance_at_most_once_in_20_times():
    """A test that is right fails here once in a million times: 150 verdicts, each at most 5 %."""
    rng, shares = np.random.default_rng(0), counts_of([0] * 6)["shares"]
    mine = (shares["operator"] == "boltzmann") & (shares["parameter"] == BETA)
    found = 0
    for failing in rng.binomial(2000, 0.03, (150, len(KINDS))):
        shares.loc[mine, "failing"] = failing
        compared = averagers._comparisons(shares)
        assert len(compared) == len(COMPARED)
        found += bool((compared["corrected"] < 0.05).any())
    assert found <= 23
