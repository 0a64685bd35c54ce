"""The state of a block of runs, in memory and on disk.

A block is the runs that are trained in one program. Its checkpoint is one file: a description of
the training, which must be the same when it is resumed, what every run has learned, and the
episodes that it has played. A file is written whole or not at all.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common import checks, npz
from .._common.schema import Field, json_object, matching, shown
from .._common.text import shortened, visible
from ..softmax import SOFTMAXES, Max, Softmax
from .dqn import Dqn
from .environment import PlayableEnvironment
from .learner import Learner
from .log import EpisodeLog
from .network import HeldTemperature, Network, Policy
from .reinforce import FORMER_BASELINES, Reinforce, ReinforceState

__all__ = [
    "BlockState",
    "Description",
    "SavedPolicy",
    "block_path",
    "describe",
    "load",
    "load_policy",
    "read",
    "save",
]

KIND = "training"
RULE = "`checkpoint` must be of a training with the same settings"
MOST_SHOWN = 6
"""The most numbers, or settings that differ, that a message lists."""
LONGEST = 200
"""The most characters of a setting in a message."""
KINDS: dict[str, type[Softmax]] = {
    **{kind.__name__: kind for kind in SOFTMAXES.values()},
    HeldTemperature.__name__: HeldTemperature,
}
"""The softmaxes of the library by the names of their classes, by which files name them; other
softmaxes have their full names."""
NUMBERS = ("learning_rate", "discount", "target")
"""The numbers of a learner that each run has, apart from the softmax's parameters."""
SCHEMA = {
    "settings": Field("text"),
    "parameters": Field("number", "P W"),
    "learning_rate": Field("number", "W", optional=True),
    "discount": Field("number", "W"),
    "target": Field("number", "W", optional=True),
    "others": Field("number", "O W"),
    "keys": Field("whole number", "W 2"),
    "numbers": Field("whole number", "W"),
    "done": Field("whole number", "R", least=0),
    "last": Field("number", "R"),
    "returns": Field("number", "R B"),
    "lengths": Field("number", "R B"),
    "recent": Field("number", "R E"),
    "solved": Field("whole number", "R"),
    "state-*": Field("value", "L ..."),
}
"""The arrays of a checkpoint of `W` lanes, `R` of which have a run. A whole optimiser has its own
learning rate. `others` are the numbers of a learner that adds some to one of the library."""
SIZE = Field("whole number", least=1)
SETTINGS = {
    "softmax": Field("text"),
    "parameters": Field("text", "P", optional=True),
    "environment": Field("text"),
    "algorithm": Field("text", among=("reinforce", "dqn"), optional=True),
    "observations": SIZE,
    "actions": SIZE,
    "bin": SIZE,
    "solved_return": Field("number", optional=True),
    "hidden": SIZE,
    "depth": Field("whole number", least=0),
    "*": Field("value"),
}
"""The settings of a checkpoint, which are JSON."""
OF_ALGORITHM = {
    "reinforce": {"batch": SIZE, "baseline": Field("text")},
    "dqn": {"minibatch": SIZE, "train_frequency": SIZE, "capacity": SIZE},
}
"""The settings of one algorithm."""
Description: TypeAlias = dict[str, str | npt.NDArray[Any]]
"""Everything that decides what the runs of a block learn."""


@dataclasses.dataclass
class BlockState:
    """What the runs of a block have learned, and the episodes they have played."""

    states: Any
    """What all lanes of the block have learned: a tree of arrays, those of the policy's network
    first."""
    log: EpisodeLog
    """The log of the lanes that have a run."""
    first: int = 0
    """The number of the block's first lane among those of all blocks."""
    playing: Any = None
    """The episodes that are under way, as `Player.begin` makes them."""

    def leaves(self) -> list[Any]:
        """The arrays of the states and of the episodes under way, as a file has them."""
        leaves: list[Any] = jax.tree.leaves((self.states, self.playing))
        return leaves


def block_path(directory: str | Path, first_lane: int) -> Path:
    """The file of the block that begins with a lane."""
    return Path(directory) / f"runs-{first_lane:05d}.npz"


def describe(
    learners: Learner,
    name: str,
    key_data: npt.NDArray[np.uint32],
    numbers: npt.NDArray[np.uint32],
    environment: PlayableEnvironment,
    log: EpisodeLog,
) -> Description:
    """Everything that decides what the runs of a block learn, as arrays and text.

    An optimiser, and a function that makes an environment, are known by their kind only.

    Args:
        learners: the learners of the lanes, with an axis of lanes first.
        name: the name of the environment.
        key_data: the data of the keys of the lanes' settings.
        numbers: the numbers of the runs.
        environment: the environment, from `environment_of`.
        log: the log of the episodes.

    Raises:
        ValueError: for a softmax with parameters that are more than a number each.
    """
    softmax = learners.softmax
    text = {
        "softmax": _name(softmax),
        "environment": name,
        "observations": environment.n_observations,
        "actions": environment.n_actions,
        "max_steps": environment.max_steps,
        "bin": log.bin,
        "solved_return": log.solved_return,
    }
    known, more = _parts(learners)
    if isinstance(known, Dqn):
        text["algorithm"] = "dqn"
    apart = {"softmax", "optimiser", *NUMBERS}
    names = [field.name for field in dataclasses.fields(known)]
    text |= {name: getattr(known, name) for name in names if name not in apart}
    leaves = jax.tree_util.tree_leaves_with_path(softmax)
    parameters = [leaf for _, leaf in leaves]
    if any(np.ndim(leaf) != 1 for leaf in parameters):
        rule = "`softmax` must have parameters of one number each to be saved"
        raise ValueError(f"{rule}, got {softmax!r}")
    if text["softmax"] not in KINDS:
        text["parameters"] = [jax.tree_util.keystr(path, simple=True) for path, _ in leaves]
    others = jax.tree.leaves(more)
    numbers_of = {name: getattr(known, name, None) for name in NUMBERS}
    return {
        "settings": json.dumps(text),
        "parameters": np.stack(parameters) if parameters else np.zeros((0, len(key_data))),
        **{name: np.asarray(values) for name, values in numbers_of.items() if values is not None},
        "others": np.stack(others) if others else np.zeros((0, len(key_data))),
        "keys": np.asarray(key_data),
        "numbers": np.asarray(numbers),
    }


def _parts(learners: Learner) -> tuple[Reinforce | Dqn, list[Any]]:
    """A learner of the library, and what a learner that is made of it adds to it."""
    if isinstance(learners, Reinforce | Dqn):
        return learners, []
    parts = [getattr(learners, field.name) for field in dataclasses.fields(learners)]  # type: ignore[arg-type]
    (known,) = (part for part in parts if isinstance(part, Reinforce | Dqn))
    return known, [part for part in parts if part is not known]


def _name(softmax: Softmax) -> str:
    """The name of a softmax in files."""
    kind = type(softmax)
    known = KINDS.get(kind.__name__) is kind
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def save(path: Path, description: Description, block: BlockState) -> None:
    """Write the state of a block, whole or not at all."""
    every = isinstance(block.states, ReinforceState)
    lanes = slice(None if every else len(block.log.done))  # a replay buffer is large
    leaves = {f"state-{i}": np.asarray(leaf)[lanes] for i, leaf in enumerate(block.leaves())}
    npz.write(path, KIND, {**description, **leaves, **block.log.arrays()})


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a checkpoint, and all that is in its file.

    Raises:
        ValueError: for a file that is truncated, of another kind, of a newer version, or not as
            `save` writes it.
    """
    with npz.reading(path, KIND, SCHEMA) as fields:
        settings = json_object("settings", fields["settings"], SETTINGS)
        own = OF_ALGORITHM[settings.get("algorithm", "reinforce")]
        settings = json_object("settings", fields["settings"], SETTINGS | own)
        if "baseline" in own and settings["baseline"] in FORMER_BASELINES:  # of mellowmax 0.1
            settings["baseline"] = FORMER_BASELINES[settings["baseline"]]
            written = json.loads(fields["settings"]) | {"baseline": settings["baseline"]}
            fields = {**fields, "settings": json.dumps(written)}
        _check_log(settings, fields)
        _check_states(settings, fields)
        count = len(_parameter_names(settings))
        if len(fields["parameters"]) != count:
            rule = f"field 'parameters' must have {count} rows, as many as the softmax parameters"
            raise ValueError(f"{rule}, got {len(fields['parameters'])}")
        if settings["softmax"] in KINDS:
            KINDS[settings["softmax"]](*fields["parameters"])
        return settings, fields


def _check_log(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise unless the episodes are logged as the settings say."""
    runs, lanes = len(fields["done"]), len(fields["numbers"])
    if not 1 <= runs <= lanes:
        raise ValueError(f"field 'done' must be of 1 to {lanes} runs, got {runs}")
    like = EpisodeLog.empty(1, settings["bin"], 1, settings["bin"], settings.get("solved_return"))
    for name, array in like.arrays().items():
        if fields[name].dtype != array.dtype:
            got = fields[name].dtype
            raise ValueError(f"field {name!r} must be an array of {array.dtype}, got {got}")
    if fields["recent"].shape[1] != like.recent.shape[1]:
        rule = f"field 'recent' must have {like.recent.shape[1]} returns of each run"
        raise ValueError(f"{rule}, got {fields['recent'].shape[1]}")
    most = fields["returns"].shape[1] * settings["bin"] // settings.get("batch", 1)
    if fields["done"].max() > most:
        rule = f"field 'done' must be no more than the {most} batches that 'returns' has room for"
        raise ValueError(f"{rule}, got {fields['done'].max()}")
    entries = -(-fields["done"] * settings.get("batch", 1) // settings["bin"])
    played = np.arange(fields["lengths"].shape[1]) < entries[:, None]
    wrong = fields["lengths"][(fields["lengths"] > 0) != played]
    if wrong.size:
        rule = "field 'lengths' must be at least 1 for what 'done' says was played, and 0 elsewhere"
        raise ValueError(f"{rule}, got {wrong[0]}")


def _check_states(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise unless the states begin with the weights of a network of the size in the settings."""
    states, lanes = _states(fields), (len(fields["done"]), len(fields["numbers"]))
    for i, state in enumerate(states):
        if len(state) not in lanes:
            rule = f"field 'state-{i}' must be of {lanes[0]} or {lanes[1]} lanes"
            raise ValueError(f"{rule}, got {len(state)}")
    if settings["depth"] >= len(states):
        rule = f"field 'settings.depth' must be below {len(states)}, as many states as there are"
        raise ValueError(f"{rule}, got {settings['depth']}")
    sizes = (settings["observations"], *[settings["hidden"]] * settings["depth"])
    weights: dict[str, Field] = {}
    for n_in, n_out in itertools.pairwise((*sizes, settings["actions"])):
        weights[f"state-{len(weights)}"] = Field("number", f"L {n_out} {n_in}")
        weights[f"state-{len(weights)}"] = Field("number", f"L {n_out}")
    for name, field in matching(weights, fields):
        field.check_form(name, fields[name].dtype, fields[name].shape, {})
        if fields[name].dtype != np.float32 or not np.isfinite(fields[name]).all():
            got = f"{fields[name].dtype} from {fields[name].min()} to {fields[name].max()}"
            raise ValueError(f"field {name!r} must be finite numbers of float32, got {got}")


def _states(fields: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
    """The arrays of the states of a block."""
    count = sum(name.startswith("state-") for name in fields)
    for i in range(count):
        if f"state-{i}" not in fields:
            raise ValueError(f"field 'state-{i}' must be there, one of {count} states, got none")
    return [fields[f"state-{i}"] for i in range(count)]


def load(path: Path, description: Description, initial: BlockState) -> BlockState:
    """The state of a block from its file, to be resumed.

    Args:
        path: what `save` wrote.
        description: of the training that is resumed.
        initial: the state that it would begin with.

    Raises:
        ValueError: for a file of another training, or one with more episodes.
    """
    _, fields = read(path)
    _check_same(path, fields, description, initial)
    played, wanted = int(fields["done"].max()) * initial.log.batch, initial.log.episodes
    if played > wanted:
        rule = "`episodes` must be no fewer than the checkpoint has"
        raise ValueError(f"{rule}, got {wanted} where {str(path)!r} has {played}")
    leaves, tree = jax.tree.flatten((initial.states, initial.playing))
    pairs = zip(map(jnp.asarray, _states(fields)), leaves, strict=True)
    whole = [x if len(x) == len(y) else y.at[: len(x)].set(x) for x, y in pairs]
    initial.log.restore(fields)
    states, playing = jax.tree.unflatten(tree, whole)
    return BlockState(states, initial.log, initial.first, playing)


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
            f"`{visible(shortened(name))}` was {_shown(was, name)} and is {_shown(now, name)}"
            for name in {**was, **now}
            if was.get(name) != now.get(name)
        ]
    elif had != has:
        differ = [f"{had} runs were trained together and now {has}, by `runs` and the device"]
    leaves = initial.leaves()
    were, are = ([(x.dtype, x.shape[1:]) for x in states] for states in (_states(fields), leaves))
    if not differ and were != are:
        differ = ["`optimiser` was of another kind"]
    if len(differ) > MOST_SHOWN:
        differ = [*differ[:MOST_SHOWN], f"and {len(differ) - MOST_SHOWN} more"]
    if differ:
        raise ValueError(f"{RULE}, got another in {str(path)!r}: {', '.join(differ)}")


def _shown(readable: Mapping[str, str], name: str) -> str:
    """A setting as a message shows it."""
    return shortened(readable.get(name, "none"), LONGEST)


def _lanes(description: Mapping[str, Any], first: int | None) -> dict[str, Any]:
    """The description of the first lanes of a block, or of all."""
    last = {name: description[name][..., :first] for name in ("parameters", "others")}
    names = [name for name in ("keys", "numbers", *NUMBERS) if name in description]
    lanes = {name: description[name][:first] for name in names}
    return {"settings": description["settings"], **last, **lanes}


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Do both have the same names with the same values?"""
    return one.keys() == other.keys() and all(np.array_equal(one[x], other[x]) for x in one)


def _readable(description: Mapping[str, str | npt.NDArray[Any]]) -> dict[str, str]:
    """The settings of a training, by the names of the arguments of its functions."""
    settings = json.loads(str(description["settings"]))
    names = _parameter_names(settings)
    settings.pop("parameters", None)
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


def _parameter_names(settings: Mapping[str, Any]) -> list[str]:
    """The names of the parameters of a training's softmax."""
    if "parameters" in settings:
        return list(settings["parameters"])
    if settings["softmax"] not in KINDS:
        rule = f"field 'settings.softmax' must be one of {', '.join(KINDS)}"
        raise ValueError(
            f"{rule} where 'parameters' has no names, got {shown(settings['softmax'])}"
        )
    return [field.name for field in dataclasses.fields(KINDS[settings["softmax"]])]  # type: ignore[arg-type]


def _as_typed(values: npt.NDArray[Any]) -> str:
    """The numbers of the lanes of a block as one would type them: one for all, or a list."""
    last = int(np.flatnonzero(np.append(True, values[1:] != values[:-1]))[-1])
    with np.errstate(invalid="ignore"):  # of infinite parameters
        steps = np.diff(values[: last + 1])
    if last > 2 and (steps == 1).all():
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
    """The softmax of the learner. The policy is the softmax's own after `reinforce`, and the greedy
    one after `dqn`."""
    environment: str
    """The name of the environment that it was trained in."""
    n_observations: int
    n_actions: int


def load_policy(
    checkpoint: str | Path, run: int = 0, softmax: Softmax | None = None
) -> SavedPolicy:
    """Load the policy of a run from a checkpoint.

    Args:
        checkpoint: the directory that was given to `train`.
        run: the number of the run, counted from 0 over all runs of all settings.
        softmax: any softmax of the training's class, if that is a class of your own. Its parameters
            are taken from the checkpoint.

    Raises:
        ValueError: if there is no such run, or for a softmax of another class than the training's.
    """
    directory = checks.file_path("checkpoint", checkpoint)
    run = checks.whole("run", run, 0)
    rule = "a Softmax of the class of the training, or None"
    checks.instance("softmax", softmax, Softmax | None, rule)
    firsts = [
        int(file.stem[5:])
        for file in directory.glob("runs-[0-9]*.npz")
        if file.stem[5:].isdecimal()
    ]
    first = max((number for number in firsts if number <= run), default=0)
    path = block_path(directory, first)
    if not path.is_file():
        rule = f"`checkpoint` must be the directory of a training with a run {run}"
        raise ValueError(f"{rule}, got {str(checkpoint)!r}")
    text, fields = read(path)
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
        rule = "`softmax` must be of the class of the training"
        rule += f", {visible(shortened(text['softmax'], LONGEST))}"
        raise ValueError(f"{rule}, got {softmax!r}")
    else:
        softmax = jax.tree.unflatten(jax.tree.structure(softmax), parameters)
    policy = Policy(network, Max() if text.get("algorithm") == "dqn" else softmax)
    sizes = (text["observations"], text["actions"])
    return SavedPolicy(policy, softmax, text["environment"], *sizes)
