"""Where a block of runs has come to, in memory and on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._common import npz as _npz
from ..softmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax, Softmax
from .network import HeldTemperature, Network, Policy
from .reinforce import Reinforce, State
from .rollouts.rollouts import WIDTH, Advance, Source

__all__ = ["Saved", "Stand", "described", "load", "load_policy", "path_of", "save"]

KIND = "training"
RULE = "`checkpoint` must be of a training with the same settings"
SOFTMAXES: dict[str, type[Softmax]] = {
    kind.__name__: kind
    for kind in (Max, Mean, EpsilonGreedy, Boltzmann, Mellowmax, HeldTemperature)
}


@dataclasses.dataclass
class Stand:
    """What the runs of a block have learned, and the episodes they have played."""

    states: State
    """Of all lanes of the block."""
    done: list[int]
    """How many batches each run has learned from."""
    returns: Any
    """`[runs, episodes]`; NaN where an episode has not been played."""
    lengths: Any
    """`[runs, episodes]`"""

    @classmethod
    def begin(cls, states: State, runs: int, episodes: int) -> Stand:
        """Where nothing has been played yet."""
        shape = (runs, episodes)
        return cls(
            states, [0] * runs, np.full(shape, np.nan, np.float32), np.zeros(shape, np.int32)
        )

    def take(self, advance: Advance, batch: int) -> None:
        """Take over what some lanes have learned."""
        self.states = advance.states
        for lane, returns, lengths in zip(
            advance.lanes, advance.returns, advance.lengths, strict=True
        ):
            first = self.done[lane] * batch
            played = slice(first, first + len(returns))
            self.returns[lane, played], self.lengths[lane, played] = returns, lengths
            self.done[lane] += len(returns) // batch


def path_of(directory: str | Path, first_lane: int) -> Path:
    """The file of the block that begins with a lane."""
    return Path(directory) / f"runs-{first_lane:05d}.npz"


def described(
    learners: Reinforce, environment: Any, key_data: Any, numbers: Any, source: Source
) -> dict[str, Any]:
    """All that decides on what the runs of a block learn, as arrays and text.

    Of an optimiser, and of a function that makes an environment, only the kind is known.

    Raises:
        ValueError: for a softmax that is not one of the library's.
    """
    softmax = learners.softmax
    if SOFTMAXES.get(type(softmax).__name__) is not type(softmax):
        raise ValueError(f"`softmax` must be one of the library's to be saved, got {softmax!r}")
    text = {
        "softmax": type(softmax).__name__,
        "environment": _name_of(environment),
        "observations": source.n_observations,
        "actions": source.n_actions,
        "max_steps": source.max_steps,
    }
    names = ("batch", "hidden", "depth", "reward_to_go", "baseline", "normalise")
    text |= {name: getattr(learners, name) for name in names}
    parameters = jax.tree.leaves(softmax)
    return {
        "settings": json.dumps(text),
        "parameters": np.stack(parameters) if parameters else np.zeros((0, len(key_data))),
        "learning_rate": np.asarray(learners.learning_rate),
        "discount": np.asarray(learners.discount),
        "keys": np.asarray(key_data),
        "numbers": np.asarray(numbers),
    }


def save(path: Path, description: dict[str, Any], stand: Stand) -> None:
    """Write where a block has come to, whole or not at all."""
    leaves = {f"state-{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(stand.states))}
    played = {"done": stand.done, "returns": stand.returns, "lengths": stand.lengths}
    _npz.write(path, KIND, {**description, **leaves, **played})


def load(path: Path, description: dict[str, Any], begin: Stand) -> Stand:
    """Where a block had come to.

    Args:
        path: what `save` wrote.
        description: that of the training that is to go on.
        begin: where it would begin.

    Raises:
        ValueError: for a file of another training, or one that has come further.
    """
    fields = _npz.read(path, KIND)
    for name, value in description.items():
        there = fields.get(name)
        if there is None or not np.array_equal(there, value):
            raise ValueError(f"{RULE}, got other {name} in {str(path)!r}: {_told(there, value)}")
    there = int(fields["done"].max()) * json.loads(description["settings"])["batch"]
    wanted = begin.returns.shape[1]
    if there > wanted:
        rule = "`episodes` must be no fewer than the checkpoint has"
        raise ValueError(f"{rule}, got {wanted} where {str(path)!r} has {there}")
    leaves, tree = jax.tree.flatten(begin.states)
    had = [fields[name].shape for name in fields if name.startswith("state-")]
    if had != [np.shape(leaf) for leaf in leaves]:
        raise ValueError(f"{RULE}, got another optimiser in {str(path)!r}")
    states = jax.tree.unflatten(
        tree, [jnp.asarray(fields[f"state-{i}"]) for i in range(len(leaves))]
    )
    stand = Stand(states, fields["done"].tolist(), begin.returns, begin.lengths)
    stand.returns[:, :there] = fields["returns"][:, :there]
    stand.lengths[:, :there] = fields["lengths"][:, :there]
    return stand


def _told(there: Any, wanted: Any) -> str:
    """The first thing that differs."""
    if isinstance(wanted, str) and there is not None:
        had, want = json.loads(there.item()), json.loads(wanted)
        for name in want:
            if had.get(name) != want[name]:
                return f"{name} {had.get(name)!r} and not {want[name]!r}"
    lists = (list(dict.fromkeys(np.ravel(x).tolist())) for x in (there, wanted) if x is not None)
    return " and not ".join(map(str, lists))


def _name_of(environment: Any) -> str:
    if isinstance(environment, str):
        return environment
    kind = environment if callable(environment) else type(environment)
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    tables = [x for x in jax.tree.leaves(environment) if isinstance(x, np.ndarray | np.generic)]
    digest = hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in tables))
    return f"{name} {digest.hexdigest()[:16]}" if tables else name


@dataclasses.dataclass(frozen=True)
class Saved:
    """A policy that was read from a checkpoint."""

    policy: Policy
    environment: str
    """Where it was trained."""
    n_observations: int
    n_actions: int


def load_policy(checkpoint: str | Path, run: int = 0) -> Saved:
    """The policy of a run, from a checkpoint.

    Args:
        checkpoint: the directory that was given to `train`.
        run: its number, counted from 0 over all runs of all settings.

    Raises:
        ValueError: if there is no such run.
    """
    first = run - run % WIDTH
    path = path_of(checkpoint, first)
    if not path.is_file():
        rule = f"`checkpoint` must be the directory of a training with a run {run}"
        raise ValueError(f"{rule}, got {str(checkpoint)!r}")
    fields = _npz.read(path, KIND)
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
    softmax = SOFTMAXES[text["softmax"]](*map(float, fields["parameters"][..., lane]))
    policy = Policy(network, softmax)
    return Saved(policy, text["environment"], text["observations"], text["actions"])
