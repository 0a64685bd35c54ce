"""Episodes of environments that are pure JAX functions: a batch of all lanes is one program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..episodes import Episodes, padded_length
from ..network import Policy
from .rollouts import EVERY_LANE, WIDTH, Played, batch_keys, name_of

__all__ = ["FunctionalEnvironment", "FunctionalRollouts", "collect"]


class FunctionalEnvironment(Protocol):
    """An environment as pure functions of one instance: a module, or an object.

    States and parameters are pytrees of any kind. `mellowmax.environments.tabular` is one.
    """

    def reset(self, key: jax.Array, params: Any, /) -> Any:
        """The state where an episode begins."""

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any, /) -> Any:
        """The next state, the reward, and whether the episode has ended."""

    def observe(self, state: Any, params: Any, /) -> jax.Array:
        """What a policy sees of a state, `[D]`."""


class FunctionalRollouts:
    """Rollouts of a functional environment; all lanes play their batches together.

    Args:
        environment: a module or an object with the functions `reset(key, params)`,
            `step(key, state, action, params)` and `observe(state, params)`. They are compiled, so
            the object must be hashable and must not change.
        params: the parameters of the environment, a pytree with a number `n_actions`, and with a
            `discount` if the environment has one.
        max_steps: where an episode is cut off.

    Raises:
        ValueError: for an argument that does not fit.

    Examples:
        A walk along a line of five places, which ends to the right of it; every step costs 1:

        >>> from typing import NamedTuple
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import FunctionalRollouts, evaluate, reinforce, train
        >>> class Params(NamedTuple):
        ...     reward: float = -1.0
        ...     n_actions: int = 2
        >>> class Line:
        ...     @staticmethod
        ...     def reset(key, params):
        ...         return jax.random.randint(key, (), 0, 5, jnp.int32)
        ...
        ...     @staticmethod
        ...     def step(key, place, action, params):
        ...         place = jnp.maximum(place + 2 * action - 1, 0)
        ...         return place, params.reward, place == 5
        ...
        ...     @staticmethod
        ...     def observe(place, params):
        ...         return jax.nn.one_hot(place, 5)
        >>> rollouts = FunctionalRollouts(Line, Params(), max_steps=64)
        >>> learner = reinforce(Boltzmann(1.0), 0.1, batch=8, depth=0, baseline="others")
        >>> result = train(learner, rollouts, episodes=200)
        >>> policy = jax.tree.map(lambda x: x[0], result.policies)
        >>> evaluate(policy, rollouts).mean > -4  # of the best policy it is -3
        True
    """

    def __init__(
        self, environment: FunctionalEnvironment, params: Any, max_steps: int = MAX_STEPS
    ) -> None:
        self.environment, self.params = environment, params
        self.max_steps = checks.whole("max_steps", max_steps, 1)
        self.discount = discount_of(params)
        begin = functools.partial(_begin, environment)
        observation = jax.eval_shape(begin, jax.random.key(0), params)[1]
        self.n_observations = int(observation.shape[-1])
        self.n_actions = int(params.n_actions)

    @property
    def name(self) -> str:
        """The names of the environment and of its parameters, with a digest of their numbers."""
        return f"{name_of(self.environment)} {name_of(self.params)}"

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """As `Rollouts` has it. All lanes have done as many batches, and end one together."""
        params = jax.device_put(self.params)
        record = _empty_record(batch, self.max_steps, self.n_observations)
        for number in range(done[0], until):
            record = _play(
                self.environment, self.max_steps, params, policies(), keys, number, record
            )
            yield Played(EVERY_LANE, record)


def _empty_record(batch: int, max_steps: int, n_observations: int) -> Episodes:
    shape = (WIDTH, padded_length(max_steps), batch)
    return Episodes(
        jnp.zeros((*shape, n_observations), jnp.float32),
        jnp.zeros(shape, jnp.int32),
        jnp.zeros(shape, jnp.float32),
        jnp.zeros((WIDTH, batch), jnp.int32),
    )


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=6)
def _play(
    environment: FunctionalEnvironment,
    max_steps: int,
    params: Any,
    policies: Policy,
    keys: jax.Array,
    number: int,
    record: Episodes,
) -> Episodes:
    """The batch with a number, of all lanes, written over the record of the last one.

    To write to the same memory again is twice as fast as to ask for new memory each time.
    """
    of_batch = batch_keys(keys, jnp.full(WIDTH, number, jnp.uint32))
    return collect(environment, params, policies, of_batch, max_steps, record)


def collect(
    environment: FunctionalEnvironment,
    params: Any,
    policies: Policy,
    keys: jax.Array,
    max_steps: int,
    record: Episodes,
) -> Episodes:
    """Let each of many policies play a batch of episodes. A pure function, to be compiled.

    Args:
        environment: as for `FunctionalRollouts`.
        params: its parameters.
        policies: with an axis of `W` lanes first.
        keys: `[W]`, of each lane's batch.
        max_steps: where an episode is cut off.
        record: any episodes of the right shapes, `[W, T, B, ...]`, to be written over.

    Returns:
        The episodes, with an axis of `W` lanes first.
    """
    lanes, batch = record.lengths.shape
    of_episodes = jax.vmap(lambda key: jax.random.split(key, batch))(keys)
    begin = functools.partial(_begin, environment)
    states, seen = jax.vmap(jax.vmap(begin, (0, None)), (0, None))(of_episodes, params)
    step_one = functools.partial(_step, environment)
    step_all = jax.vmap(jax.vmap(step_one, (None, 0, 0, 0, None, None)), (0, 0, 0, 0, None, None))

    def one_step(carry: Any) -> Any:
        step, states, seen, live, record = carry
        actions, states, after, rewards, ended = step_all(
            policies, of_episodes, states, seen, step, params
        )
        record = Episodes(
            record.observations.at[:, step].set(seen),
            record.actions.at[:, step].set(actions),
            record.rewards.at[:, step].set(rewards),
            record.lengths + live.astype(jnp.int32),
        )
        return step + 1, states, after, live & ~ended, record

    def is_under_way(carry: Any) -> Any:
        step, _, _, live, _ = carry
        return (step < max_steps) & live.any()

    live = jnp.ones((lanes, batch), jnp.bool_)
    fresh = Episodes(
        record.observations, record.actions, record.rewards, jnp.zeros_like(record.lengths)
    )
    carry = (jnp.int32(0), states, seen, live, fresh)
    result: Episodes = lax.while_loop(is_under_way, one_step, carry)[-1]
    return result


def _begin(
    environment: FunctionalEnvironment, key: jax.Array, params: Any
) -> tuple[Any, jax.Array]:
    state = environment.reset(jax.random.fold_in(key, 0), params)
    return state, _observe(environment, state, params)


def _step(
    environment: FunctionalEnvironment,
    policy: Policy,
    key: jax.Array,
    state: Any,
    seen: jax.Array,
    step: jax.Array,
    params: Any,
) -> tuple[Any, ...]:
    """One step of one episode. Behind its end, whatever it gives counts for nothing."""
    of_action, of_step = jax.random.split(jax.random.fold_in(key, step + 1))
    action = policy.act(jax.random.uniform(of_action, dtype=jnp.float32), seen)
    state, reward, ended = environment.step(of_step, state, action, params)
    after = _observe(environment, state, params)
    return action, state, after, jnp.asarray(reward, jnp.float32), ended


def _observe(environment: FunctionalEnvironment, state: Any, params: Any) -> jax.Array:
    return environment.observe(state, params).astype(jnp.float32)
