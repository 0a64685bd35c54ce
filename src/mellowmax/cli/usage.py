"""How commands are typed: the usage line, the help, and mistakes in one sentence."""

from __future__ import annotations

import contextlib
import difflib
import shutil
import sys
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer
import typer.core

from .._common.private_names import click
from .._common.terminal import columns, say_error, wrapped
from .console import output_arrives
from .error_names import in_usage, name_of

if TYPE_CHECKING:
    from .._common.private_names import click_core as core
    from .._common.private_names import click_exceptions as exceptions
    from .._common.private_names import click_formatting as formatting
else:
    core, exceptions, formatting = map(click, ("core", "exceptions", "formatting"))

__all__ = ["Command", "Commands"]

WIDEST = 80
"""Help is not wider than this on any terminal."""
HYPHEN = "\u2011"
"""A hyphen at which no line is broken."""
KINDS = {int: "a whole number", float: "a number"}
"""What a value must be, by the type of its option."""

NO_ARGUMENTS = getattr(exceptions, "NoArgsIsHelpError", ())
"""Raised to show the help; Click before 8.2 shows it by itself."""


class _Formatter(formatting.HelpFormatter):
    """Help as wide as the terminal; Click's own is not narrower than 50 columns."""

    def __init__(self, *args: object, **settings: object) -> None:
        width = columns(sys.stdout) or shutil.get_terminal_size().columns
        super().__init__(width=max(min(width, WIDEST) - 2, 20))

    def write_dl(self, rows: Sequence[tuple[str, str]], *args: object, **settings: object) -> None:
        """Write names and texts in two columns; a long name has lines of its own."""
        indent = self.current_indent
        lines = [
            (wrapped(name, self.width - indent, 2 * indent), _kept(text)) for name, text in rows
        ]
        super().write_dl(lines, col_max=30 if self.width >= 50 else 8)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(_kept(text))

    def write(self, string: str) -> None:
        """Write what has been broken into lines."""
        super().write(string.replace(HYPHEN, "-"))


def _kept(text: str) -> str:
    """A text that is not broken within a word, as Click breaks one at a hyphen."""
    return text.replace("-", HYPHEN)


class _Context(core.Context):
    formatter_class = _Formatter


class Command(typer.core.TyperCommand):
    """A command; in its usage line `<NAME>` is required, and `[NAME]` is not."""

    context_class = _Context

    def get_short_help_str(self, limit: int = 0) -> str:
        """The first sentence of the help, in the list of commands; Click cuts it."""
        return (self.help or "").split("\n\n")[0]

    def collect_usage_pieces(self, ctx: core.Context) -> list[str]:
        """What follows the name of the command in the usage line."""
        return [self.options_metavar or "", *map(in_usage, self._arguments())]

    def _arguments(self) -> list[core.Parameter]:
        return [one for one in self.params if one.param_type_name == "argument"]

    def parse_args(self, ctx: core.Context, args: list[str]) -> list[str]:
        """Read what was typed."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except NO_ARGUMENTS:
            raise
        except exceptions.UsageError as error:
            raise exceptions.UsageError(self._sentence(ctx, typed, error), ctx) from error

    def _sentence(self, ctx: core.Context, typed: list[str], error: exceptions.UsageError) -> str:
        """What is wrong with what was typed, in one sentence."""
        if isinstance(error, exceptions.MissingParameter) and error.param is not None:
            return f"`{name_of(error.param)}` must be given, got none"
        if isinstance(error, exceptions.NoSuchOption):
            return _unknown(ctx, "option", error.option_name, _visible_flags(self, ctx))
        if isinstance(error, exceptions.BadOptionUsage):
            name = error.option_name
            for one in typed:
                if one.startswith(f"{name}="):
                    got = one.removeprefix(f"{name}=")
                    return f"`{name}` must be given without a value, got {got!r}"
            return f"`{name}` must have a value, got none"
        values, others, _ = self.make_parser(ctx).parse_args(args=typed)
        if isinstance(error, exceptions.BadParameter) and error.param is not None:
            kind = typing.get_type_hints(self.callback)[error.param.name]
            rule = next((KINDS[one] for one in (kind, *typing.get_args(kind)) if one in KINDS), "")
            if rule:
                got = values[error.param.name]
                return f"`{name_of(error.param)}` must be {rule}, got {got!r}"
        if others:
            taken = " ".join(map(in_usage, self._arguments()))
            return f"`{ctx.command_path}` takes {taken} and no other argument, got {others[0]!r}"
        return str(error.format_message())


class Commands(typer.core.TyperGroup):
    """The commands; none succeeds unless what it has printed arrives."""

    context_class = _Context

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: core.Context | None = None,
        **extra: object,
    ) -> core.Context:
        """Read what was typed before the command's name."""
        with _mistakes_in_one_sentence():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: core.Context) -> object:
        """Run a command."""
        with output_arrives(), _mistakes_in_one_sentence():
            return super().invoke(ctx)

    def parse_args(self, ctx: core.Context, args: list[str]) -> list[str]:
        """Find the command, or print the help or the version."""
        with output_arrives():
            try:
                return super().parse_args(ctx, args)
            except exceptions.NoSuchOption as error:
                flags = _visible_flags(self, ctx)
                sentence = _unknown(ctx, "option", error.option_name, flags)
                raise exceptions.UsageError(sentence, ctx) from error

    def resolve_command(
        self, ctx: core.Context, args: list[str]
    ) -> tuple[str | None, core.Command | None, list[str]]:
        """The command of a name."""
        if args and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise exceptions.UsageError(_unknown(ctx, "command", args[0], self.commands), ctx)
        return super().resolve_command(ctx, args)


@contextlib.contextmanager
def _mistakes_in_one_sentence() -> Iterator[None]:
    """A mistake in what was typed becomes one sentence and exit code 2."""
    try:
        yield
    except NO_ARGUMENTS:
        raise
    except exceptions.UsageError as error:
        say_error(" ".join(error.format_message().split()))
        raise typer.Exit(2) from None


def _visible_flags(command: core.Command, ctx: core.Context) -> list[str]:
    """The options that the help of a command has."""
    options = (one for one in command.get_params(ctx) if not getattr(one, "hidden", False))
    return [
        flag
        for one in options
        for flag in (*one.opts, *one.secondary_opts)
        if one.param_type_name == "option"
    ]


def _unknown(ctx: core.Context, what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for an option or command that does not exist, with the one it may mean."""
    near = difflib.get_close_matches(name, [*known], 1)
    meant = f"; did you mean {near[0]}?" if near else f"; see `{ctx.command_path} --help`"
    return f"`{ctx.command_path}` has no {what} {name!r}{meant}"
