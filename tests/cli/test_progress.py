"""The one progress display: lines where there is no terminal, bars where there is one."""

from __future__ import annotations

import io
import re

import pytest
import rich.console

from mellowmax.cli import progress
from mellowmax.cli.progress import Bar, Pace, progress_display, time_left
from mellowmax.deep import EvaluateProgress, TrainProgress


def test_elsewhere_there_is_a_line_every_five_seconds(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress_display() as report:
        for seconds, share in ((4.9, 0.1), (5.0, 0.2), (9.9, 0.3), (10.1, 1.0), (10.2, 1.0)):
            now[0] = 100.0 + seconds
            report(share, f"after {seconds} s")
    assert capsys.readouterr().err == "after 5.0 s\nafter 10.1 s\n"


def test_the_end_of_work_with_a_name_has_a_line_of_its_own(capsys):
    with progress_display([Bar("fig2", 0.0), Bar("fig9", 1.0, "on disk")]) as report:
        report(0.5, "4 of 8 cells", "fig2")
        report(1.0, "8 of 8 cells", "fig2")
    assert capsys.readouterr().err == "fig2: 8 of 8 cells\n"


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal shows."""
    shown = io.StringIO()
    console = rich.console.Console(file=shown, force_terminal=True, width=80)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: console)
    return shown


def test_on_a_terminal_there_is_a_bar_that_goes_away(terminal):
    with progress_display() as report:
        assert terminal.getvalue() == "" or "compiling" in terminal.getvalue()
        report(0.5, "10 of [20] episodes")
    lines = terminal.getvalue()
    assert "━" in lines
    assert "10 of [20] episodes" in lines
    assert lines.endswith("\x1b[1A\x1b[2K")  # the line is cleared


def test_on_a_terminal_bars_with_names_stay(terminal):
    with progress_display([Bar("fig2", 0.25, "waiting"), Bar("fig9", 1.0, "on disk")]) as report:
        report(1.0, "8 of 8 cells", "fig2")
    first, second = terminal.getvalue().rsplit("\x1b[2K", 1)[1].splitlines()[:2]
    assert "fig2" in first
    assert "8 of 8 cells" in first
    assert "fig9" in second
    assert "on disk" in second


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_text_beside_a_bar_is_neither_cut_nor_broken_in_a_word(terminal, width):
    text = "80 of 3000 episodes, mean return 47.6, 65.8 episodes/s, about 0:00:44 left"
    rich.console.Console(stderr=True).width = width
    with progress_display([Bar("fig9", 0.0)]) as report:
        report(0.5, text, "fig9")
    last = terminal.getvalue().rsplit("\x1b[2K", 1)[1]
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert [word for word in words if not set(word) <= set("━╸╺")] == ["fig9", *text.split()]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(7.4, "about 0:00:07 left"), (4000, "about 1:06:40 left"), (1e30, "about 34722 days")],
)
def test_the_time_left_in_words(seconds, words):
    assert time_left(seconds).startswith(words)


@pytest.mark.parametrize("kind", [EvaluateProgress, TrainProgress])
def test_the_pace_leaves_out_the_compiling(kind):
    pace, more = Pace(), [{"played": 10, "share": x} for x in (0.55, 0.65)]
    more = more if kind is TrainProgress else [{}, {}]
    first = kind(episodes=110, total=200, mean_return=1.5, seconds=15.0, **more[0])
    assert pace(first) == "110 of 200 episodes, mean return 1.5"
    assert pace(first) == "110 of 200 episodes, mean return 1.5"  # two blocks may report the same
    later = kind(episodes=130, total=200, mean_return=2.5, seconds=17.0, **more[1])
    text = "130 of 200 episodes, mean return 2.5, 10 episodes/s, about 0:00:07 left"
    assert pace(later) == text


def test_the_pace_of_a_training_that_counts_steps():
    pace, rest = Pace(), {"total": None, "mean_return": 1.5, "played": 9}
    assert pace(TrainProgress(episodes=9, share=0.2, seconds=4.0, **rest)).startswith("9 episodes,")
    later = pace(TrainProgress(episodes=12, share=0.4, seconds=9.0, **rest))
    assert later == "12 episodes, mean return 1.5, 0.6 episodes/s, about 0:00:15 left"
