"""Evaluation of a tabular policy: episodes without learning.

In a functional environment all episodes of a block are played at once by one compiled program; in a
Gymnasium environment they are played one after another. Either way an action is chosen by comparing
a uniform number with the cumulative probabilities of the state's actions.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from .._common import checks
from .._common.evaluation import MAX_STEPS, Evaluation, check_policy
from .._common.runs import LAST_NUMBER, evaluation_keys, key_data
from .._typing import ArrayLike, Key
from ..environments import tabular
from ..mdp import MDP
from . import gymnasium

__all__ = ["Evaluation", "evaluate"]

WIDTH = 128
"""How many episodes of a functional environment are played at once."""


def evaluate(
    policy: ArrayLike,
    environment: tabular.Params | MDP | gymnasium.Environment,
    *,
    episodes: int = 100,
    seed: int | Key = 0,
    max_steps: int | None = None,
) -> Evaluation:
    """Play episodes with a tabular policy.

    Args:
        policy: `[S, A]`, the probability of each action in each state: the `policy` of a
            `Solution`, or that of a softmax at learned values, `softmax.policy(result.q[0])`.
        environment: as for `train`.
        episodes: how many.
        seed: a whole number, or a JAX key.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.

    Returns:
        The return and the length of each episode. Returns are not discounted.

    Raises:
        ValueError: for an argument that does not fit.
        RuntimeError: when a Gymnasium environment fails, or returns what it has not declared.

    Examples:
        What planning's policy earns in the taxi, and what is earned at random:

        >>> import numpy as np
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.environments import taxi
        >>> from mellowmax.learning import evaluate
        >>> from mellowmax.mdp import multi_passenger_taxi
        >>> from mellowmax.planning import solve
        >>> planned = solve(multi_passenger_taxi(), Boltzmann(20.0)).policy
        >>> evaluate(planned, taxi.params())
        Evaluation(mean=15, episodes=100)
        >>> evaluate(np.full((264, 4), 0.25), taxi.params())
        Evaluation(mean=5.7, episodes=100)
    """
    if isinstance(policy, MDP | tabular.Params | str) or callable(policy):
        rule = "`policy` must come first, as in evaluate(policy, environment)"
        raise TypeError(f"{rule}, got {policy!r} there")
    episodes = checks.whole("episodes", episodes, 1)
    if max_steps is not None:
        max_steps = checks.whole("max_steps", max_steps, 1, 2**31 - 1)
    if isinstance(environment, MDP):
        environment = tabular.params(environment)
    if isinstance(environment, tabular.Params):
        sizes = (environment.n_states, environment.n_actions)
        allowed = None if environment.allowed is None else np.asarray(environment.allowed)
        cumulative = tabular.cumulative(check_policy(policy, sizes, allowed))
        return _evaluate_functional(cumulative, environment, episodes, seed, max_steps)
    sizes, _ = gymnasium.describe(environment)
    cumulative = tabular.cumulative(check_policy(policy, sizes))
    return _evaluate_gymnasium(cumulative, environment, episodes, seed, max_steps)


def _evaluate_functional(
    cumulative: npt.NDArray[np.float32],
    params: tabular.Params,
    episodes: int,
    seed: int | Key,
    max_steps: int | None,
) -> Evaluation:
    limit = np.int32(MAX_STEPS if max_steps is None else max_steps)
    blocks = [
        _play(cumulative, params, evaluation_keys(seed, first, WIDTH), limit)
        for first in range(0, episodes, WIDTH)
    ]
    returns, lengths = (np.concatenate(of_each)[:episodes] for of_each in zip(*blocks, strict=True))
    return Evaluation(returns, lengths)


_Carry: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""An episode: its state, what was earned, its length, and whether it has ended."""


@functools.partial(jax.jit)
def _play(
    cumulative: jax.Array, params: tabular.Params, keys: jax.Array, limit: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The return and the length of an episode for each key."""

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, rest = jax.random.split(key)

        def under_way(carry: _Carry) -> jax.Array:
            _, _, length, terminated = carry
            return ~terminated & (length < limit)

        def step(carry: _Carry) -> _Carry:
            state, earned, length, _ = carry
            u_action, u_move = jax.random.uniform(
                jax.random.fold_in(rest, length), (2,), jnp.float32
            )
            action = (u_action >= cumulative[state]).sum(dtype=jnp.int32)
            state, reward, terminated = tabular.move(u_move, state, action, params)
            return state, earned + reward, length + 1, terminated

        beginning = (tabular.reset(first, params), jnp.float32(0), jnp.int32(0), jnp.bool_(False))
        _, earned, length, _ = lax.while_loop(under_way, step, beginning)
        return earned, length

    return jax.vmap(one)(keys)


def _evaluate_gymnasium(
    cumulative: npt.NDArray[np.float32],
    environment: gymnasium.Environment,
    episodes: int,
    seed: int | Key,
    max_steps: int | None,
) -> Evaluation:
    first, generator = gymnasium.random_sources(key_data(seed, ())[0], LAST_NUMBER)
    returns = np.zeros(episodes, np.float32)
    lengths = np.zeros(episodes, np.int32)
    with gymnasium.opened(environment) as env:
        own = None if env.spec is None else env.spec.max_episode_steps
        limit = own or MAX_STEPS if max_steps is None else max_steps
        for i in range(episodes):
            state, _ = env.reset(seed=first if i == 0 else None)
            over = False
            while not over and lengths[i] < limit:
                action = int((generator.random() >= cumulative[state]).sum())
                state, reward, terminated, truncated, _ = env.step(action)
                returns[i] += float(reward)
                lengths[i] += 1
                over = terminated or truncated
    return Evaluation(returns, lengths)
