"""Ctrl-C and SIGTERM: whatever a process is doing, it ends at once with one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

# What a command may be doing when a signal comes.
START = """
import sys, threading, time
from pathlib import Path
from mellowmax._common.files import replacing
from mellowmax._common.signals import early_end, exit_code, say_stopped, watch_signals
watch_signals()
def begin(): print("begun", flush=True)
"""
DOING = {
    "a loop": "begin(); time.sleep(30)",
    "what takes an interrupt for a mistake of its own": """
begin()
while True:
    try:
        time.sleep(30)
    except BaseException:
        pass
""",
    "waiting for a thread": """
threading.Thread(target=time.sleep, args=(30,)).start()
begin()
""",
    "writing a file": """
with replacing("out") as file:
    file.write(b"half")
    begin()
    time.sleep(30)
""",
    "ending too slowly": """
with early_end("and that was all") as stop:
    begin()
    stop.wait()
    time.sleep(30)
""",
}


def signalled(code, number, cwd):
    with subprocess.Popen(
        [sys.executable, "-c", START + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    ) as process:
        try:
            assert process.stdout.readline() == "begun\n"
            process.send_signal(number)
            began = time.monotonic()
            _, said = process.communicate(timeout=20)
        finally:
            process.kill()
    return process.returncode, said, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("doing", DOING)
def test_a_signal_ends_a_process_at_once(tmp_path, doing, number):
    code, said, seconds = signalled(DOING[doing], number, tmp_path)
    assert code == 128 + number, said
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    remark = "; and that was all" if doing == "ending too slowly" else ""
    assert said == f"mellowmax: stopped by {name}{remark}\n"
    assert seconds < 10  # each of them would take 30
    assert not list(tmp_path.iterdir())


def test_a_command_that_can_end_early_does(tmp_path):
    code = """
with early_end("nothing") as stop:
    begin()
    stop.wait()
    Path("out").write_text("what there is")
say_stopped("out has what there is")
sys.exit(exit_code())
"""
    code, said, _ = signalled(code, signal.SIGTERM, tmp_path)
    assert (code, said) == (143, "mellowmax: stopped by SIGTERM; out has what there is\n")
    assert os.listdir(tmp_path) == ["out"]


def test_a_process_that_was_told_to_ignore_a_signal_does(tmp_path):
    """As one in the background is, and one under `nohup`."""
    code = """
begin()
time.sleep(0.5)
"""
    signal_before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, said, _ = signalled(code, signal.SIGINT, tmp_path)
    finally:
        signal.signal(signal.SIGINT, signal_before)
    assert (code, said) == (0, "")
