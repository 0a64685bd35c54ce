"""Episodes of environments that are pure JAX functions: the whole training run is compiled."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._common import checks
from ..episodes import Episodes, padded_length
from ..network import Policy
from ..reinforce import Reinforce, State
from .rollouts import WIDTH, Advance, batch_keys

__all__ = ["Functional", "collect"]

AT_ONCE = 32
"""How many batches are played between two looks at the progress."""


class Functional:
    """A source of episodes of a functional environment.

    Args:
        environment: a module or an object with `reset(key, params)`,
            `step(key, state, action, params)` and `observe(state, params)`, such as
            `mellowmax.environments.tabular`.
        params: its parameters, which have `n_actions`.
        max_steps: where an episode is cut off.
    """

    def __init__(self, environment: Any, params: Any, max_steps: int = 1000) -> None:
        self.environment, self.params = environment, params
        self.max_steps = checks.whole("max_steps", max_steps, 1)
        begin = functools.partial(_begin, environment)
        observation = jax.eval_shape(begin, jax.random.key(0), params)[1]
        self.n_observations = int(observation.shape[-1])
        self.n_actions = int(params.n_actions)

    def advance(
        self, learners: Reinforce, states: State, keys: Any, done: list[int], until: int
    ) -> Iterator[Advance]:
        """As `Source` has it: all runs play their batches together, a stretch of them a call."""
        runs, first = len(done), done[0]
        while first < until:
            count = min(AT_ONCE, until - first)
            states, returns, lengths = _advance(
                self.environment, self.max_steps, self.params, learners, states, keys, first, count
            )
            first += count
            of_runs = (_in_order(np.asarray(x)[:count, :runs]) for x in (returns, lengths))
            yield Advance(range(runs), states, *of_runs)

    def close(self) -> None:
        """Nothing is held."""


def _in_order(recorded: Any) -> Any:
    """`[batches, lanes, B]` as `[lanes, batches * B]`."""
    return recorded.swapaxes(0, 1).reshape(recorded.shape[1], -1)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
    environment: Any,
    max_steps: int,
    params: Any,
    learners: Reinforce,
    states: State,
    keys: Any,
    first: Any,
    count: Any,
) -> tuple[State, Any, Any]:
    """Play `count` batches of every lane, from the number `first` on, and learn from each."""

    def one_batch(i: Any, carry: tuple[State, Any, Any]) -> tuple[State, Any, Any]:
        states, returns, lengths = carry
        of_batch = batch_keys(keys, jnp.full(WIDTH, first + i, jnp.uint32))
        policies = learners.policy(states)
        episodes = collect(environment, params, policies, of_batch, learners.batch, max_steps)
        states = jax.vmap(Reinforce.update)(learners, states, episodes)
        earned = jax.vmap(Episodes.returns)(episodes)
        return states, returns.at[i].set(earned), lengths.at[i].set(episodes.lengths)

    shape = (AT_ONCE, WIDTH, learners.batch)
    nothing = (jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.int32))
    result: tuple[State, Any, Any] = lax.fori_loop(0, count, one_batch, (states, *nothing))
    return result


def collect(
    environment: Any, params: Any, policies: Policy, keys: Any, batch: int, max_steps: int
) -> Episodes:
    """Let each of many policies play a batch of episodes.

    Args:
        environment: as for `Functional`.
        params: its parameters.
        policies: with an axis of `W` lanes first.
        keys: `[W]`, of each lane's batch.
        batch: how many episodes a lane plays, `B`.
        max_steps: where an episode is cut off.

    Returns:
        The episodes, with an axis of `W` lanes first.
    """
    lanes = len(keys)
    of_episodes = jax.vmap(lambda key: jax.random.split(key, batch))(keys)
    begin = functools.partial(_begin, environment)
    states, seen = jax.vmap(jax.vmap(begin, (0, None)), (0, None))(of_episodes, params)
    play = functools.partial(_play, environment)
    play = jax.vmap(jax.vmap(play, (None, 0, 0, 0, None, None)), (0, 0, 0, 0, None, None))

    def one_step(carry: Any) -> Any:
        step, states, seen, live, record = carry
        actions, states, after, rewards, ended = play(
            policies, of_episodes, states, seen, step, params
        )
        record = Episodes(
            record.observations.at[:, step].set(seen),
            record.actions.at[:, step].set(actions),
            record.rewards.at[:, step].set(rewards),
            record.lengths + live.astype(jnp.int32),
        )
        return step + 1, states, after, live & ~ended, record

    def goes_on(carry: Any) -> Any:
        step, _, _, live, _ = carry
        return (step < max_steps) & live.any()

    shape = (lanes, padded_length(max_steps), batch)
    nothing = Episodes(
        jnp.zeros((*shape, seen.shape[-1]), jnp.float32),
        jnp.zeros(shape, jnp.int32),
        jnp.zeros(shape, jnp.float32),
        jnp.zeros((lanes, batch), jnp.int32),
    )
    live = jnp.ones((lanes, batch), jnp.bool_)
    carry = (jnp.int32(0), states, seen, live, nothing)
    result: Episodes = lax.while_loop(goes_on, one_step, carry)[-1]
    return result


def _begin(environment: Any, key: Any, params: Any) -> tuple[Any, Any]:
    state = environment.reset(jax.random.fold_in(key, 0), params)
    return state, _observe(environment, state, params)


def _play(
    environment: Any, policy: Policy, key: Any, state: Any, seen: Any, step: Any, params: Any
) -> Any:
    """One step of one episode; behind its end, whatever it is."""
    of_action, of_step = jax.random.split(jax.random.fold_in(key, step + 1))
    action = policy.act(jax.random.uniform(of_action, dtype=jnp.float32), seen)
    state, reward, ended = environment.step(of_step, state, action, params)
    return action, state, _observe(environment, state, params), reward, ended


def _observe(environment: Any, state: Any, params: Any) -> Any:
    return environment.observe(state, params).astype(jnp.float32)
