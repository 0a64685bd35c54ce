"""The five policies, as formulas that NumPy and JAX compute alike."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import numpy as np

POLICIES = ("no-op", "random", "heuristic", "half and half", "network")
"""`half and half` tosses a coin in each step between a random action and the heuristic's."""
NETWORK = pathlib.Path(__file__).with_name("network.npz")


class Network(NamedTuple):
    """A layer of tanh and one of logits; the action is the one with the largest logit."""

    hidden: Any
    hidden_bias: Any
    output: Any
    output_bias: Any


def load_network() -> Network:
    """The trained network."""
    with np.load(NETWORK) as file:
        return Network(*(file[name] for name in Network._fields))


def heuristic(seen: Any, xp: Any) -> Any:
    """Gymnasium's `heuristic` of observations `[8, n]`, in 32 bits as it is there."""
    x, y, velocity_x, velocity_y, angle, spin, right, left = seen
    wanted = x * 0.5 + velocity_x * 1.0
    wanted = xp.minimum(xp.maximum(wanted, -0.4), 0.4)
    turn = (wanted - angle) * 0.5 - spin * 1.0
    rise = (0.55 * xp.abs(x) - y) * 0.5 - velocity_y * 0.5
    landed = (right > 0) | (left > 0)
    turn = xp.where(landed, 0.0, turn)
    rise = xp.where(landed, -velocity_y * 0.5, rise)
    sideways = xp.where(turn < -0.05, 3, xp.where(turn > 0.05, 1, 0))
    return xp.where((rise > xp.abs(turn)) & (rise > 0.05), 2, sideways)


def network_action(network: Network, seen: np.ndarray) -> int:
    """The action of the network after one observation, `[8]`."""
    hidden = np.tanh(network.hidden @ seen + network.hidden_bias)
    return int(np.argmax(network.output @ hidden + network.output_bias))
