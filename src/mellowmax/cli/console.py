"""What commands share: errors in one sentence, Ctrl-C, the choice of a softmax, rows of text."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from ..softmax import SOFTMAXES, Softmax

__all__ = [
    "INTERRUPTED",
    "SOFTMAX_NAMES",
    "check_choice",
    "choose_softmax",
    "errors_in_one_sentence",
    "exit_interrupted",
    "keep_compiled_programs",
    "catch_ctrl_c",
    "print_rows",
]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
SOFTMAX_NAMES = f"one of {', '.join(SOFTMAXES)}"


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise unless the value of an option is one of the choices."""
    if value not in choices:
        raise ValueError(f"`{option}` must be one of {', '.join(choices)}, got {value!r}")


def choose_softmax(name: str, parameter: float | None) -> Softmax:
    """The softmax that `--softmax` and `--parameter` name."""
    check_choice("--softmax", name, SOFTMAXES)
    kind = SOFTMAXES[name]
    if not dataclasses.fields(kind):  # type: ignore[arg-type]
        if parameter is not None:
            raise ValueError(f"`--parameter` must not be given for {name}, got {parameter:g}")
        return kind()
    if parameter is None:
        raise ValueError(f"`--parameter` must be given for {name}, got none")
    return kind(parameter)  # type: ignore[call-arg]


@contextlib.contextmanager
def errors_in_one_sentence(failure: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """A wrong argument is one sentence and exit code 2, not a traceback.

    Args:
        failure: what is not the user's mistake: one sentence, too, but exit code 1. `typer.Exit` is
            a `RuntimeError`, so none may be raised within where that is the failure.
    """

    def say(error: Exception) -> None:
        print("mellowmax:", " ".join(str(error).splitlines()), file=sys.stderr)

    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        say(error)
        raise typer.Exit(2) from None
    except failure as error:
        say(error)
        raise typer.Exit(1) from None


@contextlib.contextmanager
def catch_ctrl_c(unit: str) -> Iterator[threading.Event]:
    """An event that is set once Ctrl-C was pressed; pressed again, it is a `KeyboardInterrupt`.

    Args:
        unit: of the work, such as "sweep": the command stops at the end of one.
    """
    pressed = threading.Event()

    def remember(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()
        text = f"\nstopping at the end of this {unit}; press Ctrl-C again to stop at once"
        print(text, file=sys.stderr)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def exit_interrupted(out: Path) -> NoReturn:
    """Say that the command can be resumed, and exit as after Ctrl-C."""
    text = f"stopped; what is finished is in {out}, and the same command resumes from there"
    print(text, file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns."""
    for name, text in rows:
        print(f"{name:14s} {text}")


def keep_compiled_programs() -> None:
    """Compile once and not at each start: in the user's cache, unless they chose another place."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "mellowmax" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
