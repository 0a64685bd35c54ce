"""`mellowmax evaluate`: the returns of a trained policy, and an episode of it as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from .._common import checks
from .._common.shown import shown
from .._common.text import shortened
from .console import errors_in_one_sentence
from .gif import check_film
from .options import ActionMask, AsJson, Force, MaxSteps, Quiet, Seed, Workers, paths
from .progress import Pace
from .result import Result, print_result, progress_unless

if TYPE_CHECKING:
    from .. import deep
    from ..deep.environment import PlayableEnvironment

__all__ = ["evaluate"]

LONGEST = 300
"""Characters of an error that has a text of a file in it."""


def evaluate(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="The `--out` of a training, or a file runs-*.npz in it.",
            autocompletion=paths(".npz"),
        ),
    ],
    environment: Annotated[
        str | None,
        typer.Argument(metavar="ENV", help="A Gymnasium id; by default that of the checkpoint."),
    ] = None,
    episodes: Annotated[int, typer.Option(help="How many episodes to play.")] = 100,
    run: Annotated[int, typer.Option(help="The run whose policy plays, counted from 0.")] = 0,
    seed: Seed = 0,
    render: Annotated[
        Path | None,
        typer.Option(
            help="Write one more episode to this file, as a GIF.", autocompletion=paths(".gif")
        ),
    ] = None,
    max_steps: MaxSteps = None,
    action_mask: ActionMask = None,
    workers: Workers = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Play episodes with a trained policy, and print its mean return.

    Example: mellowmax evaluate cart --episodes 100 --render cart.gif

    The policy is that of the last checkpoint, even while training is still running. It keeps to an
    action mask if the training did, unless `--action-mask` says otherwise. The exit code
    is 0, 1 if an environment fails, 2 for a wrong argument, and 130 after Ctrl-C.
    """
    with errors_in_one_sentence(RuntimeError):
        if render is not None:
            check_film("--render", render, force=force)
        from .. import deep
        from ..deep.environment.argument import environment_of
        from .gif import Film

        checks.whole("episodes", episodes, 1)
        checks.whole("seed", seed, 0, 2**32 - 1)
        directory, number = _find(checkpoint, checks.whole("run", run, 0))
        saved = deep.load_policy(directory, number)
        there = environment or _environment_of(saved)
        masked = saved.action_mask if action_mask is None else action_mask
        _check_fit(saved, environment_of(there, max_steps, action_mask=masked), there)
        film = None
        if render is not None:
            pictures = deep.watch(
                saved.policy, there, seed=seed, max_steps=max_steps, action_mask=masked
            )
            film = Film(render, there, pictures)
        pace = Pace[deep.EvaluateProgress]()
        with progress_unless(quiet) as report:

            def callback(progress: deep.EvaluateProgress) -> None:
                report(progress.share, pace(progress))

            evaluation = deep.evaluate(
                saved.policy,
                there,
                episodes=episodes,
                seed=seed,
                max_steps=max_steps,
                workers=workers,
                action_mask=masked,
                callback=callback,
            )
        kind = "" if saved.policy.softmax == saved.softmax else "greedy, "
        rows = [
            ("environment", there),
            ("policy", f"{kind}run {number} of a training in {saved.environment}"),
            ("softmax", _softmax_of(saved)),
            *_rows(evaluation),
        ]
        if film is not None:
            rows.append(("written", f"{render}, {film.write()} pictures"))
        data = {
            "environment": there,
            "run": number,
            "trained_in": saved.environment,
            "softmax": _softmax_of(saved),
            "mean_return": evaluation.mean,
            "standard_error": evaluation.standard_error,
            "returns": evaluation.returns,
            "lengths": evaluation.lengths,
            "written": None if render is None else str(render),
        }
    print_result(Result(rows, data), as_json=as_json, quiet=quiet)


def _find(checkpoint: Path, run: int) -> tuple[Path, int]:
    """The directory of a checkpoint, and the number of a run there.

    Where a file is given, the run is counted from the first one in it.
    """
    if not checkpoint.is_file():
        return checkpoint, run
    first = checkpoint.stem.removeprefix("runs-")
    if not first.isdecimal() or checkpoint.suffix != ".npz":
        rule = "`CHECKPOINT` must be the directory of a training, or a file runs-*.npz in it"
        raise ValueError(f"{rule}, got {str(checkpoint)!r}")
    return checkpoint.parent, int(first) + run


def _environment_of(saved: deep.SavedPolicy) -> str:
    """The environment of a training, where it has an id.

    One that names a module, as in `module:Env-v0`, is not taken from a file: Gymnasium imports the
    module, and what is run is for the user to say.
    """
    from .._common.gymnasium_ids import make

    if ":" in saved.environment:
        rule = "`ENV` must be given where that of the training names a module to import"
        raise ValueError(f"{rule}, got none for {shown(saved.environment)}")
    try:
        make(saved.environment).close()
    except ValueError as error:
        rule = "`ENV` must be given where that of the training cannot be made by its name"
        said = shortened(str(error), LONGEST)
        raise ValueError(f"{rule}, got none for {shown(saved.environment)}: {said}") from error
    return saved.environment


def _check_fit(saved: deep.SavedPolicy, made: PlayableEnvironment, environment: str) -> None:
    """Raise unless a policy has the observations and actions of an environment."""
    fits, there = ((x.n_observations, x.n_actions) for x in (saved, made))
    if fits != there:
        rule = f"`ENV` must have {fits[0]} observations and {fits[1]} actions, as the training had"
        raise ValueError(f"{rule}, got {there[0]} and {there[1]} in {environment!r}")


def _softmax_of(saved: deep.SavedPolicy) -> str:
    """The softmax in words: a parameter of 0.1 that was kept in float32 is shown as 0.1."""
    import jax

    return str(jax.tree.map(lambda x: float(f"{x:.7g}"), saved.softmax))


def _rows(evaluation: deep.Evaluation) -> list[tuple[str, str]]:
    """What the policy has earned, as names and texts."""
    returns = evaluation.returns
    error = f", standard error {evaluation.standard_error:.2g}" if len(returns) > 1 else ""
    return [
        ("episodes", str(len(returns))),
        ("mean return", f"{evaluation.mean:.4g}{error}"),
        ("best", f"{returns.max():.4g}"),
        ("worst", f"{returns.min():.4g}"),
        ("mean length", f"{np.mean(evaluation.lengths):.4g}"),
    ]
