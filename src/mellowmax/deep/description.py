"""The description of a training: everything that decides what the runs of a block learn.

It is saved with a checkpoint. A checkpoint is resumed only by a training with the same description,
and `differences` says, in the words of the arguments, where two descriptions differ.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from .._common.shown import shown
from .._common.text import shortened, visible
from .._typing import PyTree
from ..softmax import OTHERS, SOFTMAXES, Softmax
from .dqn import Dqn
from .environment import PlayableEnvironment, name_of, observation_of
from .learner import Learner
from .log import EpisodeLog
from .network import HeldTemperature, Mlp
from .observation import Seen, as_text, unmasked, vector
from .ppo import Ppo
from .reinforce import Reinforce
from .sac import Sac
from .schedule import Linear
from .trainable import MakeNetwork, form_of

__all__ = [
    "ALGORITHMS",
    "CHANGING",
    "KINDS",
    "LONGEST",
    "NUMBERS",
    "Description",
    "describe",
    "differences",
    "leaves_of",
    "parameter_names",
    "softmax_name",
]

MOST_SHOWN = 6
"""The most numbers, or settings that differ, that a message lists."""
LONGEST = 200
"""The most characters of a setting in a message."""
KINDS: dict[str, type[Softmax]] = {
    **{kind.__name__: kind for kind in (*SOFTMAXES.values(), *OTHERS.values())},
    HeldTemperature.__name__: HeldTemperature,
}
"""The softmaxes of the library by the names of their classes, by which files name them; other
softmaxes have their full names."""
ALGORITHMS = {"dqn": Dqn, "ppo": Ppo, "sac": Sac}
"""The kinds of learners by their names in files, but for REINFORCE, which had none at first."""
CHANGING = "linear "
"""What the name of a softmax begins with that changes while a run learns."""
NUMBERS = (
    "learning_rate",
    "discount",
    "target",
    "trace",
    "clip",
    "entropy",
    "value",
    "value_clip",
    "temperature",
    "entropy_target",
    "averaging",
    "munchausen",
)
"""The numbers of a learner that each run has, apart from the softmax's parameters."""
Description: TypeAlias = dict[str, str | npt.NDArray[Any]]
"""The settings of a training as text (JSON), and the numbers of each of its lanes as arrays."""


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
        "softmax": softmax_name(softmax),
        "environment": name,
        "observations": environment.n_observations,
        "actions": environment.n_actions,
        "max_steps": environment.max_steps,
        "bin": log.bin,
        "solved_return": log.solved_return,
    }
    seen = observation_of(environment)
    if isinstance(seen, Seen):
        text["action_mask"] = True
    if unmasked(seen) != vector(environment.n_observations):
        text["observation"] = as_text(unmasked(seen))
    known, more = _parts(learners)
    for name, kind in ALGORITHMS.items():
        if isinstance(known, kind):
            text["algorithm"] = name
    apart = {"softmax", "optimiser", *NUMBERS}
    for field in dataclasses.fields(known):
        value = getattr(known, field.name)
        if field.name == "network":
            text |= _network_text(known.network, environment)
        elif field.name not in apart and value is not field.default:
            text[field.name] = value  # one with a default is younger than some files
    leaves = jax.tree_util.tree_leaves_with_path(softmax)
    parameters = [leaf for _, leaf in leaves]
    if any(np.ndim(leaf) != 1 for leaf in parameters):
        rule = "`softmax` must have parameters of one number each to be saved"
        raise ValueError(f"{rule}, got {softmax!r}")
    if text["softmax"] not in KINDS:
        text["parameters"] = [jax.tree_util.keystr(path, simple=True) for path, _ in leaves]
    numbers_of = {name: getattr(known, name, None) for name in NUMBERS}
    if isinstance(numbers_of["learning_rate"], Linear):
        text["learning_rate"] = "linear"
        more = [*more, numbers_of.pop("learning_rate")]
    others = jax.tree.leaves(more)
    return {
        "settings": json.dumps(text),
        "parameters": np.stack(parameters) if parameters else np.zeros((0, len(key_data))),
        **{name: np.asarray(values) for name, values in numbers_of.items() if values is not None},
        "others": np.stack(others) if others else np.zeros((0, len(key_data))),
        "keys": np.asarray(key_data),
        "numbers": np.asarray(numbers),
    }


def _network_text(network: MakeNetwork, environment: PlayableEnvironment) -> dict[str, Any]:
    """A network as text: the sizes of the library's own, the name and the arrays of any other."""
    if not isinstance(network, Mlp):
        form = form_of(network, observation_of(environment), environment.n_actions)
        made = network.func if isinstance(network, functools.partial) else network
        return {"network": name_of(made), "leaves": leaves_of(form)}
    usual = {field.name: field.default for field in dataclasses.fields(network)}
    return {name: x for name, x in dataclasses.asdict(network).items() if x != usual[name]}


def leaves_of(module: PyTree) -> list[str]:
    """The path, the dtype and the shape of each array of a module, as text."""
    leaves = jax.tree_util.tree_leaves_with_path(module)
    return [
        f"{jax.tree_util.keystr(path)} {leaf.dtype} {','.join(map(str, leaf.shape))}"
        for path, leaf in leaves
    ]


def _parts(learners: Learner) -> tuple[Reinforce | Dqn | Ppo | Sac, list[Any]]:
    """The learner of the library within a learner, and the other fields around it."""
    if isinstance(learners, Reinforce | Dqn | Ppo | Sac):
        return learners, []
    assert dataclasses.is_dataclass(learners)
    parts = [getattr(learners, field.name) for field in dataclasses.fields(learners)]
    (known,) = (part for part in parts if isinstance(part, Reinforce | Dqn | Ppo | Sac))
    return known, [part for part in parts if part is not known]


def softmax_name(softmax: Softmax | Linear) -> str:
    """The name of a softmax in files."""
    if isinstance(softmax, Linear):
        return CHANGING + softmax_name(softmax.start)
    kind = type(softmax)
    known = KINDS.get(kind.__name__) is kind
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def differences(
    was: Mapping[str, str | npt.NDArray[Any]], now: Description, runs: tuple[int, int]
) -> list[str]:
    """Each setting that differs between two trainings, as it was and as it is.

    Args:
        was: the description of one training, which may have the fields of its checkpoint too.
        now: the description of the other.
        runs: how many runs the block has in each.
    """
    differ = []
    had, has = runs
    few = None if had == has else min(had, has)
    if not _equal(_lanes(was, few), _lanes(now, few)):
        before, after = _readable(was), _readable(now)
        differ = [
            f"`{visible(shortened(name))}` was {_shown(before, name)} and is {_shown(after, name)}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
    elif had != has:
        differ = [f"{had} runs were trained together and now {has}, by `runs` and the device"]
    if len(differ) > MOST_SHOWN:
        differ = [*differ[:MOST_SHOWN], f"and {len(differ) - MOST_SHOWN} more"]
    return differ


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
    names = parameter_names(settings)
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


def parameter_names(settings: Mapping[str, Any]) -> list[str]:
    """The names of the parameters of a training's softmax."""
    if "parameters" in settings:
        return list(settings["parameters"])
    if settings["softmax"] not in KINDS:
        rule = f"field 'settings.softmax' must be one of {', '.join(KINDS)}"
        raise ValueError(
            f"{rule} where 'parameters' has no names, got {shown(settings['softmax'])}"
        )
    kind = KINDS[settings["softmax"]]
    assert dataclasses.is_dataclass(kind)
    return [field.name for field in dataclasses.fields(kind) if not field.kw_only]


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
