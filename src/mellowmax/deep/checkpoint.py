"""The state of a block of runs, in memory and on disk.

A block is the runs that are trained in one program. Its checkpoint is one file: a description of
the training, which must be the same when it is resumed, what every run has learned, and the
episodes that it has played. A file is written whole or not at all.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common import checks, npz
from ..softmax import SOFTMAXES, Max, Softmax
from .dqn import Dqn
from .episode_log import EpisodeLog
from .network import HeldTemperature, Network, Policy
from .reinforce import Reinforce, ReinforceState
from .rollouts.rollouts import Rollouts

__all__ = [
    "BlockState",
    "Description",
    "SavedPolicy",
    "block_path",
    "describe",
    "load",
    "load_policy",
    "save",
]

KIND = "training"
RULE = "`checkpoint` must be of a training with the same settings"
MOST_SHOWN = 6
"""How many numbers of as many runs a message has."""
KINDS: dict[str, type[Softmax]] = {
    **{kind.__name__: kind for kind in SOFTMAXES.values()},
    HeldTemperature.__name__: HeldTemperature,
}
"""The softmaxes of the library by the names of their classes, which is what files have; of others
they have the full name."""
NUMBERS = ("learning_rate", "discount", "target")
"""What a learner has of each run, beside the softmax's parameters."""
Description: TypeAlias = dict[str, str | npt.NDArray[Any]]
"""All that decides on what the runs of a block learn."""


@dataclasses.dataclass
class BlockState:
    """What the runs of a block have learned, and the episodes they have played."""

    states: Any
    """Of all lanes of the block: a tree of arrays, the network's first."""
    log: EpisodeLog
    """Of the lanes that have a run."""
    first: int = 0
    """The number of its first lane among those of all blocks."""


def block_path(directory: str | Path, first_lane: int) -> Path:
    """The file of the block that begins with a lane."""
    return Path(directory) / f"runs-{first_lane:05d}.npz"


def describe(
    learners: Reinforce | Dqn,
    environment: str,
    key_data: npt.NDArray[np.uint32],
    numbers: npt.NDArray[np.uint32],
    rollouts: Rollouts,
    log: EpisodeLog,
) -> Description:
    """All that decides on what the runs of a block learn, as arrays and text.

    Of an optimiser, and of a function that makes an environment, only the kind is known.

    Args:
        learners: with an axis of lanes first.
        environment: its name.
        key_data: of the settings of the lanes.
        numbers: of the runs.
        rollouts: of the environment.
        log: what is kept of the episodes.

    Raises:
        ValueError: for a softmax with parameters that are more than a number each.
    """
    softmax = learners.softmax
    text = {
        "softmax": _name(softmax),
        "environment": environment,
        "observations": rollouts.n_observations,
        "actions": rollouts.n_actions,
        "max_steps": rollouts.max_steps,
        "bin": log.bin,
        "solved_return": log.solved_return,
    }
    kind = Dqn if isinstance(learners, Dqn) else Reinforce
    known = [field.name for field in dataclasses.fields(kind)]
    if kind is Dqn:
        text["algorithm"] = "dqn"
    apart = {"softmax", "optimiser", *NUMBERS}
    text |= {name: getattr(learners, name) for name in known if name not in apart}
    leaves = jax.tree_util.tree_leaves_with_path(softmax)
    parameters = [leaf for _, leaf in leaves]
    if any(np.ndim(leaf) != 1 for leaf in parameters):
        rule = "`softmax` must have parameters of one number each to be saved"
        raise ValueError(f"{rule}, got {softmax!r}")
    if text["softmax"] not in KINDS:
        text["parameters"] = [jax.tree_util.keystr(path, simple=True) for path, _ in leaves]
    own = [x.name for x in dataclasses.fields(learners) if x.name not in known]
    others = jax.tree.leaves([getattr(learners, name) for name in own])  # of a class of one's own
    numbers_of = {name: getattr(learners, name, None) for name in NUMBERS}
    return {
        "settings": json.dumps(text),
        "parameters": np.stack(parameters) if parameters else np.zeros((0, len(key_data))),
        **{name: np.asarray(values) for name, values in numbers_of.items() if values is not None},
        "others": np.stack(others) if others else np.zeros((0, len(key_data))),
        "keys": np.asarray(key_data),
        "numbers": np.asarray(numbers),
    }


def _name(softmax: Softmax) -> str:
    """What files call a softmax."""
    kind = type(softmax)
    known = KINDS.get(kind.__name__) is kind
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def save(path: Path, description: Description, block: BlockState) -> None:
    """Write the state of a block, whole or not at all."""
    every = isinstance(block.states, ReinforceState)
    lanes = slice(None if every else len(block.log.done))  # a replay buffer is large
    leaves = {
        f"state-{i}": np.asarray(leaf)[lanes]
        for i, leaf in enumerate(jax.tree.leaves(block.states))
    }
    npz.write(path, KIND, {**description, **leaves, **block.log.arrays()})


def load(path: Path, description: Description, initial: BlockState) -> BlockState:
    """The state of a block from its file, to be resumed.

    Args:
        path: what `save` wrote.
        description: of the training that is resumed.
        initial: the state that it would begin with.

    Raises:
        ValueError: for a file of another training, or one that has come further.
    """
    fields = npz.read(path, KIND)
    _check_same(path, fields, description, initial)
    played, wanted = int(fields["done"].max()) * initial.log.batch, initial.log.episodes
    if played > wanted:
        rule = "`episodes` must be no fewer than the checkpoint has"
        raise ValueError(f"{rule}, got {wanted} where {str(path)!r} has {played}")
    leaves, tree = jax.tree.flatten(initial.states)
    there = (jnp.asarray(fields[f"state-{i}"]) for i in range(len(leaves)))
    pairs = zip(there, leaves, strict=True)
    whole = [x if len(x) == len(y) else y.at[: len(x)].set(x) for x, y in pairs]
    initial.log.restore(fields)
    return BlockState(jax.tree.unflatten(tree, whole), initial.log, initial.first)


def _check_same(
    path: Path,
    fields: dict[str, npt.NDArray[Any]],
    description: Description,
    initial: BlockState,
) -> None:
    """Raise unless a file is of the training described: each setting as it was and as it is."""
    differ = []
    had, has = len(fields["done"]), len(initial.log.done)
    few = None if had == has else min(had, has)
    if not _equal(_lanes(fields, few), _lanes(description, few)):
        was, now = _readable(fields), _readable(description)
        differ = [
            f"`{name}` was {was.get(name, 'none')} and is {now.get(name, 'none')}"
            for name in {**was, **now}
            if was.get(name) != now.get(name)
        ]
    elif had != has:
        differ = [f"{had} runs were trained together and now {has}, by `runs` and the device"]
    shapes = [fields[name].shape[1:] for name in fields if name.startswith("state-")]
    if not differ and shapes != [np.shape(leaf)[1:] for leaf in jax.tree.leaves(initial.states)]:
        differ = ["`optimiser` was of another kind"]
    if differ:
        raise ValueError(f"{RULE}, got another in {str(path)!r}: {', '.join(differ)}")


def _lanes(description: Mapping[str, Any], first: int | None) -> dict[str, Any]:
    """What is said of the first lanes of a block, or of all."""
    last = {name: description[name][..., :first] for name in ("parameters", "others")}
    names = [name for name in ("keys", "numbers", *NUMBERS) if name in description]
    lanes = {name: description[name][:first] for name in names}
    return {"settings": description["settings"], **last, **lanes}


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """The same names with the same values?"""
    return one.keys() == other.keys() and all(np.array_equal(one[x], other[x]) for x in one)


def _readable(description: Mapping[str, str | npt.NDArray[Any]]) -> dict[str, str]:
    """The settings of a training by the names that `reinforce`, `dqn` and `train` have for them."""
    settings = json.loads(str(description["settings"]))
    names = settings.pop("parameters", None)
    if names is None:
        kind = KINDS[settings["softmax"]]
        names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    arrays = dict(zip(names, np.asarray(description["parameters"]), strict=True))
    arrays |= {name: np.asarray(description[name]) for name in NUMBERS if name in description}
    high, low = np.asarray(description["keys"]).T
    text = {name: repr(value) for name, value in {"algorithm": "reinforce", **settings}.items()}
    text |= {name: _as_typed(values) for name, values in arrays.items()}
    others = map(_as_typed, np.asarray(description["others"]))
    text |= {f"number {i} of the learner": values for i, values in enumerate(others)}
    text["seed"] = f"the keys {_as_typed(low)}, {_as_typed(high)}" if high.any() else _as_typed(low)
    text["runs"] = _as_typed(np.asarray(description["numbers"]))
    return text


def _as_typed(values: npt.NDArray[Any]) -> str:
    """What the lanes of a block have: one number for all, or one for each but those that repeat."""
    last = int(np.flatnonzero(np.append(True, values[1:] != values[:-1]))[-1])
    if last > 2 and np.array_equal(np.diff(values[: last + 1].astype(np.int64)), np.ones(last)):
        return f"{values[0]} to {values[last]}"
    if last == 0:
        return str(values[0])
    shown = [str(value) for value in values[: last + 1]]
    if last > MOST_SHOWN:
        shown = [*shown[: MOST_SHOWN - 1], "...", shown[-1]]
    return f"[{', '.join(shown)}]"


@dataclasses.dataclass(frozen=True)
class SavedPolicy:
    """A policy that was read from a checkpoint."""

    policy: Policy
    softmax: Softmax
    """That of the learner. The policy is the softmax's own after `reinforce`, the greedy one after
    `dqn`."""
    environment: str
    """Where it was trained."""
    n_observations: int
    n_actions: int


def load_policy(
    checkpoint: str | Path, run: int = 0, softmax: Softmax | None = None
) -> SavedPolicy:
    """Load the policy of a run from a checkpoint.

    Args:
        checkpoint: the directory that was given to `train`.
        run: its number, counted from 0 over all runs of all settings.
        softmax: needed where that of the training is of a class of your own: any softmax of this
            class. Its parameters are taken from the checkpoint.

    Raises:
        ValueError: if there is no such run, or for a softmax of another class than the training's.
    """
    run = checks.whole("run", run, 0)
    firsts = [int(file.stem[5:]) for file in Path(checkpoint).glob("runs-[0-9]*.npz")]
    first = max((number for number in firsts if number <= run), default=0)
    path = block_path(checkpoint, first)
    if not path.is_file():
        rule = f"`checkpoint` must be the directory of a training with a run {run}"
        raise ValueError(f"{rule}, got {str(checkpoint)!r}")
    fields = npz.read(path, KIND)
    text = json.loads(fields["settings"].item())
    lane = run - first
    if lane >= len(fields["done"]):
        there = first + len(fields["done"])
        raise ValueError(f"`run` must be below {there}, the number of runs there, got {run}")
    sizes = (text["observations"], *[text["hidden"]] * text["depth"], text["actions"])
    like = jax.eval_shape(lambda: Network.init(jax.random.key(0), sizes))
    leaves, tree = jax.tree.flatten(like)  # the network comes first in a state
    network = jax.tree.unflatten(
        tree, [jnp.asarray(fields[f"state-{i}"][lane]) for i in range(len(leaves))]
    )
    parameters = [float(x) for x in fields["parameters"][..., lane]]
    if softmax is None and text["softmax"] in KINDS:
        softmax = KINDS[text["softmax"]](*parameters)
    elif softmax is None or _name(softmax) != text["softmax"]:
        rule = f"`softmax` must be of the class of the training, {text['softmax']}"
        raise ValueError(f"{rule}, got {softmax!r}")
    else:
        softmax = jax.tree.unflatten(jax.tree.structure(softmax), parameters)
    policy = Policy(network, Max() if text.get("algorithm") == "dqn" else softmax)
    sizes = (text["observations"], text["actions"])
    return SavedPolicy(policy, softmax, text["environment"], *sizes)
