"""What there is in a solution, a model or a training, in words and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._common.text import shortened, visible
from .._typing import Floats
from ..mdp import labels
from ..mdp.labels import Labels
from .result import LAST, Result
from .table import Table, column

if TYPE_CHECKING:
    from ..mdp import MDP

__all__ = [
    "ESTIMATE_COLUMNS",
    "SOLUTIONS",
    "describe_estimate",
    "describe_model",
    "describe_solution",
    "describe_training",
    "estimate_columns",
    "sizes",
]

SOLUTIONS = ("solution", "finite-horizon solution", "average-reward solution")
"""The kinds of files that hold one (`planning.any_solution`)."""
MOST_STATES, MOST_ACTIONS = 20, 8
"""The largest model whose numbers are printed, one line for each state."""


def _table(
    title: str,
    by_action: Floats,
    states: Labels,
    actions: Labels,
    value: Floats | None = None,
    digits: str = ".4g",
    heading: str = "value",
) -> Table | None:
    """A line for each state of a small model; None for one that is not."""
    n_states, n_actions = by_action.shape
    if n_states > MOST_STATES or n_actions > MOST_ACTIONS:
        return None
    named = [labels.text(one) for one in labels.values(states, n_states)]
    width = max(5, *map(len, named))
    index = [f"{one:>{width}s}" for one in ["state", *named]]
    values = [] if value is None else [column(heading, [f"{one:.5g}" for one in value], 12)]
    columns = [
        column(labels.text(action), [f"{one:{digits}}" for one in probabilities], 9)
        for action, probabilities in zip(
            labels.values(actions, n_actions), by_action.T, strict=True
        )
    ]
    return Table(title, index, [*values, *columns], len(values))


def describe_solution(fields: Mapping[str, Any]) -> Result:
    """Describe a solution by its fields: those of `fields()` of any solution, or of a file.

    The data has the values and the policy of a small model; a file has them of any. With a horizon
    the table shows them at the first step.
    """
    from ..planning.any_solution import rows_of

    policy = fields["policy"]
    heading = "bias" if "bias" in fields else "value"
    shown, first, title = policy, fields[heading], "policy, by action"
    if policy.ndim == 3:
        shown, first, title = policy[0], first[0], "policy at time 0, by action"
    names = fields.get("state_labels"), fields.get("action_labels")
    table = _table(title, shown, *names, first, ".4f", heading)
    arrays = ("q", heading, "policy", "allowed") if table is None else ("q", "allowed")
    data = {name: one for name, one in fields.items() if name not in arrays}
    *times, n_states, n_actions = policy.shape
    sizes = {"kind": "solution", "states": n_states, "actions": n_actions}
    if times:
        sizes["horizon"] = times[0]
    return Result(rows_of(fields), sizes | data, table)


ESTIMATE_COLUMNS = ("parameter", "estimate", "standard_error", "low", "high")
"""The columns of estimates, the last two the ends of 95 % intervals."""

ERRORS = {
    "hessian": "errors by the curvature",
    "outer": "errors by outer products",
    "sandwich": "errors by the sandwich",
}
"""What the kinds of standard errors are called."""


def estimate_columns(fields: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The columns of estimates by name, from the fields of `Estimate.fields` or of a file."""
    from ..inverse.picture import NORMAL

    estimates, errors = fields["parameters"], fields["standard_errors"]
    ends = estimates - NORMAL * errors, estimates + NORMAL * errors
    columns = fields["names"], estimates, errors, *ends
    return dict(zip(ESTIMATE_COLUMNS, columns, strict=True))


def describe_estimate(fields: Mapping[str, Any]) -> Result:
    """Describe estimates by their fields: those of `Estimate.fields` or of a file."""
    from ..inverse.estimate import rows_of

    names, *numbers = estimate_columns(fields).values()
    named = [visible(shortened(str(name), 30)) for name in names]
    width = max(map(len, named))
    headings = "estimate", "error", "low", "high"
    columns = [
        column(heading, [f"{one:.6g}" for one in each], 12)
        for heading, each in zip(headings, numbers, strict=True)
    ]
    table = Table(
        f"{ERRORS[fields['errors']]}, and 95 % intervals",
        [f"{one:<{width}s}" for one in ["", *named]],
        columns,
        1,
    )
    data = {name: one for name, one in fields.items() if name != "covariance"}
    return Result(rows_of(fields), {"kind": "estimate", **data}, table)


def sizes(mdp: MDP) -> str:
    """The sizes of a model, in a few words."""
    successors = "dense" if mdp.successors is None else f"up to {mdp.n_branches} successors"
    return (
        f"{mdp.n_states} states, {mdp.n_actions} actions, {successors}, discount {mdp.discount:g}"
    )


def describe_model(mdp: MDP) -> Result:
    """Describe an MDP: its sizes, its rewards, and those of every action for a small one."""
    rewards, available = mdp.expected_rewards, mdp.available
    least, most = (
        (float(rewards[available].min()), float(rewards[available].max()))
        if available.any()
        else (0.0, 0.0)
    )
    ends, pairs = int(mdp.terminal.sum()), int(available.sum())
    rows = [
        ("model", sizes(mdp)),
        ("terminal", f"{ends} of {mdp.n_states} states"),
        ("available", f"{pairs} pairs of a state and an action"),
        ("rewards", f"from {least:g} to {most:g}, on average over the successors"),
    ]
    data = {
        "kind": "model",
        "states": mdp.n_states,
        "actions": mdp.n_actions,
        "branches": mdp.n_branches,
        "dense": mdp.successors is None,
        "discount": mdp.discount,
        "terminal": ends,
        "available": pairs,
        "least_reward": least,
        "largest_reward": most,
    }
    shown = np.where(available, rewards, np.nan)
    title = "reward, by action (nan: not available)"
    table = _table(title, shown, mdp.state_labels, mdp.action_labels)
    return Result(rows, data, table)


def describe_training(paths: Sequence[Path]) -> Result:
    """Describe the files of a checkpoint: the settings, and what its runs have earned so far."""
    from ..deep.checkpoint import read
    from ..deep.description import NUMBERS

    every, blocks = zip(*map(read, paths), strict=True)
    text = every[0]
    for path, other in zip(paths, every, strict=True):
        if other != text:
            rule = "`path` must be of one training"
            raise ValueError(f"{rule}, got other settings in {str(path)!r}")
    counts = [int(n) * text.get("batch", 1) for block in blocks for n in block["done"]]
    returns = [run for block in blocks for run in block["returns"]]
    bin = text["bin"]
    played = [run[: count // bin] / bin for run, count in zip(returns, counts, strict=True)]
    bins = max(1, LAST // bin)
    with np.errstate(all="ignore"):  # of what a file says was earned
        ends = [float(run[-bins:].mean(dtype=np.float64)) for run in played if len(run)]
        mean = float(np.mean(ends)) if ends else None
    lanes = [len(block["done"]) for block in blocks]
    numbers: dict[str, list[float]] = {
        name: _different(
            [block[name][..., :n] for block, n in zip(blocks, lanes, strict=True) if name in block]
        )
        for name in ("parameters", *NUMBERS)
        if name in blocks[0]
    }
    parameter = f" with {_listed(numbers['parameters'])}" if numbers["parameters"] else ""
    spread = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    has_rate = "learning_rate" in numbers  # a whole optimiser of optax has its own
    changing = "changes with updates" if "learning_rate" in text else "the optimiser's own"
    rows = [
        ("training", f"{text.get('algorithm', 'reinforce').upper()} in {text['environment']}"),
        ("softmax", f"{text['softmax']}{parameter}"),
        ("network", _network_in_words(text)),
        ("learning rate", _listed(numbers["learning_rate"]) if has_rate else changing),
        ("discount", _listed(numbers["discount"])),
        *_rows_of_learner(text, numbers),
        ("runs", str(len(counts))),
        ("episodes", f"{spread} of each run, {sum(counts)} in all"),
    ]
    if mean is not None:
        last = min(LAST, max(counts))
        rows.append(("mean return", f"{mean:.4g} (the last {last} episodes of a run)"))
    data = {
        "kind": "training",
        **text,
        **numbers,
        "runs": len(counts),
        "played": sum(counts),
        "mean_return": mean,
    }
    return Result(rows, data)


def _network_in_words(text: Mapping[str, Any]) -> str:
    """The network that was trained."""
    if "network" in text:
        return str(text["network"])
    duelling = ", duelling" if text.get("duelling") else ""
    if text["depth"] == 1:
        return f"a hidden layer of {text['hidden']} units{duelling}"
    return f"{text['depth']} hidden layers of {text['hidden']} units{duelling}"


def _rows_of_learner(
    text: Mapping[str, Any], numbers: Mapping[str, list[float]]
) -> list[tuple[str, str]]:
    """The settings that only one of the algorithms has."""
    if text.get("algorithm") == "ppo":
        size = f"{text['steps']} steps of {text['environments']} environments"
        often = f"{text['epochs']} epochs in {text['minibatches']} minibatches"
        names = ("clip", "entropy", "value", "value_clip")
        weights = [f"{name} {_listed(numbers[name])}" for name in names if name in numbers]
        return [
            ("segment", f"{size}, {often}"),
            ("advantages", f"generalised, trace {_listed(numbers['trace'])}"),
            ("loss", ", ".join(weights)),
        ]
    often = "{minibatch} of them every {train_frequency} steps"
    if text.get("algorithm") == "sac":
        entropy = f"tuned, for {_listed(numbers['entropy_target'])} of the largest entropy"
        if "temperature" in numbers:
            entropy = _listed(numbers["temperature"])
        return [
            ("temperature", entropy),
            ("averages", f"{_listed(numbers['averaging'])} of the critics in each update"),
            ("replay", f"the last {text['capacity']} steps, {often.format(**text)}"),
        ]
    if text.get("algorithm") != "dqn":
        return [("batch", f"{text['batch']} episodes, baseline {text['baseline']}")]
    target = "none"
    if "target" in numbers:
        target = f"a copy every {_listed(numbers['target'])} updates"
        target += ", double" if text.get("double") else ""
    rows = [("target network", target)]
    if "munchausen" in numbers:
        rows.append(("munchausen", _listed(numbers["munchausen"])))
    return [*rows, ("replay", f"the last {text['capacity']} steps, {often.format(**text)}")]


def _different(values: Sequence[npt.NDArray[Any]]) -> list[float]:
    """The different numbers in arrays: 0.1 that was kept in float32 is shown as 0.1."""
    every = (f"{one:.7g}" for array in values for one in array.reshape(-1).tolist())
    return [float(one) for one in dict.fromkeys(every)]


def _listed(numbers: list[float]) -> str:
    text = ", ".join(f"{number:.7g}" for number in numbers[:MOST_ACTIONS])
    return (
        text if len(numbers) <= MOST_ACTIONS else f"{text} and {len(numbers) - MOST_ACTIONS} more"
    )
