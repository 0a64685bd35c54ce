"""pgx's environments as functional environments, with their masks of legal actions.

A game of several players is played by one of them, the first; the others choose evenly among their
legal actions. Nothing is imported from pgx.
"""

from __future__ import annotations

from typing import Any

from .._common.adapter import Adapter, AdapterParams
from .._common.extras import needed_by
from .._common.shown import shown

with needed_by("mellowmax.environments.pgx", "jax"):
    import jax
    import jax.numpy as jnp

__all__ = ["PgxEnvironment", "functional"]

State = Any
"""A state of pgx's: a pytree with the observation, the rewards and the mask in it."""


class PgxEnvironment(Adapter):
    """The functions of a pgx environment, as a `FunctionalEnvironment` takes them.

    Args:
        env: the environment.
    """

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return f"pgx {self.env.id}"

    def reset(self, key: jax.Array, params: AdapterParams) -> State:
        """The state where an episode begins; others may have moved already."""
        first, second = jax.random.split(key)
        state, _ = self._others_move(second, self.env.init(first))
        return state

    def step(
        self, key: jax.Array, state: State, action: jax.Array, params: AdapterParams
    ) -> tuple[State, jax.Array, jax.Array]:
        """The state after the action and the others' moves, the reward, and whether it has ended.

        A game that pgx cuts off has ended too.
        """
        first, second = jax.random.split(key)
        after = self.env.step(state, action, first)
        last, more = self._others_move(second, after)
        return last, after.rewards[0] + more, last.terminated | last.truncated

    def observe(self, state: State, params: AdapterParams) -> jax.Array:
        """What the first player sees."""
        return state.observation

    def legal(self, state: State, params: AdapterParams) -> jax.Array:
        """Which actions are legal; all, where the game is over."""
        return state.legal_action_mask

    def _others_move(self, key: jax.Array, state: State) -> tuple[State, jax.Array]:
        """The state in which it is the first player's turn, and what it has earned meanwhile."""
        if self.env.num_players == 1:
            return state, jnp.float32(0)

        def is_another_s_turn(carry: tuple[State, jax.Array, jax.Array]) -> jax.Array:
            state = carry[0]
            return (state.current_player != 0) & ~(state.terminated | state.truncated)

        def move(
            carry: tuple[State, jax.Array, jax.Array],
        ) -> tuple[State, jax.Array, jax.Array]:
            state, key, earned = carry
            key, of_action, of_step = jax.random.split(key, 3)
            chances = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
            action = jax.random.categorical(of_action, chances)
            after = self.env.step(state, action.astype(jnp.int32), of_step)
            return after, key, earned + after.rewards[0]

        last, _, earned = jax.lax.while_loop(is_another_s_turn, move, (state, key, jnp.float32(0)))
        return last, earned


def functional(env: Any) -> tuple[PgxEnvironment, AdapterParams]:
    """Turn what `pgx.make` returns into a functional environment and its parameters.

    Args:
        env: a pgx environment.

    Raises:
        TypeError: for anything else.

    Examples:
        With pgx installed:

            own = FunctionalEnvironment(*functional(pgx.make("tic_tac_toe")), max_steps=9)
            result = train(learner, own, episodes=1000)
    """
    if not (hasattr(env, "num_players") and hasattr(env, "init")):
        raise TypeError(f"`env` must be an environment of pgx's, got {shown(env)}")
    return PgxEnvironment(env), AdapterParams(int(env.num_actions))
