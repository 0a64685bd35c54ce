"""The policy of a run, read from a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp

from .._common import checks
from .._common.text import shortened, visible
from ..softmax import Max, Softmax
from .checkpoint import block_path, read
from .description import KINDS, LONGEST, softmax_name
from .network import Network, Policy

__all__ = ["SavedPolicy", "load_policy"]


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
    elif softmax is None or softmax_name(softmax) != text["softmax"]:
        rule = "`softmax` must be of the class of the training"
        rule += f", {visible(shortened(text['softmax'], LONGEST))}"
        raise ValueError(f"{rule}, got {softmax!r}")
    else:
        softmax = jax.tree.unflatten(jax.tree.structure(softmax), parameters)
    policy = Policy(network, Max() if text.get("algorithm") == "dqn" else softmax)
    sizes = (text["observations"], text["actions"])
    return SavedPolicy(policy, softmax, text["environment"], *sizes)
