"""The item on all of reinforcement learning: cells that are resumed, and verdicts by its rule."""

from __future__ import annotations

import dataclasses
import json
import types

import numpy as np
import pandas as pd
import pytest

from helpers.reproduced import check_columns, check_in_short
from mellowmax.deep import DivergedError, ppo
from mellowmax.environments import two_state
from mellowmax.experiments import Outcome, style
from mellowmax.experiments.item import LongItem, Stopped, Work
from mellowmax.experiments.items import throughout
from mellowmax.experiments.items.throughout import learners, training, verdict
from mellowmax.softmax import Boltzmann

CONFIG = throughout.Config()
SPEC = {
    "algorithm": "ppo",
    "environment": "cartpole",
    "softmax": "boltzmann",
    "parameters": [1.0, 3.0],
    "learning_rates": [0.001, 0.03],
    "steps": 320,
    "choosing": 3,
    "judging": 2,
    "seed": 7,
}


def small_learner(algorithm, softmax, parameters, rates, environment):
    return ppo(Boltzmann(parameters), rates, environments=2, steps=8, epochs=2,
               network=learners.mlp(8, 1))  # fmt: skip


@pytest.fixture
def two_states(monkeypatch):
    """The two states stand in for the cart, which takes longer to compile."""
    monkeypatch.setattr(training, "environment_of", lambda name: two_state.params())
    monkeypatch.setattr(training, "learner_of", small_learner)
    monkeypatch.setitem(training.REFERENCES, "cartpole", (0.0, 2.0))


def made_up(shift=0.0, spread=0.2, runs=40, environments=CONFIG.environments, seed=0):
    """The tables of runs whose scores are normal; mellowmax's are higher by the shift."""
    rng = np.random.default_rng(seed)
    rows = []
    for algorithm in CONFIG.algorithms:
        for environment in environments:
            for softmax in throughout.SOFTMAXES:
                for stage, first, count in (("choosing", 0, 10), ("judging", 10, runs)):
                    score = 0.5 + spread * rng.normal(size=count)
                    score += shift * (softmax == "mellowmax")
                    part = {"algorithm": algorithm, "environment": environment, "stage": stage}
                    part |= {"softmax": softmax, "run": first + np.arange(count), "score": score}
                    rows.append(pd.DataFrame(part))
    whole = pd.concat(rows, ignore_index=True)
    whole = whole.assign(parameter=1.0, learning_rate=1e-3, last_return=0.0, diverged=False)
    return throughout.tables(CONFIG, {"all": whole})


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch):
    monkeypatch.setattr(throughout, "RESAMPLES", 500)


@pytest.fixture(scope="module")
def even():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(throughout, "RESAMPLES", 500)
        yield made_up()


def test_a_cell_chooses_on_some_runs_and_is_judged_on_others(two_states, tmp_path):
    """And it is the same if it was stopped in either part."""
    assert isinstance(throughout, LongItem)
    whole = throughout.run(SPEC)
    assert whole["run"].tolist() == [0, 1, 2] * 4 + [3, 4]
    assert len(set(whole["last_return"])) == len(whole)
    chosen = whole[whole["stage"] == "choosing"]
    best = chosen.groupby(["parameter", "learning_rate"])["score"].mean().idxmax()
    judged = whole[whole["stage"] == "judging"]
    assert {*zip(judged["parameter"], judged["learning_rate"], strict=True)} == {best}
    np.testing.assert_allclose(whole["score"], whole["last_return"] / 2)
    for limit in (0.3, 0.9):
        with pytest.raises(Stopped):
            throughout.resume(SPEC, Work(tmp_path, lambda share, limit=limit: share > limit))
    shares = []
    again = throughout.resume(SPEC, Work(tmp_path, lambda share: bool(shares.append(share))))
    pd.testing.assert_frame_equal(again, whole)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_setting_that_diverges_scores_nothing_and_the_others_stay(two_states, monkeypatch):
    whole, train = throughout.run(SPEC), training.train_in_cell
    bad = (1.0, 0.03)

    def fail(work, learner, *arguments, **options):
        settings = zip(learner.softmax.beta, learner.learning_rate, strict=True)
        for i, setting in enumerate(settings):
            if setting == bad:
                raise DivergedError(i * len(options["runs"]) + 1, "weight", "after 3 steps")
        return train(work, learner, *arguments, **options)

    monkeypatch.setattr(training, "train_in_cell", fail)
    got = throughout.run(SPEC)
    lost = (got["parameter"] == bad[0]) & (got["learning_rate"] == bad[1])
    chosen = got["stage"] == "choosing"
    assert got["diverged"].equals(lost)
    assert (got.loc[lost, "score"] == 0).all()
    assert lost.sum() == 3
    kept = chosen & ~lost
    pd.testing.assert_frame_equal(got[kept], whole[kept])


@pytest.mark.parametrize(("highest", "chosen"), [(0.01, 0.001), (0.0, 0.001), (1.0, 0.03)])
def test_a_setting_that_diverges_is_chosen_only_if_all_do(highest, chosen, monkeypatch):
    """Though its score of 0 is more than that of the others, who earn less than at random."""

    def train(work, learner, *arguments, **options):
        rates = np.asarray(learner.learning_rate)
        if (rates > highest).any():
            raise DivergedError(
                int((rates > highest).argmax()) * len(options["runs"]), "weight", ""
            )
        played = np.ones((len(rates), len(options["runs"]), 1)) * -300 + 100 * rates[:, None, None]
        return types.SimpleNamespace(returns=played, lengths=np.full(played.shape, 40))

    monkeypatch.setattr(training, "train_in_cell", train)
    spec = SPEC | {"environment": "lunar_lander", "parameters": [1.0]}
    table = throughout.run(spec)
    assert set(table[table["stage"] == "judging"]["learning_rate"]) == {chosen}


def test_what_counts_is_the_last_tenth_of_the_steps():
    returns = np.array([[1.0, 2.0, 3.0, 5.0], [7.0, np.nan, np.nan, np.nan], [np.nan] * 4])
    lengths = np.array([[50, 40, 1, 9], [30, 0, 0, 0], [0, 0, 0, 0]])
    got = training.last_tenth(returns, lengths, 100)
    np.testing.assert_array_equal(got, [4.0, 7.0, np.nan])


@pytest.mark.parametrize(
    ("shift", "spread", "answer", "holds"),
    [
        (0.1, 0.2, "better", True),
        (0.0, 0.05, "as good", True),
        (0.0, 0.4, "undecided", None),
        (-0.1, 0.2, "worse", False),
        (0.02, 0.05, "better", True),  # by less than the margin, but for certain
    ],
)
def test_the_verdict_is_by_the_rule(shift, spread, answer, holds):
    """The standard error of D is about spread / 11: the first one is 5 of them from 0."""
    tables = made_up(shift, spread)
    found = throughout.judge(tables)
    assert [claim.holds for claim in found.claims] == [holds] * 4
    assert all(claim.ours.startswith(f"{answer}: ") for claim in found.claims)
    assert found.summary.startswith("Mellowmax against Boltzmann, 40 runs in each of 8 env")
    assert f"PPO {answer}" in found.in_short


def test_a_larger_middle_is_not_better_if_runs_do_not_improve():
    """Both intervals count: of the scores' middle half, and of the chance of a higher score."""
    row = {"environments": 8, "runs": 40, "low": 0.01, "high": 0.2}
    row |= {"improvement_low": 0.49, "improvement_high": 0.6}
    assert verdict._answer(row) == "undecided"
    assert verdict._answer(row | {"improvement_low": 0.51}) == "better"
    row |= {"low": -0.2, "high": -0.01}
    assert verdict._answer(row) == "undecided"
    assert verdict._answer(row | {"improvement_high": 0.49}) == "worse"


@pytest.mark.parametrize("few", [{"runs": 39}, {"environments": CONFIG.environments[:7]}])
def test_too_little_is_not_judged(few):
    found = throughout.judge(made_up(0.3, **few))
    assert found.outcome is Outcome.UNDECIDED
    assert [claim.holds for claim in found.claims] == [None] * 4
    assert found.summary.startswith("Too little was run to judge: it takes 40 runs in each of 8")
    assert found.in_short == "Mellowmax in Boltzmann's place: undecided at this scale."
    check_in_short(found)


def test_tables_and_figures_are_as_they_are_described(even, tmp_path):
    check_columns(throughout, even)
    for table in even.values():
        table.to_parquet(tmp_path / "table.parquet")  # which has no objects in its columns
    with style.styled():
        assert set(throughout.plot(even)) == set(throughout.CAPTIONS)
    assert set(throughout.SETTINGS) == {field.name for field in dataclasses.fields(CONFIG)}


@pytest.mark.release
def test_a_false_better_or_worse_is_rare():
    """In 8 experiments of four algorithms without a difference: intervals miss 0 in 1.25 %.

    More than 3 of 32 would be seen once in 1,000 times.
    """
    wrong = 0
    for seed in range(8):
        for row in made_up(seed=seed, spread=0.3)["differences"].to_dict("records"):
            wrong += verdict._answer(row) in ("better", "worse")
    assert wrong <= 3


def test_specifications_are_plain_and_complete():
    for config in throughout.SCALES.values():
        cells = throughout.cells(config)
        assert len(cells) == len(config.environments) * len(config.algorithms) * 2
        assert len({spec["seed"] for spec in cells.values()}) == len(cells)
        for name, spec in cells.items():
            assert json.loads(json.dumps(spec)) == spec
            other = cells[name.replace("mellowmax", "boltzmann")]  # omega is twice beta
            factor = 2 if spec["softmax"] == "mellowmax" else 1
            assert np.allclose(spec["parameters"], factor * np.array(other["parameters"]))
            same = ("learning_rates", "steps", "choosing", "judging")
            assert [spec[x] for x in same] == [other[x] for x in same]
    assert set(learners.REFERENCES) == set(CONFIG.environments)
    assert {*learners.CLASSIC, *learners.LIMITS} == set(CONFIG.environments)
    assert len(CONFIG.environments) == verdict.ENVIRONMENTS
    assert CONFIG.judging == verdict.ENOUGH


@pytest.mark.parametrize("algorithm", CONFIG.algorithms)
def test_every_learner_can_be_made(algorithm):
    for environment in ("acrobot", "freeway"):
        for softmax in throughout.SOFTMAXES:
            learner = learners.learner_of(algorithm, softmax, *np.ones((2, 3)), environment)
            assert type(learner).__name__.lower() == algorithm
            assert type(learner.softmax).__name__.lower() == softmax
