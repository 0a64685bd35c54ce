"""The learners and the environments that are compared, and what a score of 0 and of 1 is there."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy.typing as npt

from ...._common.extras import needed_by
from ....deep import FunctionalEnvironment, dqn, mlp, ppo, reinforce, sac
from ....environments import acrobot, cartpole, lunar_lander, mountain_car
from ....environments.gymnax import GymnaxEnvironment, GymnaxParams, GymnaxState, functional
from ....softmax import Boltzmann, Mellowmax

__all__ = ["CLASSIC", "MINATAR", "REFERENCES", "environment_of", "learner_of"]

CLASSIC = {
    "cartpole": cartpole,
    "acrobot": acrobot,
    "mountain_car": mountain_car,
    "lunar_lander": lunar_lander,
}
MINATAR = {
    "asterix": "Asterix-MinAtar",
    "breakout": "Breakout-MinAtar",
    "freeway": "Freeway-MinAtar",
    "space_invaders": "SpaceInvaders-MinAtar",
}
"""The names of gymnax."""
LIMITS = {"asterix": 1000, "breakout": 1000, "freeway": 2500, "space_invaders": 1000}
"""The steps at which an episode is cut off, which are gymnax's own."""
REFERENCES = {
    "cartpole": (22.0, 500.0),
    "acrobot": (-500.0, -80.0),
    "mountain_car": (-200.0, -110.0),
    "lunar_lander": (-190.0, 200.0),
    "asterix": (0.4, 15.0),
    "breakout": (0.4, 28.0),
    "freeway": (0.4, 58.0),
    "space_invaders": (4.2, 131.0),
}
"""The returns that are a score of 0 and of 1: those of a random policy, and of a good one."""
DISCOUNT = 0.99


@dataclasses.dataclass(frozen=True)
class _BinaryImages:
    """A game of MinAtar, whose images of zeros and ones are booleans: a quarter of the memory."""

    game: GymnaxEnvironment

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return self.game.name

    def reset(self, key: jax.Array, params: GymnaxParams) -> GymnaxState:
        """The state where an episode begins."""
        return self.game.reset(key, params)

    def step(
        self, key: jax.Array, state: GymnaxState, action: jax.Array, params: GymnaxParams
    ) -> tuple[GymnaxState, jax.Array, jax.Array]:
        """The next state, the reward, and whether the episode has ended."""
        return self.game.step(key, state, action, params)

    def observe(self, state: GymnaxState, params: GymnaxParams) -> jax.Array:
        """The image of a state."""
        return self.game.observe(state, params).astype(jnp.bool_)


@functools.cache
def environment_of(name: str) -> Any:
    """An environment of the item."""
    if name in CLASSIC:
        return CLASSIC[name].params()
    with needed_by(f"{name} of MinAtar", "howto"):
        import gymnax
    game, params = functional(*gymnax.make(MINATAR[name]))
    return FunctionalEnvironment(_BinaryImages(game), params, LIMITS[name])


def learner_of(
    algorithm: str,
    softmax: str,
    parameters: npt.NDArray[Any],
    rates: npt.NDArray[Any],
    environment: str,
) -> Any:
    """A learner with a setting for each parameter and rate, which are arrays of equal length."""
    made = {"boltzmann": Boltzmann, "mellowmax": Mellowmax}[softmax](parameters)
    small = environment in CLASSIC
    width = 64 if small else 128
    network = mlp(width, 2)
    size = 64 if small else 32
    replay: dict[str, Any] = {"capacity": 20_000, "minibatch": size, "train_frequency": 4}
    if algorithm == "ppo":
        layers = mlp(width, 2, "tanh", "orthogonal")
        places = 4 if small else 8
        return ppo(made, rates, discount=DISCOUNT, environments=places, network=layers)
    if algorithm == "sac":
        return sac(made, rates, discount=DISCOUNT, network=network, **replay)
    if algorithm == "dqn":
        fall = 10_000 if small else 100_000
        replay |= {"target": 250, "exploration_steps": fall}
        return dqn(made, rates, discount=DISCOUNT, network=network, **replay)
    return reinforce(
        made,
        rates,
        discount=DISCOUNT,
        network=network,
        batch=8,
        baseline="leave-one-out",
        normalise=True,
        average="steps",
    )
