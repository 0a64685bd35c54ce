"""What commands share: errors in one sentence, exit codes, the choice of a softmax, rows of text.

The exit codes: 0 for what was asked for, 1 for a failure that is not the user's mistake, 2 for an
argument that is wrong, 74 when a file or what is printed cannot be written (a full disk), 130 after
Ctrl-C, 141 when nobody reads what is printed any more, 143 after SIGTERM.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import typer

from .._common.private_names import write_programs_whole
from .._common.signals import exit_code, say_stopped
from .._common.terminal import say, say_error
from .._common.text import visible
from ..softmax import SOFTMAXES, Softmax
from .error_names import with_flags

__all__ = [
    "INTERRUPTED",
    "RESUMES",
    "SOFTMAX_NAMES",
    "check_choice",
    "choose_softmax",
    "errors_in_one_sentence",
    "exit_interrupted",
    "keep_compiled_programs",
    "output_arrives",
    "print_rows",
]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
NOT_WRITTEN, UNREAD = 74, 141
"""The exit codes when a file cannot be written, and when nobody reads what is printed."""
RESUMES = "what is finished is in {}, and the same command resumes from there"
NO_MISTAKE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENOMEM", "EMFILE", "ENFILE", "ESTALE")
    if hasattr(errno, name)
}
"""Errors of the system that no other argument would help against."""
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
def errors_in_one_sentence(
    failure: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """A wrong argument is one sentence and exit code 2, not a traceback.

    Args:
        failure: what is not the user's mistake: one sentence, too, but exit code 1. `typer.Exit` is
            a `RuntimeError`, so none may be raised within where that is the failure.
    """
    try:
        yield
    except BrokenPipeError:  # see `output_arrives`
        raise
    except (ValueError, TypeError, OSError) as error:
        _say(error)
        full = isinstance(error, OSError) and error.errno in NO_MISTAKE
        raise typer.Exit(NOT_WRITTEN if full else 2) from None
    except failure as error:
        _say(error)
        raise typer.Exit(1) from None


def _say(error: Exception | str) -> None:
    say_error(with_flags(" ".join(str(error).splitlines())))


@contextlib.contextmanager
def output_arrives() -> Iterator[None]:
    """What is printed within is printed for sure; if it cannot be, that is said."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # it is None when it was closed before the start
                sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # nothing more can be printed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(UNREAD) from None
        _say(f"the standard output cannot be written: {error.strerror}")
        raise typer.Exit(NOT_WRITTEN) from None


def exit_interrupted(remark: str) -> NoReturn:
    """Say that a signal has ended the command and what is on disk, and exit with its code."""
    say_stopped(remark)
    raise typer.Exit(exit_code())


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns, one row for each."""
    for name, text in rows:
        head = f"{name:14s} "
        say(f"{head}{visible(text)}".rstrip(), indent=len(head))


def keep_compiled_programs() -> None:
    """Compile once and not at each start: in the user's cache, unless they chose another place."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "mellowmax" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        with contextlib.suppress(ImportError, AttributeError):  # of a JAX that does it differently
            write_programs_whole()
