"""Layer 7: the command line."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

try:
    import typer
except ImportError:  # the library alone does not need it
    sys.exit("mellowmax: the command line needs `pip install 'mellowmax[experiments]'`")

from ..softmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax, Softmax

__all__ = ["app", "evaluate", "main", "report", "reproduce", "solve", "train"]

OPERATORS: dict[str, Any] = {
    "max": Max,
    "mean": Mean,
    "epsilon-greedy": EpsilonGreedy,
    "boltzmann": Boltzmann,
    "mellowmax": Mellowmax,
}
INTERRUPTED = 130
ENVIRONMENT = "The id of a Gymnasium environment with discrete actions."
MAX_STEPS = "Where an episode is cut off; else at the environment's own limit, or 1000."
WORKERS = "How many processes step the environments; 0 for none but this one."

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
        softmax = _softmax("--operator", operator, parameter)
        if not out.absolute().parent.is_dir():
            raise ValueError(f"`--out` must be in a directory that exists, got {str(out)!r}")
        mdp = _model(model, discount)
        _keep_compiled_programs()
        from .. import planning

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
    model_row = ("model", f"{model}: {_described(mdp)}")
    _print_rows([model_row, *solution.rows(), ("written", str(out))])
    if pressed:
        raise typer.Exit(INTERRUPTED)
    if not solution.converged:
        raise typer.Exit(1)


@app.command(no_args_is_help=True)
def train(
    environment: Annotated[str, typer.Argument(metavar="ENV", help=ENVIRONMENT)],
    softmax: Annotated[
        str, typer.Option(help=f"The last layer: one of {', '.join(OPERATORS)}.")
    ] = "mellowmax",
    parameter: Annotated[
        float | None, typer.Option(help="The softmax's own: epsilon, beta or omega.")
    ] = None,
    episodes: Annotated[
        int, typer.Option(help="How many a run plays: a multiple of the batch.")
    ] = 2000,
    runs: Annotated[int, typer.Option(help="How many runs, side by side.")] = 1,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    out: Annotated[
        Path, typer.Option(help="The directory of the checkpoint, the table and the figure.")
    ] = Path("training"),
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.005,
    discount: Annotated[float, typer.Option(help="From 0 to 1.")] = 0.99,
    batch: Annotated[int, typer.Option(help="How many episodes there are in an update.")] = 10,
    hidden: Annotated[int, typer.Option(help="How many units a hidden layer has.")] = 16,
    depth: Annotated[int, typer.Option(help="How many hidden layers there are.")] = 1,
    baseline: Annotated[
        str, typer.Option(help="Subtracted from what was earned: none, others or network.")
    ] = "none",
    normalise: Annotated[
        bool, typer.Option(help="Bring the advantages of a batch to mean 0 and deviation 1.")
    ] = False,
    reward_to_go: Annotated[
        bool, typer.Option(help="Weigh an action with what was earned from it on.")
    ] = True,
    through_temperature: Annotated[
        bool, typer.Option(help="Let the gradient flow through mellowmax's temperature.")
    ] = True,
    max_steps: Annotated[int | None, typer.Option(help=MAX_STEPS)] = None,
    workers: Annotated[int | None, typer.Option(help=WORKERS)] = None,
) -> None:
    """Train a policy network by REINFORCE, with any softmax as its last layer.

    Example: `mellowmax train CartPole-v1 --softmax mellowmax --parameter 5 --out cart`

    The directory has a checkpoint, `episodes.csv` with every episode, and the learning curve as
    `learning_curve.svg` and `.png`. Stopped by Ctrl-C or killed at any moment, the same command
    goes on from the checkpoint and ends with the same numbers; with more `--episodes` it plays on.
    The exit code is 0 when all episodes are played, 130 after Ctrl-C, 2 for an argument that is
    wrong, and 1 if an environment fails.
    """
    with _one_sentence(RuntimeError):
        last_layer = _softmax("--softmax", softmax, parameter)
        _keep_compiled_programs()
        from .. import deep
        from . import train as practice

        learner = deep.reinforce(
            last_layer,
            learning_rate,
            discount=discount,
            batch=batch,
            hidden=hidden,
            depth=depth,
            reward_to_go=reward_to_go,
            baseline=baseline,
            normalise=normalise,
            through_temperature=through_temperature,
        )
        try:
            with _ctrl_c("batch") as pressed:
                practised = practice.practise(
                    learner,
                    environment,
                    episodes=episodes,
                    runs=runs,
                    seed=seed,
                    out=out,
                    stop=lambda: bool(pressed),
                    max_steps=max_steps,
                    workers=workers,
                )
                _print_rows([*practised.rows(), ("written", str(out))])
        except KeyboardInterrupt:
            pressed.append(True)
    if pressed:
        _say_it_goes_on(out)


@app.command(no_args_is_help=True)
def evaluate(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT", help="The `--out` of a training, or a file runs-*.npz in it."
        ),
    ],
    environment: Annotated[str, typer.Argument(metavar="ENV", help=ENVIRONMENT)],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 100,
    run: Annotated[int, typer.Option(help="The run whose policy plays, counted from 0.")] = 0,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    render: Annotated[
        Path | None, typer.Option(help="Write one more episode to this file, as a GIF.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help=MAX_STEPS)] = None,
    workers: Annotated[int | None, typer.Option(help=WORKERS)] = None,
) -> None:
    """Let a trained policy play, and say what it earns.

    Example: `mellowmax evaluate cart CartPole-v1 --episodes 100 --render cart.gif`

    The policy is that of the last checkpoint, also of a training that is still under way. The exit
    code is 0, 2 for an argument that is wrong, 130 after Ctrl-C, and 1 if an environment fails.
    """
    try:
        with _one_sentence(RuntimeError):
            _keep_compiled_programs()
            from . import evaluate as measurement

            measured = measurement.measure(
                checkpoint,
                environment,
                run=run,
                episodes=episodes,
                seed=seed,
                render=render,
                max_steps=max_steps,
                workers=workers,
            )
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    rows = measured.rows()
    if render is not None:
        rows.append(("written", f"{render}, {measured.frames} pictures"))
    _print_rows(rows)


@app.command()
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="fig2 fig3 fig4 fig5 fig6 fig7 table1 fig9 fig11; none for all."),
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
    yes: Annotated[
        bool, typer.Option("--yes", help="Start what takes longer than an hour without asking.")
    ] = False,
) -> None:
    """Make the paper's figures and tables again, with a verdict on each claim.

    Example: `mellowmax reproduce fig9 --scale paper --out results`

    The work is cut into cells. A finished cell is on disk for good: stopped by Ctrl-C or killed at
    any moment, the same command goes on where it was. Before an item that takes longer than an
    hour (`fig11 --scale paper`: about 18 days on two cores) it asks; without a terminal to ask on,
    it wants `--yes`. The path of the report is printed last. The exit code is 0 when all is done,
    130 after Ctrl-C, and 2 for an argument that is wrong.
    """
    with _one_sentence():
        _use_devices(devices)
        _keep_compiled_programs()
        from . import reproduce as reproduction

        plans = reproduction.chosen(items or [], scale, out, lambda it: yes or _agreed(it))
        try:
            with _ctrl_c("cell") as pressed:
                summary = reproduction.reproduce(plans, scale, out, lambda: bool(pressed))
        except KeyboardInterrupt:
            pressed.append(True)
    if pressed:
        _say_it_goes_on(out)
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
        from . import reproduce as reproduction

        summary = reproduction.make_report(reproduction.scale_of(directory), directory)
    print("\n".join([*reproduction.described(summary), str(summary.report)]))


def _softmax(option: str, operator: str, parameter: float | None) -> Softmax:
    if operator not in OPERATORS:
        raise ValueError(f"`{option}` must be one of {', '.join(OPERATORS)}, got {operator!r}")
    kind = OPERATORS[operator]
    takes_one = operator not in ("max", "mean")
    if takes_one and parameter is None:
        raise ValueError(f"`--parameter` must be given for {operator}, got none")
    if not takes_one and parameter is not None:
        raise ValueError(f"`--parameter` must not be given for {operator}, got {parameter:g}")
    softmax: Softmax = kind(parameter) if takes_one else kind()
    return softmax


def _agreed(sentence: str) -> bool:
    """Is the user for it?"""
    if not sys.stdin.isatty():
        item = sentence.split()[0]
        rule = f"`--yes` must be given to start {item} where nobody can be asked"
        raise ValueError(f"{rule}; {sentence}")
    return typer.confirm(f"{sentence}. Start it?", err=True)


def _say_it_goes_on(out: Path) -> NoReturn:
    said = f"stopped; what is finished is in {out}, and the same command goes on from there"
    print(said, file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _print_rows(rows: list[tuple[str, str]]) -> None:
    for name, text in rows:
        print(f"{name:14s} {text}")


def _model(name: str, discount: float) -> Any:
    from ..mdp import MDP

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
def _one_sentence(failure: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """A wrong argument is one sentence and the exit code 2, not a traceback; a failure, 1.

    `typer.Exit` is a `RuntimeError`: none may be raised within where that is the failure.
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
