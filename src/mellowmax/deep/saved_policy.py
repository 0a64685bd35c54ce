"""The policy of a run, read from a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from .._common import checks
from .._common.text import shortened, visible
from ..softmax import Max, Softmax
from .checkpoint import block_path, read
from .description import CHANGING, KINDS, LONGEST, leaves_of, softmax_name
from .network import Mlp, Policy, mlp
from .observation import from_text, vector
from .trainable import MakeNetwork, check_draws, form_of

__all__ = ["SavedPolicy", "load_policy"]


@dataclasses.dataclass(frozen=True)
class SavedPolicy:
    """A policy that was read from a checkpoint."""

    policy: Policy
    softmax: Softmax
    """The softmax of the learner. The policy is the greedy one after `dqn`, and the softmax's own
    after every other learner."""
    environment: str
    """The name of the environment that it was trained in."""
    n_observations: int
    n_actions: int
    action_mask: bool = False
    """Were some actions illegal, and never taken?"""


def load_policy(
    checkpoint: str | Path,
    run: int = 0,
    softmax: Softmax | None = None,
    network: MakeNetwork | None = None,
) -> SavedPolicy:
    """Load the policy of a run from a checkpoint.

    Args:
        checkpoint: the directory that was given to `train`.
        run: the number of the run, counted from 0 over all runs of all settings.
        softmax: any softmax of the training's class, if that is a class of your own. Its parameters
            are taken from the checkpoint. If it changed while the runs learned, the one to play
            with, as it is.
        network: the learner's `network`, if that is one of your own. Its weights are taken from the
            checkpoint.

    Raises:
        ValueError: if there is no such run, or for a softmax of another class than the training's,
            or a network with other arrays.
    """
    directory = checks.file_path("checkpoint", checkpoint)
    run = checks.whole("run", run, 0)
    if network is not None:
        check_draws(network)
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
    like = _network_of(text, network)
    leaves, tree = jax.tree.flatten(like)  # the network comes first in a state
    loaded = jax.tree.unflatten(
        tree, [jnp.asarray(fields[f"state-{i}"][lane]) for i in range(len(leaves))]
    )
    parameters = [float(x) for x in fields["parameters"][..., lane]]
    if softmax is None and text["softmax"] in KINDS:
        softmax = KINDS[text["softmax"]](*parameters)
    elif softmax is None or softmax_name(softmax) != text["softmax"].removeprefix(CHANGING):
        rule = "`softmax` must be of the class of the training"
        rule += f", {visible(shortened(text['softmax'], LONGEST))}"
        raise ValueError(f"{rule}, got {softmax!r}")
    elif not text["softmax"].startswith(CHANGING):
        softmax = jax.tree.unflatten(jax.tree.structure(softmax), parameters)
    policy = Policy(loaded, Max() if text.get("algorithm") == "dqn" else softmax)
    sizes = (text["observations"], text["actions"], text.get("action_mask", False))
    return SavedPolicy(policy, softmax, text["environment"], *sizes)


def _network_of(text: Mapping[str, Any], network: MakeNetwork | None) -> Any:
    """The network that the settings of a checkpoint speak of, with shapes in place of arrays."""
    observation, n_actions = vector(text["observations"]), text["actions"]
    if "observation" in text:
        observation = from_text(text["observation"])
    if "leaves" not in text:
        names = [field.name for field in dataclasses.fields(Mlp)]
        sizes = {name: text[name] for name in names if name in text}
        return form_of(mlp(**sizes), observation, n_actions)
    name = visible(shortened(text["network"], LONGEST))
    if network is None:
        raise ValueError(f"`network` must be the one of the training, {name}, got None")
    form = form_of(network, observation, n_actions)
    if leaves_of(form) != text["leaves"]:
        rule = f"`network` must have the arrays of the training's, {name}"
        said = [", ".join(leaves) for leaves in (leaves_of(form), text["leaves"])]
        got, wanted = (visible(shortened(one, LONGEST)) for one in said)
        raise ValueError(f"{rule}: {wanted}; got {got}")
    return form
