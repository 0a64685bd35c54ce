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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common import npz
from .._common.schema import Field, json_object, matching
from .._common.shown import shown
from .._typing import PyTree
from .description import ALGORITHMS, KINDS, NUMBERS, Description, differences, parameter_names
from .log import NEVER, EpisodeLog
from .reinforce import FORMER_BASELINES, ReinforceState

__all__ = ["BlockState", "block_path", "load", "read", "save"]

KIND = "training"
RULE = "`checkpoint` must be of a training with the same settings"
SCHEMA = {
    "settings": Field("text"),
    "parameters": Field("number", "P W"),
    **{name: Field("number", "W", optional=name != "discount") for name in NUMBERS},
    "others": Field("number", "O W"),
    "keys": Field("whole number", "W 2"),
    "numbers": Field("whole number", "W"),
    "done": Field("whole number", "R", least=0),
    "taken": Field("whole number", "R", least=0, optional=True),
    "steps": Field("whole number", least=1, optional=True),
    "last": Field("number", "R"),
    "returns": Field("number", "R B"),
    "lengths": Field("number", "R B"),
    "recent": Field("number", "R E"),
    "solved": Field("whole number", "R"),
    "state-*": Field("value", "L ..."),
}
"""The arrays of a checkpoint of `W` lanes, `R` of which have a run. A whole optimiser has its own
learning rate. `others` are the numbers of a learner that adds some to one of the library. `steps`
is how many the last training asked for; a run may have taken more, to the end of its batch."""
SIZE = Field("whole number", least=1)
FLOATS = ("float16", "bfloat16", "float32", "float64")
SETTINGS = {
    "softmax": Field("text"),
    "parameters": Field("text", "P", optional=True),
    "environment": Field("text"),
    "algorithm": Field("text", among=("reinforce", *ALGORITHMS), optional=True),
    "observations": SIZE,
    "actions": SIZE,
    "bin": SIZE,
    "solved_return": Field("number", optional=True),
    "hidden": Field("whole number", optional=True, least=1),
    "depth": Field("whole number", optional=True, least=0),
    "duelling": Field("boolean", optional=True),
    "network": Field("text", optional=True),
    "leaves": Field("text", "N", optional=True),
    "observation": Field("text", optional=True),
    "action_mask": Field("boolean", optional=True),
    "*": Field("value"),
}
"""The settings of a checkpoint, which are JSON. An `mlp` has its sizes, any other network its name
and its arrays: the path within the module of each, its dtype and its shape. An observation that is
no vector of float32 has its shapes."""
OF_ALGORITHM = {
    "reinforce": {"batch": SIZE, "baseline": Field("text")},
    "dqn": {"minibatch": SIZE, "train_frequency": SIZE, "capacity": SIZE},
    "sac": {"minibatch": SIZE, "train_frequency": SIZE, "capacity": SIZE},
    "ppo": {"environments": SIZE, "steps": SIZE, "epochs": SIZE, "minibatches": SIZE},
}
"""The settings of one algorithm."""


@dataclasses.dataclass
class BlockState:
    """What the runs of a block have learned, and the episodes they have played."""

    states: PyTree
    """What all lanes of the block have learned: a tree of arrays, those of the policy's network
    first."""
    log: EpisodeLog
    """The log of the lanes that have a run."""
    first: int = 0
    """The number of the block's first lane among those of all blocks."""
    playing: PyTree = None
    """The episodes that are under way, as `Player.begin` makes them."""

    def leaves(self) -> list[Any]:
        """The arrays of the states and of the episodes under way, by their names in a file."""
        return [_data(leaf) for leaf in jax.tree.leaves((self.states, self.playing))]


def _data(leaf: Any) -> Any:
    """An array to be saved; JAX's keys, which an environment's state may have, become numbers."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def block_path(directory: str | Path, first_lane: int) -> Path:
    """The file of the block that begins with a lane."""
    return Path(directory) / f"runs-{first_lane:05d}.npz"


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
        settings, fields = _with_present_names(_settings(fields), fields)
        if "taken" not in fields:  # of mellowmax 0.1, which counted episodes alone
            fields["taken"] = fields["lengths"].sum(1, dtype=np.int64)
        _check_log(settings, fields)
        _check_states(settings, fields)
        count = len(parameter_names(settings))
        if len(fields["parameters"]) != count:
            rule = f"field 'parameters' must have {count} rows, as many as the softmax parameters"
            raise ValueError(f"{rule}, got {len(fields['parameters'])}")
        if settings["softmax"] in KINDS:
            KINDS[settings["softmax"]](*fields["parameters"])
        return settings, fields


def _settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a checkpoint, those of its algorithm included."""
    settings = json_object("settings", fields["settings"], SETTINGS)
    own = OF_ALGORITHM[settings.get("algorithm", "reinforce")]
    return json_object("settings", fields["settings"], SETTINGS | own)


def _with_present_names(
    settings: dict[str, Any], fields: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings and the fields of a checkpoint with what mellowmax 0.1 named otherwise."""
    former = settings.get("baseline")
    if not isinstance(former, str) or former not in FORMER_BASELINES:
        return settings, fields
    present = {"baseline": FORMER_BASELINES[former]}
    written = json.loads(fields["settings"]) | present
    return settings | present, {**fields, "settings": json.dumps(written)}


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
    weights = _weights(settings, len(states))
    fields_of = {
        name: Field("number", f"L {' '.join(shape)}") for name, (_, shape) in weights.items()
    }
    for name, field in matching(fields_of, fields):
        field.check_form(name, fields[name].dtype, fields[name].shape, {})
        dtype = weights[name][0]
        if fields[name].dtype != dtype or not np.isfinite(fields[name]).all():
            got = f"{fields[name].dtype} from {fields[name].min()} to {fields[name].max()}"
            raise ValueError(f"field {name!r} must be finite numbers of {dtype}, got {got}")


def _weights(settings: Mapping[str, Any], states: int) -> dict[str, tuple[str, list[str]]]:
    """The dtype and the shape of each array of the network, by its name in the file."""
    if "leaves" in settings:
        parts = [leaf.split(" ")[-2:] for leaf in settings["leaves"]]
        if any(len(part) != 2 or part[0] not in FLOATS for part in parts):
            rule = "field 'settings.leaves' must have the path, dtype and shape of each array"
            raise ValueError(f"{rule}, got {shown(settings['leaves'])}")
        forms = [(dtype, [x for x in shape.split(",") if x]) for dtype, shape in parts]
        return {f"state-{i}": form for i, form in enumerate(forms)}
    if "hidden" not in settings or "depth" not in settings:
        name = "hidden" if "hidden" not in settings else "depth"
        raise SETTINGS[name].error(f"settings.{name}", "none")
    if settings["depth"] >= states:
        rule = f"field 'settings.depth' must be below {states}, as many states as there are"
        raise ValueError(f"{rule}, got {settings['depth']}")
    sizes = (settings["observations"], *[settings["hidden"]] * settings["depth"])
    weights: list[list[str]] = []
    outputs = settings["actions"] + settings.get("duelling", False)
    for n_in, n_out in itertools.pairwise((*sizes, outputs)):
        weights += [[str(n_out), str(n_in)], [str(n_out)]]
    return {f"state-{i}": ("float32", shape) for i, shape in enumerate(weights)}


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
        ValueError: for a file of another training, or one with more episodes or steps.
    """
    _, fields = read(path)
    _check_same(path, fields, description, initial)
    log = initial.log
    for name, wanted, there in (
        ("episodes", log.episodes, int(fields["done"].max()) * log.batch),
        ("steps", log.steps, int(min(fields["taken"].max(), fields.get("steps", NEVER)))),
    ):
        if wanted is not None and there > wanted:
            rule = f"`{name}` must be no fewer than the checkpoint has"
            raise ValueError(f"{rule}, got {wanted} where {str(path)!r} has {there}")
    leaves, tree = jax.tree.flatten((initial.states, initial.playing))
    pairs = zip(map(jnp.asarray, _states(fields)), initial.leaves(), strict=True)
    arrays = [x if len(x) == len(y) else y.at[: len(x)].set(x) for x, y in pairs]
    whole = [
        jax.random.wrap_key_data(x, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else x
        for x, leaf in zip(arrays, leaves, strict=True)
    ]
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
    runs = len(fields["done"]), len(initial.log.done)
    differ = differences(fields, description, runs)
    leaves = initial.leaves()
    were, are = ([(x.dtype, x.shape[1:]) for x in states] for states in (_states(fields), leaves))
    if not differ and were != are:
        differ = ["`optimiser` was of another kind"]
    if differ:
        raise ValueError(f"{RULE}, got another in {str(path)!r}: {', '.join(differ)}")
