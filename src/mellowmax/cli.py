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

__all__ = ["app", "main", "report", "reproduce", "solve"]

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


@app.command()
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="fig2 fig3 fig4 fig5 fig6 fig7 table1 fig9; none for all."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="quick: minutes on a laptop; paper: the paper's own counts.")
    ] = "quick",
    out: Annotated[
        Path, typer.Option(help="Where cells, tables, figures and the report go.")
    ] = Path("reproduction"),
    devices: Annotated[
        int | None, typer.Option(help="How many devices to use; on a CPU, how many to make of it.")
    ] = None,
) -> None:
    """Make the paper's figures and tables again, with a verdict on each claim.

    Example: `mellowmax reproduce fig9 --scale paper --out results`

    The work is cut into cells. A finished cell is on disk for good: stopped by Ctrl-C or killed at
    any moment, the same command goes on where it was. The path of the report is printed last. The
    exit code is 0 when all is done, 130 after Ctrl-C, and 2 for an argument that is wrong.
    """
    with _one_sentence():
        _use_devices(devices)
        _keep_compiled_programs()
        from . import reproduction

        try:
            with _ctrl_c("cell") as pressed:
                summary = reproduction.reproduce(items or [], scale, out, lambda: bool(pressed))
        except KeyboardInterrupt:
            pressed.append(True)
    if pressed:
        print(
            f"stopped; what is finished is in {out}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(INTERRUPTED)
    if summary is not None:
        print("\n".join([*reproduction.described(summary), str(summary.report)]))


@app.command(no_args_is_help=True)
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The `--out` of a reproduction.")
    ],
) -> None:
    """Write the report of a reproduction again, from the cells that are there.

    Example: `mellowmax report reproduction`
    """
    with _one_sentence():
        from . import reproduction

        summary = reproduction.make_report(reproduction.scale_of(directory), directory)
    print("\n".join([*reproduction.described(summary), str(summary.report)]))


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
def _ctrl_c(unit: str = "sweep") -> Iterator[list[bool]]:
    """A list that is no longer empty once Ctrl-C was pressed; a second time it ends at once."""
    pressed: list[bool] = []

    def remember(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)
        said = f"\nstopping at the end of this {unit}; once more to stop at once"
        print(said, file=sys.stderr)

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


def _use_devices(count: int | None) -> None:
    """Join the processes that JAX's environment variables name, and take a number of devices."""
    import jax

    if "JAX_COORDINATOR_ADDRESS" in os.environ:
        names = {"num_processes": "JAX_NUM_PROCESSES", "process_id": "JAX_PROCESS_ID"}
        given = {name: int(os.environ[key]) for name, key in names.items() if key in os.environ}
        jax.distributed.initialize(**given)
    if count is not None:
        if count < 1:
            raise ValueError(f"`--devices` must be at least 1, got {count}")
        jax.config.update("jax_num_cpu_devices", count)
        there = len(jax.local_devices())
        if there != count:
            raise ValueError(f"`--devices` must be {there}, what there is here, got {count}")


def main() -> None:
    """Run the command line."""
    app()
