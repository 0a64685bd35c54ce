"""`mellowmax explore`: served until Ctrl-C or written to a file, and sentences for the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from helpers.commands import assert_one_sentence, call
from mellowmax.explorer import PageServer, exhibits, page
from mellowmax.mdp import garnet, two_state


@pytest.fixture
def serve():
    """The command as a process, its address, and the page there."""
    started = []

    def start(*arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "mellowmax", "explore", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        started.append(process)
        url = process.stdout.readline().split()[0]
        with urllib.request.urlopen(url, timeout=10) as answer:
            return process, url, answer.read().decode()

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_served_until_it_is_told_to_end(serve, number):
    process, url, text = serve("--no-browser")
    assert url.startswith("http://127.0.0.1:")
    assert text == page(exhibits())
    process.send_signal(number)
    out, error = process.communicate(timeout=10)
    assert (process.returncode, out, error) == (0, "", "")


def test_without_a_browser_it_says_so_and_goes_on(serve, tmp_path):
    process, url, _ = serve(PATH=str(tmp_path), DISPLAY="", WAYLAND_DISPLAY="", BROWSER="")
    assert process.stderr.readline() == (f"mellowmax: no browser was found; open {url} in one\n")
    assert process.poll() is None


def test_a_file_is_written_whole_and_is_the_same_page(tmp_path):
    done = call("explore", "--save", tmp_path / "page.html")
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'page.html'}\n")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page(exhibits())
    assert call("explore", "--save", tmp_path / "page.html").exit_code == 0  # its own file
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    done = call("explore", "--save", tmp_path / "mine.html")
    assert_one_sentence(done, "`--save` must be a new file, or one that this command wrote")
    assert (tmp_path / "mine.html").read_text() == "<p>mine</p>"
    assert not list(tmp_path.glob(".mellowmax-*"))


def test_a_model_of_two_states_is_live(tmp_path):
    two_state(printed=True).save(tmp_path / "mine.npz")
    assert call("explore", tmp_path / "mine.npz", "--save", tmp_path / "page.html").exit_code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"kind":"two-state","name":"mine.npz","mdp":{"ra":0.122,"pa":0.66,' in text


def test_what_cannot_be_shown_or_served_is_a_sentence(tmp_path):
    page_file = tmp_path / "page.html"
    done = call("explore", "CartPole-v1", "--save", page_file)
    assert_one_sentence(done, "`MODEL` must have discrete states and actions")
    assert_one_sentence(call("explore", "gone.npz"), "`MODEL` must be a file that exists")
    garnet(7000, 3, 2, seed=0).save(tmp_path / "large.npz")
    done = call("explore", tmp_path / "large.npz", "--save", page_file)
    assert_one_sentence(done, "`MODEL` must have at most 20000 pairs")
    with PageServer("taken") as taken:
        done = call("explore", "--port", taken.port)
        assert_one_sentence(done, f"`--port` must be one that is free, got {taken.port}")
    done = call("explore", "--save", tmp_path / "none" / "page.html")
    assert_one_sentence(done, "`--save` must be in a directory that exists")
    assert not page_file.exists()
