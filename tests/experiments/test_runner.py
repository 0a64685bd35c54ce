"""Plans, cells and their store, without an item's own work."""

from __future__ import annotations

import dataclasses
import time
import types

import numpy as np
import pandas as pd
import pytest

from mellowmax._common.locks import only_one
from mellowmax.cli.reproduce import make_cells
from mellowmax.experiments import ITEMS, Claim, Outcome, Plan, Verdict, load, plan, run, runner
from mellowmax.experiments.intervals import share_interval
from mellowmax.experiments.item import Stopped
from mellowmax.experiments.store import Store, read_table, write_table


def planned(directory, cells=("a", "b", "c"), **names):
    """A plan for an item that has these names beside its version."""
    item = types.SimpleNamespace(VERSION=1, SECONDS={"quick": 30.0}, **names)
    paths = {name: ({"name": name}, directory / f"{name}.key.parquet") for name in cells}
    return Plan("item", "quick", item, None, paths, 0)


def table(spec):
    return pd.DataFrame({"name": [spec["name"]]})


def test_a_run_makes_what_is_missing_and_reports_each_cell(tmp_path):
    one = planned(tmp_path, run=table)
    write_table(tmp_path / "b.key.parquet", table({"name": "b"}))
    assert one.missing == ["a", "c"]
    assert one.estimate == pytest.approx(20.0)
    reports = []
    assert run(one, reports.append)
    assert [(p.item, p.cell, p.done, p.total, p.made) for p in reports] == [
        ("item", "a", 2, 3, 1),
        ("item", "c", 3, 3, 2),
    ]
    assert 0 < reports[0].seconds < reports[1].seconds
    made, made_by = read_table(tmp_path / "c.key.parquet")
    assert made["name"].tolist() == ["c"]
    assert (made_by["cell"], made_by["spec"]) == ("c", {"name": "c"})
    assert one.missing == []
    assert one.estimate == 0


def test_a_callback_that_returns_true_stops_a_run(tmp_path):
    one = planned(tmp_path, run=table)
    assert not run(one, lambda progress: True)
    assert one.missing == ["b", "c"]


class LongItem:
    """Its cells take ten steps, of which each is kept."""

    TITLE = SOURCE = RULE = ""
    VERSION, SECONDS, COLUMNS, DEVIATIONS, SCALES = 1, {"quick": 30.0}, {}, (), {}
    CAPTIONS, SETTINGS = {}, {}
    cells = tables = plot = judge = run = print

    def __init__(self, seconds_of_a_step=0.0):
        self.steps, self.seconds_of_a_step = 0, seconds_of_a_step

    def resume(self, spec, work):
        kept = work.directory / "steps"
        done = int(kept.read_text()) if kept.exists() else 0
        for step in range(done + 1, 11):
            self.steps += 1
            time.sleep(self.seconds_of_a_step)
            kept.write_text(str(step))
            if work.callback(step / 10):
                raise Stopped
        return table(spec)


def test_a_long_cell_reports_within_and_is_resumed_where_it_was_stopped(tmp_path):
    item = LongItem()
    paths = {"a": ({"name": "a"}, tmp_path / "a.key.parquet")}
    one = Plan("item", "quick", item, None, paths, 0)
    reports = []

    def stop_at_four(progress):
        reports.append(progress.done)
        return progress.done >= 0.4

    assert not run(one, stop_at_four)
    assert reports == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert one.missing == ["a"]
    assert run(one, lambda progress: reports.append(progress.done))
    assert item.steps == 10  # none was made twice
    assert reports[-2:] == [0.999, 1.0]  # it is done when it is on disk
    assert [path.name for path in tmp_path.iterdir()] == ["a.key.parquet"]


def test_processes_with_one_directory_share_its_long_cells(tmp_path, capsys):
    """What another process is at is left out, and what it has made meanwhile is not made again."""

    class Locked(LongItem):
        def resume(self, spec, work):
            with only_one("checkpoint", work.directory):
                if spec["name"] == "a":
                    write_table(tmp_path / "c.key.parquet", table({"name": "of another process"}))
                return super().resume(spec, work)

    paths = {name: ({"name": name}, tmp_path / f"{name}.key.parquet") for name in "abcd"}
    one = Plan("item", "quick", Locked(), None, paths, 0)
    held = tmp_path / "b.key.part"
    held.mkdir()
    reports = []
    with only_one("checkpoint", held):
        assert not run(one, reports.append)
        assert make_cells([one], tmp_path, lambda: False, quiet=True)
    assert capsys.readouterr().err == "item: other processes are still making b\n"
    assert one.missing == ["b"]
    assert read_table(tmp_path / "c.key.parquet")[0]["name"].tolist() == ["of another process"]
    assert (reports[-1].made, reports[-1].done, reports[-1].total) == (2, 3, 4)
    assert run(one, lambda progress: None)


def test_a_cell_s_time_has_that_before_it_was_stopped_and_not_that_between(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "SECONDS_BETWEEN", 0.0)
    path = tmp_path / "a.key.parquet"
    one = Plan("item", "quick", LongItem(0.02), None, {"a": ({"name": "a"}, path)}, 0)
    began = time.perf_counter()
    assert not run(one, lambda progress: progress.done >= 0.8)
    time.sleep(1.0)
    assert run(one, lambda progress: None)
    assert 10 * 0.02 <= read_table(path)[1]["seconds"] < time.perf_counter() - began - 0.9


@pytest.mark.parametrize(
    ("names", "scale", "sentence"),
    [
        (["fig1"], "quick", r"`names` must be among fig2, .*, got 'fig1'"),
        ([], "huge", r"`scale` must be one of quick, paper, got 'huge'"),
    ],
)
def test_a_plan_of_what_does_not_exist_is_refused(tmp_path, names, scale, sentence):
    with pytest.raises(ValueError, match=sentence):
        plan(names, scale, tmp_path)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_has_all_that_the_report_needs(name, tmp_path):
    item = load(name)
    assert item.TITLE
    assert item.SOURCE
    assert item.RULE
    assert set(item.SCALES) == {"quick", "paper"}
    fields = dataclasses.fields(item.SCALES["quick"])
    assert list(item.SETTINGS) == [field.name for field in fields]
    assert len(set(item.SETTINGS.values())) == len(fields)
    assert all("_" not in words for words in item.SETTINGS.values())
    for caption in item.CAPTIONS.values():
        assert caption.text.endswith(".")
        assert caption.alt.endswith(".")
        assert caption.text != caption.alt
    for scale in item.SCALES:
        (one,) = plan([name], scale, tmp_path)
        assert one.missing
        for spec, path in one.cells.values():
            assert spec
            assert path.suffix == ".parquet"


def test_the_key_of_a_cell_is_all_that_determines_it(tmp_path):
    store = Store(tmp_path)
    path = store.path("fig9", 1, "cell", {"steps": 10})
    assert path == store.path("fig9", 1, "cell", {"steps": 10})
    others = [
        store.path("fig9", 2, "cell", {"steps": 10}),
        store.path("fig9", 1, "cell", {"steps": 11}),
        store.path("fig2", 1, "cell", {"steps": 10}),
    ]
    assert len({path, *others}) == 4


def test_tables_come_back_and_a_damaged_one_is_named(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", "y"]})
    path = tmp_path / "cells" / "t.parquet"
    write_table(path, table, {"seconds": 1.5})
    again, made_by = read_table(path)
    pd.testing.assert_frame_equal(again, table)
    assert made_by == {"seconds": 1.5}
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"must be a Parquet file .* delete it to make it again"):
        read_table(path)


def test_a_verdict_is_what_its_claims_add_up_to():
    yes, no = Claim("a", "b", "c", True), Claim("a", "b", "c", False)
    assert Verdict((yes, yes), "").outcome is Outcome.REPRODUCED
    assert Verdict((yes, no), "").outcome is Outcome.PARTLY
    assert Verdict((no, no), "").outcome is Outcome.NOT
    cannot_tell = Claim("a", "b", "c", None)
    for others in ((), (yes,), (no,), (yes, no)):
        assert Verdict((*others, cannot_tell), "").outcome is Outcome.UNDECIDED


def test_intervals_against_their_definitions():
    """Clopper and Pearson's ends are where a tail of the binomial is 2.5 %."""
    from scipy import stats

    share, low, high = share_interval(3, 200)
    assert share == 0.015
    np.testing.assert_allclose(stats.binom.sf(2, 200, low), 0.025, rtol=1e-6)
    np.testing.assert_allclose(stats.binom.cdf(3, 200, high), 0.025, rtol=1e-6)
    shares, lows, highs = share_interval([0, 3, 200], 200)
    assert shares.tolist() == [0.0, 0.015, 1.0]
    assert lows.tolist() == [0.0, low, share_interval(200, 200)[1]]
    assert highs.tolist() == [share_interval(0, 200)[2], high, 1.0]
