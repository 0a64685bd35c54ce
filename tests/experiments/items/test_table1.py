"""The table of section 7.1 in miniature: its counts against others, and a verdict that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.reproduced import CONFIGS, DELTAS, made
from mellowmax import Boltzmann
from mellowmax.experiments import Outcome
from mellowmax.experiments.items import table1
from mellowmax.experiments.items.table1.printed import PRINTED, z_of_a_count, z_of_settings
from mellowmax.mdp import random_mdp
from mellowmax.planning.batch import Batch, find_fixed_points, value_iteration


def test_the_table_counts_what_sweeps_and_search_give():
    rates = made("table1")[1]["rates"]
    n, seed = CONFIGS["table1"].rates, CONFIGS["table1"].seed
    mdps = Batch.of([random_mdp([seed, number]) for number in range(n)])
    options = {"tolerances": [10.0**exponent for exponent in DELTAS], "max_iterations": 100}
    run = value_iteration(mdps, Boltzmann(3.0), discount=0.98, **options)
    mine = rates[(rates.beta == 3.0) & (rates.discount == 0.98) & (rates.operator == "boltz")]
    mine = mine[(mine.delta == 1e-3) & (mine.sweeps == "in place")].iloc[0]
    counts = np.where(run.converged[2], run.iterations[2], 100)
    assert mine.mdps == n
    assert mine.iterations == pytest.approx(counts.mean(), rel=1e-12)
    assert mine.error == pytest.approx(counts.std(ddof=1) / n**0.5, rel=1e-9)
    assert 0 < mine.unterminated == (~run.converged[2]).sum() < n
    several = find_fixed_points(mdps, Boltzmann(3.0), discount=0.98).counts > 1
    assert mine.several == several.sum()
    assert mine.several_low <= mine.several / n <= mine.several_high
    sample = made("table1")[1]["sample"]
    assert (sample.mdps == 200).all()


def printed_rows(n=200):
    """A table of rates in which every setting has the printed numbers."""
    rates = made("table1")[1]["rates"].copy()
    for (operator, name), value in PRINTED.items():
        chosen = rates.operator == operator
        if name == "iterations":
            rates.loc[chosen, ["iterations", "terminated_iterations"]] = value
        else:
            rates.loc[chosen, name] = int(value) * n // 200
    return rates.assign(mdps=n, error=2.0, terminated_error=2.0)


def test_the_paper_itself_passes_the_table():
    rates = printed_rows()
    tables = {"rates": rates, "sample": rates, "settings": z_of_settings(rates)}
    assert (tables["settings"].reproduced == 6).all()
    assert table1.judge(tables).outcome is Outcome.REPRODUCED


def test_the_table_can_fail():
    rates = printed_rows(20_000)
    rates["iterations"] += 500.0
    rates["terminated_iterations"] += 500.0
    rates.loc[rates.operator == "mm", ["unterminated", "several"]] = 3_000
    rates.loc[rates.operator == "boltz", ["unterminated", "several"]] = 2_000
    tables = {"rates": rates, "sample": rates, "settings": z_of_settings(rates)}
    verdict = table1.judge(tables)
    assert verdict.outcome is Outcome.NOT
    assert "Iterations on average, mm" in verdict.summary


def test_what_is_0_by_theorem_is_marked_and_only_that():
    """A contraction by 0.9 takes 100 sweeps for a delta of 1e-3, and more than 1000 for 1e-47."""
    rates = printed_rows()
    rates = rates[(rates.delta == 1e-3) & (rates.discount == 0.9)]

    def marked(delta):
        own = rates.assign(delta=delta)
        tables = {"rates": own, "sample": own, "settings": z_of_settings(own)}
        verdict = table1.judge(tables)
        assert f"{len(PRINTED)} of six numbers" in verdict.in_short
        return [c.statement for c in verdict.claims if "(0 by theorem)" in c.statement]

    assert marked(1e-3) == [
        "MDPs that did not terminate in 1000 iterations, mm (0 by theorem).",
        "MDPs with more than one fixed point, mm (0 by theorem).",
    ]
    assert marked(1e-47) == ["MDPs with more than one fixed point, mm (0 by theorem)."]


def test_a_nearest_setting_that_changes_with_the_number_of_mdps_is_said():
    tables = made("table1")[1]
    settings = tables["settings"][tables["settings"].sweeps == "in place"]
    sample = z_of_settings(tables["sample"][tables["sample"].sweeps == "in place"])
    own, few = (t.loc[t.distance.idxmin(), ["beta", "delta"]] for t in (settings, sample))
    summary = table1.judge(tables).summary
    assert ("It is the same with the first 200" in summary) == own.equals(few)
    far = tables["sample"].assign(iterations=900.0, terminated_iterations=900.0)
    far.loc[(far.beta == 10.0) & (far.delta == 0.1), ["iterations", "terminated_iterations"]] = 220
    changed = table1.judge({**tables, "sample": far}).summary
    assert "with the first 200 alone, as many as the paper has, it is beta = omega = 10," in changed


def test_a_count_is_compared_by_the_binomial_range():
    """With very many MDPs, Fisher's test is the exact binomial one."""
    assert abs(z_of_a_count(8, 40_000, 1_000_000)) < 0.1
    assert z_of_a_count(8, 7_000, 1_000_000) < -3
    assert z_of_a_count(3, 100_000, 1_000_000) > 3
    assert z_of_a_count(0, 0, 100_000) == 0
