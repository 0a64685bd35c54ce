"""What commands share: errors in one sentence, exit codes, the choice of a softmax.

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
from typing import NoReturn

import typer

from .._common.signals import exit_code, say_stopped
from .._common.terminal import say, say_error
from .._common.text import visible
from ..softmax import OTHERS, SOFTMAXES, Softmax
from .error_names import with_flags

__all__ = [
    "KINDS",
    "RESUMES",
    "SOFTMAX_NAMES",
    "WITH_PRIOR",
    "check_choice",
    "choose_softmax",
    "errors_in_one_sentence",
    "exit_interrupted",
    "output_arrives",
    "print_rows",
]

NOT_WRITTEN, UNREAD = 74, 141
"""The exit codes when a file cannot be written, and when nobody reads what is printed."""
RESUMES = "what is finished is in {}, and the same command resumes from there"
NO_MISTAKE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENOMEM", "EMFILE", "ENFILE", "ESTALE")
    if hasattr(errno, name)
}
"""Errors of the system that no other argument would help against."""
KINDS = {**SOFTMAXES, **OTHERS}
"""All softmaxes, by the names that options use."""
WITH_PRIOR = [
    name
    for name, kind in KINDS.items()
    if any(field.name == "prior" for field in dataclasses.fields(kind))  # type: ignore[arg-type]
]
SOFTMAX_NAMES = f"one of {', '.join(KINDS)}"


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise unless the value of an option is one of the choices."""
    if value not in choices:
        raise ValueError(f"`{option}` must be one of {', '.join(choices)}, got {value!r}")


def choose_softmax(name: str, parameter: float | None, prior: str | None = None) -> Softmax:
    """The softmax that `--softmax`, `--parameter` and `--prior` name."""
    check_choice("--softmax", name, KINDS)
    kind = KINDS[name]
    fields = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if prior is not None and "prior" not in fields:
        rule = f"must be given only for {' and '.join(WITH_PRIOR)}"
        raise ValueError(f"`--prior` {rule}, got {prior!r} for {name}")
    if not fields:
        if parameter is not None:
            raise ValueError(f"`--parameter` must not be given for {name}, got {parameter:g}")
        return kind()
    if parameter is None:
        raise ValueError(f"`--parameter` must be given for {name}, got none")
    more = {} if prior is None else {"prior": _weights(prior)}
    return kind(parameter, **more)  # type: ignore[call-arg]


def _weights(text: str) -> list[float]:
    """The numbers of `--prior`, such as `0.5,0.25,0.25`."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        rule = "must be numbers with commas between them, such as 0.5,0.25,0.25"
        raise ValueError(f"`--prior` {rule}, got {text!r}") from error


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
