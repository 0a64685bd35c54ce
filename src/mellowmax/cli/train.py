"""`mellowmax train`: a network by one of the learners, with its learning curve at the end.

OUT/runs-*.npz                  the checkpoint, from which the same command resumes
OUT/episodes.csv                every episode that was played
OUT/learning_curve.svg, .png    the returns of these episodes
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from .._common.files import check_directory
from .._common.signals import early_end
from .console import (
    KINDS,
    RESUMES,
    SOFTMAX_NAMES,
    check_choice,
    choose_softmax,
    errors_in_one_sentence,
    exit_interrupted,
)
from .csv_files import write_csv
from .options import (
    ActionMask,
    AsJson,
    Environment,
    Force,
    MaxSteps,
    Parameter,
    Quiet,
    Seed,
    Workers,
    completion,
    paths,
)
from .progress import Pace
from .result import LAST, Result, print_result, progress_unless

if TYPE_CHECKING:
    from .. import deep

__all__ = ["train"]

FILES = ("episodes.csv", "learning_curve.svg", "learning_curve.png")
ALGORITHMS = {
    "reinforce": ("batch", "baseline", "normalise", "reward_to_go", "through_temperature"),
    "dqn": (
        "target",
        "double",
        "munchausen",
        "capacity",
        "minibatch",
        "learning_starts",
        "train_frequency",
        "first_epsilon",
        "last_epsilon",
        "exploration_steps",
    ),
    "sac": (
        "temperature",
        "entropy_target",
        "averaging",
        "capacity",
        "minibatch",
        "learning_starts",
        "train_frequency",
    ),
    "ppo": (
        "trace",
        "environments",
        "segment",
        "epochs",
        "minibatches",
        "clip",
        "entropy",
        "value",
        "value_clip",
    ),
}
"""The options that not all algorithms have."""
OPTIONS = {"segment": "steps"}
"""Options that have another name than the library's argument: `--steps` are those of a run."""
EPISODES, STEPS = 2000, 100_000
"""How long a run is by default: that of `ppo` in steps."""


def _option(help: str, default: str = "") -> typer.models.OptionInfo:
    """An option whose default is the library's, which is said in its help."""
    return typer.Option(help=help, show_default=default or False)


def train(
    environment: Environment,
    algorithm: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(ALGORITHMS)}.", autocompletion=completion(ALGORITHMS)
        ),
    ] = "reinforce",
    softmax: Annotated[
        str,
        typer.Option(
            help="The last layer of reinforce, ppo and sac, the operator in dqn's targets: "
            f"{SOFTMAX_NAMES}.",
            autocompletion=completion(KINDS),
        ),
    ] = "mellowmax",
    parameter: Parameter = None,
    episodes: Annotated[
        int | None,
        _option("Episodes of each run; for reinforce, a multiple of the batch.", f"{EPISODES}"),
    ] = None,
    steps: Annotated[
        int | None,
        _option("Steps of each run, in place of episodes.", f"{STEPS} for ppo"),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many runs to train in parallel.")] = 1,
    seed: Seed = 0,
    out: Annotated[
        Path,
        typer.Option(
            help="The directory for the checkpoint, the table and the picture.",
            autocompletion=paths(),
        ),
    ] = Path("training"),
    learning_rate: Annotated[
        float | None,
        _option(
            "The learning rate of Adam.",
            "0.005 for reinforce, 0.001 for dqn, 0.00025 for ppo, 0.001 for sac",
        ),
    ] = None,
    discount: Annotated[float, typer.Option(help="The discount, from 0 to 1.")] = 0.99,
    hidden: Annotated[
        int | None,
        _option("Units of a hidden layer.", "16 for reinforce, 64 for dqn, 64 for ppo, 64 for sac"),
    ] = None,
    depth: Annotated[
        int | None,
        _option("The number of hidden layers.", "1 for reinforce, 2 for dqn, 2 for ppo, 2 for sac"),
    ] = None,
    duelling: Annotated[
        bool | None,
        _option("Make the outputs of the value of a state and of the actions' advantages.", "no"),
    ] = None,
    batch: Annotated[int | None, _option("reinforce: episodes in an update.", "10")] = None,
    baseline: Annotated[
        str | None,
        _option("reinforce: the baseline of returns: none, leave-one-out or network.", "none"),
    ] = None,
    normalise: Annotated[
        bool | None,
        _option("reinforce: scale the advantages of a batch to mean 0, deviation 1.", "no"),
    ] = None,
    reward_to_go: Annotated[
        bool | None, _option("reinforce: weight an action by the return from it on.", "yes")
    ] = None,
    through_temperature: Annotated[
        bool | None,
        _option("reinforce: let the gradient flow through mellowmax's inverse temperature.", "yes"),
    ] = None,
    target: Annotated[
        int | None,
        _option(
            "dqn: updates between two copies to the target network.",
            "no target network",
        ),
    ] = None,
    double: Annotated[
        bool | None,
        _option("dqn: let the network choose the action that the target network evaluates.", "no"),
    ] = None,
    munchausen: Annotated[
        float | None,
        _option("dqn: the weight of the advantage of the action taken in the target.", "none"),
    ] = None,
    capacity: Annotated[
        int | None, _option("dqn, sac: steps that the replay buffer can hold.", "10000")
    ] = None,
    minibatch: Annotated[int | None, _option("dqn, sac: steps in an update.", "64")] = None,
    learning_starts: Annotated[
        int | None, _option("dqn, sac: steps before the first update.", "1000")
    ] = None,
    train_frequency: Annotated[
        int | None, _option("dqn, sac: steps from one update to the next.", "4")
    ] = None,
    first_epsilon: Annotated[
        float | None, _option("dqn: the probability of a random action at the first step.", "1.0")
    ] = None,
    last_epsilon: Annotated[
        float | None, _option("dqn: the same after the exploration steps.", "0.05")
    ] = None,
    exploration_steps: Annotated[
        int | None, _option("dqn: steps from the first epsilon to the last.", "5000")
    ] = None,
    temperature: Annotated[
        float | None, _option("sac: the weight of the policy's entropy.", "tuned")
    ] = None,
    entropy_target: Annotated[
        float | None, _option("sac: the entropy of a tuned temperature, as a share.", "0.5")
    ] = None,
    averaging: Annotated[
        float | None, _option("sac: how far the critics' averages move in an update.", "0.005")
    ] = None,
    trace: Annotated[
        float | None, _option("ppo: the lambda of generalised advantages, from 0 to 1.", "0.95")
    ] = None,
    environments: Annotated[
        int | None, _option("ppo: environments that a run plays in, side by side.", "4")
    ] = None,
    segment: Annotated[
        int | None, _option("ppo: steps of each environment in an update.", "128")
    ] = None,
    epochs: Annotated[
        int | None, _option("ppo: how often an update goes through its steps.", "4")
    ] = None,
    minibatches: Annotated[int | None, _option("ppo: minibatches of an epoch.", "4")] = None,
    clip: Annotated[
        float | None, _option("ppo: how far a probability may move, as a share.", "0.2")
    ] = None,
    entropy: Annotated[float | None, _option("ppo: the weight of the entropy.", "0.01")] = None,
    value: Annotated[float | None, _option("ppo: the weight of the critic's loss.", "0.5")] = None,
    value_clip: Annotated[
        float | None, _option("ppo: how far a prediction may move, inf for any way.", "as --clip")
    ] = None,
    max_steps: MaxSteps = None,
    action_mask: ActionMask = None,
    workers: Workers = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Train a network by REINFORCE, deep Q-learning, PPO or soft actor-critic.

    Example: mellowmax train CartPole-v1 --parameter 5 --out cart

    Example: mellowmax train CartPole-v1 --algorithm dqn --parameter 5 --episodes 300 --out deep

    Example: mellowmax train CartPole-v1 --algorithm ppo --parameter 2 --steps 50000 --out ppo

    The directory gets a checkpoint, `episodes.csv` with every episode, and the learning curve as
    `learning_curve.svg` and `.png`. After Ctrl-C or a kill, the same command resumes from the
    checkpoint and ends with the same numbers. With more `--episodes` or `--steps` it trains
    further. The exit code is 0 when all of them are played, 1 if training diverges or an
    environment fails, 2 for a wrong argument, 74 for a full disk, 130 after Ctrl-C.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    remark = RESUMES.format(out)
    with errors_in_one_sentence((RuntimeError, FloatingPointError)):
        chosen = _options_of(algorithm, given)
        if episodes is None and steps is None:
            episodes, steps = (None, STEPS) if algorithm == "ppo" else (EPISODES, None)
        last_layer = choose_softmax(softmax, parameter)
        check_directory("--out", out, FILES, _is_training, force=force)
        from .. import deep
        from .learning_curve import draw

        learner = getattr(deep, algorithm)(last_layer, discount=discount, **chosen)
        learner = _with_layers(learner, given)
        pace = Pace[deep.TrainProgress]()
        with early_end(remark) as stop:
            with progress_unless(quiet) as report:

                def callback(progress: deep.TrainProgress) -> bool:
                    report(progress.share, pace(progress))
                    return stop.is_set()

                result = deep.train(
                    learner,
                    environment,
                    episodes=episodes,
                    steps=steps,
                    runs=runs,
                    seed=seed,
                    max_steps=max_steps,
                    workers=workers,
                    action_mask=bool(action_mask),
                    checkpoint=out,
                    callback=callback,
                )
            _write_episodes(out / "episodes.csv", result)
            rows = [
                ("environment", environment),
                ("algorithm", algorithm),
                ("softmax", str(learner.softmax)),
                *_rows(result, pace, steps),
                ("written", str(out)),
            ]
            data = {
                "environment": environment,
                "algorithm": algorithm,
                "softmax": str(learner.softmax),
                "runs": runs,
                "episodes": episodes,
                "steps": steps,
                "played": [len(run) for run in _returns(result)],
                "mean_returns": _last_means(result),
                "episodes_per_second": _rate(pace),
                "written": str(out),
            }
            print_result(Result(rows, data), as_json=as_json, quiet=quiet)
            title = f"{environment}, {learner.softmax}"
            if all(map(len, _returns(result))):
                draw(out / "learning_curve.svg", _returns(result), learner.batch, softmax, title)
    if stop.is_set():
        exit_interrupted(remark)


def _options_of(algorithm: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an algorithm that were given.

    Raises:
        ValueError: for an algorithm that does not exist, or an option of another one.
    """
    check_choice("--algorithm", algorithm, ALGORITHMS)
    for name in dict.fromkeys(itertools.chain.from_iterable(ALGORITHMS.values())):
        if name in given and name not in ALGORITHMS[algorithm]:
            having = [other for other, names in ALGORITHMS.items() if name in names]
            rule = f"`{name}` must not be given for {algorithm}, since it is of"
            raise ValueError(f"{rule} {' and '.join(having)}; got {given[name]}")
    names = ("learning_rate", *ALGORITHMS[algorithm])
    return {OPTIONS.get(name, name): given[name] for name in names if name in given}


def _with_layers(
    learner: deep.Reinforce | deep.Dqn | deep.Ppo | deep.Sac, given: Mapping[str, Any]
) -> deep.Reinforce | deep.Dqn | deep.Ppo | deep.Sac:
    """A learner whose network has the sizes that were given."""
    from ..deep.network import Mlp, mlp

    usual = learner.network
    assert isinstance(usual, Mlp)
    sizes = {name: given[name] for name in ("hidden", "depth", "duelling") if name in given}
    return dataclasses.replace(learner, network=mlp(**dataclasses.asdict(usual) | sizes))


def _is_training(out: Path) -> bool:
    """Is there a checkpoint?"""
    return any(out.glob("runs-*.npz"))


def _returns(result: deep.DeepResult) -> list[npt.NDArray[np.float32]]:
    """The returns of the episodes that each run has played."""
    counts = (result.lengths > 0).sum(1)
    return [run[:count] for run, count in zip(result.returns, counts, strict=True)]


def _last_means(result: deep.DeepResult) -> list[float]:
    """The mean return of the last episodes of each run that has played some."""
    return [float(run[-LAST:].mean(dtype=np.float64)) for run in _returns(result) if len(run)]


def _rate(pace: Pace[deep.TrainProgress]) -> float | None:
    """Episodes a second, with the compiling if there was one report; None if there was none."""
    if pace.rate is not None or pace.first is None:
        return pace.rate
    return pace.first.played / pace.first.seconds


def _rows(
    result: deep.DeepResult, pace: Pace[deep.TrainProgress], steps: int | None
) -> list[tuple[str, str]]:
    """The results of a training, as names and texts."""
    runs, episodes = result.returns.shape
    returns, ends = _returns(result), _last_means(result)
    if not ends:
        return [("runs", str(runs)), ("episodes", "none has ended")]
    mean = f"{np.mean(ends):.4g}"
    if len(ends) > 1:
        mean += f", standard error {np.std(ends, ddof=1) / len(ends) ** 0.5:.2g}"
    last = min(LAST, max(map(len, returns)))
    first, count = pace.first, sum(map(len, returns))
    played = f"{count} of {runs * episodes}" if steps is None else f"{count}"
    if before := count if first is None else first.episodes - first.played:
        played += f", {before} of them from before"
    speed = "nothing was left to play"
    if (rate := _rate(pace)) is not None:
        speed = f"{rate:.3g} episodes a second"
    return [
        ("episodes", played),
        ("runs", str(runs)),
        ("mean return", f"{mean} (the last {last} episodes of a run)"),
        ("speed", speed),
    ]


def _write_episodes(path: Path, result: deep.DeepResult) -> None:
    """A row for each episode that was played; runs and episodes are counted from 0."""
    run, episode = np.nonzero(result.lengths)
    played = {"return": result.returns[run, episode], "length": result.lengths[run, episode]}
    write_csv(path, {"run": run, "episode": episode, **played})
