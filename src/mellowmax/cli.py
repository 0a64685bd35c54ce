"""Layer 7: the command line."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ImportError:  # the library alone does not need it
    sys.exit("mellowmax: the command line needs `pip install 'mellowmax[experiments]'`")

from .softmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax, Softmax

__all__ = ["app", "main", "solve"]

OPERATORS: dict[str, Any] = {
    "max": Max,
    "mean": Mean,
    "epsilon-greedy": EpsilonGreedy,
    "boltzmann": Boltzmann,
    "mellowmax": Mellowmax,
}
INTERRUPTED = 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Softmax operators for reinforcement learning (Asadi and Littman, ICML 2017).",
)


@app.callback()
def _root() -> None:
    """Keep `solve` a command of its own."""


@app.command(no_args_is_help=True)
def solve(
    model: Annotated[
        str, typer.Argument(help="A saved MDP, or the id of a Gymnasium environment.")
    ],
    operator: Annotated[str, typer.Option(help=f"One of {', '.join(OPERATORS)}.")] = "mellowmax",
    parameter: Annotated[
        float | None, typer.Option(help="The operator's own: epsilon, beta or omega.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, in-place, synchronous, shifted or newton.")
    ] = "auto",
    discount: Annotated[
        float, typer.Option(help="For a Gymnasium environment; a saved MDP has its own.")
    ] = 0.99,
    tolerance: Annotated[float, typer.Option(help="The largest change to stop at.")] = 1e-8,
    max_iterations: Annotated[int, typer.Option(help="The most iterations to take.")] = 100_000,
    out: Annotated[Path, typer.Option(help="Where to write the solution.")] = Path("solution.npz"),
) -> None:
    """Plan in an MDP: its values under an operator, with bounds, written to a file.

    Example: `mellowmax solve FrozenLake-v1 --operator mellowmax --parameter 16.55`

    The file has `q`, `value`, `policy`, and the numbers that are printed; `numpy.load` reads it.
    Ctrl-C stops early and writes what there is. The exit code is 0 if the solve converged, 1 if it
    did not, 130 after Ctrl-C, and 2 for an argument that is wrong.
    """
    with _one_sentence():
        softmax = _softmax(operator, parameter)
        if not out.absolute().parent.is_dir():
            raise ValueError(f"`--out` must be in a directory that exists, got {str(out)!r}")
        mdp = _model(model, discount)
        _keep_compiled_programs()
        from . import planning

        with _ctrl_c() as pressed, _display(tolerance) as show:

            def tell(progress: planning.Progress) -> bool:
                show(progress)
                return bool(pressed)

            solution = planning.solve(
                mdp,
                softmax,
                method=method,
                tolerance=tolerance,
                max_iterations=max_iterations,
                throw=False,
                callback=tell,
            )
            solution.save(out)
    rows = [("model", f"{model}: {_described(mdp)}"), *solution.rows(), ("written", str(out))]
    for name, text in rows:
        print(f"{name:14s} {text}")
    if pressed:
        raise typer.Exit(INTERRUPTED)
    if not solution.converged:
        raise typer.Exit(1)


def _softmax(operator: str, parameter: float | None) -> Softmax:
    if operator not in OPERATORS:
        raise ValueError(f"`--operator` must be one of {', '.join(OPERATORS)}, got {operator!r}")
    kind = OPERATORS[operator]
    takes_one = operator not in ("max", "mean")
    if takes_one and parameter is None:
        raise ValueError(f"`--parameter` must be given for {operator}, got none")
    if not takes_one and parameter is not None:
        raise ValueError(f"`--parameter` must not be given for {operator}, got {parameter:g}")
    softmax: Softmax = kind(parameter) if takes_one else kind()
    return softmax


def _model(name: str, discount: float) -> Any:
    from .mdp import MDP

    if Path(name).is_file():
        return MDP.load(name)
    if name.endswith(".npz") or (os.sep in name and Path(name).parent.is_dir()):
        raise ValueError(f"`MODEL` must be a file that exists or a Gymnasium id, got {name!r}")
    return MDP.from_gymnasium(name, discount)


def _described(mdp: Any) -> str:
    successors = "dense" if mdp.successors is None else f"up to {mdp.n_branches} successors"
    return (
        f"{mdp.n_states} states, {mdp.n_actions} actions, {successors}, discount {mdp.discount:g}"
    )


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """A wrong argument is one sentence and the exit code 2, not a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        print(f"mellowmax: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


@contextlib.contextmanager
def _ctrl_c() -> Iterator[list[bool]]:
    """A list that is no longer empty once Ctrl-C was pressed; a second time it ends at once."""
    pressed: list[bool] = []

    def remember(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)
        print("\nstopping at the end of this sweep; once more to stop at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _display(tolerance: float) -> Iterator[Any]:
    """A function that shows progress: a bar on a terminal, a line now and then elsewhere."""
    import math

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    first: list[float] = []

    def share(change: float) -> float:
        """How much of the way down to the tolerance is done, in orders of magnitude."""
        if not first:
            first.append(change)
        if not (tolerance > 0 and first[0] > tolerance and change > 0):
            return 0.0
        return max(0.0, math.log(first[0] / change) / math.log(first[0] / tolerance))

    if console.is_terminal:
        text = TextColumn("{task.description}")
        with Progress(
            text,
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task("compiling", total=1.0)

            def draw(p: Any) -> None:
                said = f"{p.method}: {p.iterations} iterations, change {p.change:.1e}"
                bar.update(task, completed=share(p.change), description=said)

            yield draw
    else:
        told = [0.0]

        def tell(p: Any) -> None:
            if p.seconds - told[0] >= 5:
                told[0] = p.seconds
                said = f"{p.method}: {p.iterations} iterations, change {p.change:.1e}"
                print(f"{said}, {p.seconds:.0f} s", file=sys.stderr, flush=True)

        yield tell


def _keep_compiled_programs() -> None:
    """Compile once and not at each start, in the user's cache unless they chose another place."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "mellowmax" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def main() -> None:
    """Run the command line."""
    app()
