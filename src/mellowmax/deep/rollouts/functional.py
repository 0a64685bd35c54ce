"""Episodes of environments that are pure JAX functions, played in one program.

There are fewer places at which an episode can be played than episodes in the batches of all lanes.
A place whose episode has ended takes the next one of any lane that waits for a place, the lane with
the fewest batches behind it first. So no place waits for the longest episode of a batch, and a lane
whose batch is whole learns and begins the next one while others still play.

An episode depends on its key and its lane's policy alone: not on its place, nor on when it began.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..._rows.shown import shown
from ..episodes import Episodes, padded_length
from ..network import Policy
from .act import act
from .environment import (
    FUNCTIONS,
    FunctionalEnvironment,
    begin,
    draw,
    observe,
    size_of_observations,
)
from .rollouts import LAUNCHED_AT_ONCE, Played, batch_keys, name_of

__all__ = ["FunctionalRollouts"]


class FunctionalRollouts:
    """Rollouts of a functional environment: all episodes are played in one program.

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
        if not all(callable(getattr(environment, name, None)) for name in FUNCTIONS):
            rule = f"`environment` must have the functions {', '.join(FUNCTIONS)}"
            raise TypeError(f"{rule}, got {shown(environment)}")
        checks.instance("environment", environment, Hashable, "hashable")
        if not hasattr(params, "n_actions"):
            raise TypeError(f"`params` must have a number `n_actions`, got {shown(params)}")
        self.n_actions = checks.whole("params.n_actions", params.n_actions, 1)
        self.discount = discount_of(params)
        self.n_observations = size_of_observations(environment, params)

    @property
    def name(self) -> str:
        """The names of the environment and of its parameters, with a digest of their numbers."""
        own = getattr(self.environment, "name", None)
        return f"{own or name_of(self.environment)} {name_of(self.params)}"

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Played]:
        """As `Rollouts` has it, some lanes at a time: those whose batches are whole by then."""
        width = len(keys)
        form = _Form.of(width, batch, self.max_steps)
        params = jax.device_put(self.params)
        numbers = np.full(width, until, np.uint32)
        numbers[: len(done)] = done
        games = _empty(self.environment, form, params, keys, self.n_observations)
        taken = np.arange(width)
        while (numbers < until).any():
            games = _renew(form, games, np.isin(np.arange(width), taken), numbers < until)
            order = np.argsort(numbers, kind="stable").astype(np.int32)
            games, steps = _play(
                self.environment, form, params, policies(), keys, numbers, order, games
            )
            lengths = np.asarray(games.lengths)
            taken = order[lengths[order].min(1) > 0][: form.group]  # others wait for the next time
            # Those side by side learn for as long as the longest of their episodes is.
            taken = taken[np.argsort(lengths[taken].max(1), kind="stable")]
            lanes = np.full(form.group, width, np.int32)  # a lane that there is not
            lanes[: taken.size] = taken
            yield Played(lanes, _take(games, lanes), int(steps) * form.places)
            numbers[taken] += 1


class _Form(NamedTuple):
    """The sizes of a program."""

    width: int
    """How many lanes there are."""
    batch: int
    """How many episodes a batch has."""
    max_steps: int
    """Where an episode is cut off."""
    places: int
    """How many episodes are played at a time."""
    refill: int
    """Every so many steps, places whose episodes have ended take new ones."""
    most: int
    """How many places at a time."""
    group: int
    """How many lanes learn at a time, at most."""

    @classmethod
    def of(cls, width: int, batch: int, max_steps: int) -> _Form:
        """What suits the device."""
        kind = "cpu" if jax.default_backend() == "cpu" else "accelerator"
        share, refill = FORMS[kind]
        places = max(1, int(share * width * batch))
        return cls(width, batch, max_steps, places, refill, -(-places // 4), -(-width // 4))


FORMS = {"cpu": (0.5, 4), "accelerator": (0.55, 8)}
"""How many places there are for each episode of all batches, and `refill`. Runs are over at
different times, and the slowest decide when a training is: with more places than these, more of
them stay empty than are of use to it, and with fewer, the slowest wait for a place."""


class _Places(NamedTuple):
    """Where episodes are played, `[P]` each."""

    state: Any
    """Of the environment. The places are the last axis: kernels of an environment work on numbers
    of many places that lie side by side."""
    seen: jax.Array
    """`[P, D]`: what the policy sees of it."""
    key: jax.Array
    """Of the episode."""
    lane: jax.Array
    episode: jax.Array
    """Its number within the batch."""
    step: jax.Array
    """The number of the next step; -1 for that of a reset."""
    live: jax.Array
    """Is the episode under way?"""


class _Games(NamedTuple):
    """The batches that are under way, and the places."""

    begun: jax.Array
    """`[W]`: how many episodes of a lane's batch have begun."""
    lengths: jax.Array
    """`[W, B]`: of the episodes that have ended; 0 for others."""
    record: jax.Array
    """`[W, T, B, D + 2]`: what was seen before each step, the action, and the reward: one array, so
    that a place writes a step at once."""
    places: _Places


@functools.partial(jax.jit, static_argnums=(0, 1, 4))
def _empty(
    environment: FunctionalEnvironment,
    form: _Form,
    params: Any,
    keys: jax.Array,
    n_observations: int,
) -> _Games:
    """Nothing is under way, and nothing is to be played."""
    steps = padded_length(form.max_steps)
    record = jnp.zeros((form.width, steps, form.batch, n_observations + 2), jnp.float32)
    any_key = jnp.broadcast_to(keys[:1], (form.places,))
    state, seen, step = _begin_all(environment, any_key, params)
    nowhere = jnp.full(form.places, form.width, jnp.int32)
    live = jnp.zeros(form.places, jnp.bool_)
    places = _Places(state, seen, any_key, nowhere, jnp.zeros_like(nowhere), step, live)
    begun = jnp.full(form.width, form.batch, jnp.int32)
    lengths = jnp.zeros((form.width, form.batch), jnp.int32)
    return _Games(begun, lengths, record, places)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def _renew(form: _Form, games: _Games, ready: jax.Array, go_on: jax.Array) -> _Games:
    """Lanes whose batches were taken begin the next one, unless there is none."""
    begun = jnp.where(ready, jnp.where(go_on, 0, form.batch), games.begun)
    return games._replace(begun=begun, lengths=jnp.where(ready[:, None], 0, games.lengths))


@functools.partial(jax.jit)
def _take(games: _Games, lanes: jax.Array) -> Episodes:
    """The episodes of some lanes."""
    steps, lengths = (x.at[lanes].get(mode="clip") for x in (games.record, games.lengths))
    actions = steps[..., -2].astype(jnp.int32)
    return Episodes(steps[..., :-2], actions, steps[..., -1], lengths)


@functools.partial(
    jax.jit, static_argnums=(0, 1), donate_argnums=7, compiler_options=LAUNCHED_AT_ONCE
)
def _play(
    environment: FunctionalEnvironment,
    form: _Form,
    params: Any,
    policies: Policy,
    keys: jax.Array,
    numbers: jax.Array,
    order: jax.Array,
    games: _Games,
) -> tuple[_Games, jax.Array]:
    """Play until enough lanes can learn, or nothing is left to play.

    Args:
        environment: as for `FunctionalRollouts`.
        form: the sizes.
        params: of the environment.
        policies: with an axis of lanes first.
        keys: of the runs.
        numbers: of their batches.
        order: the lanes; the first of them find a place first.
        games: what is under way.

    Returns:
        What is under way then, and how many steps each place took.
    """
    of_batch = batch_keys(keys, numbers)
    of_episodes = jax.vmap(lambda key: jax.random.split(key, form.batch))(of_batch)

    def is_under_way(carry: tuple[_Games, jax.Array]) -> jax.Array:
        games, _ = carry
        ready = (games.lengths > 0).all(1).sum(dtype=jnp.int32)
        some_left = games.places.live.any() | (games.begun < form.batch).any()
        return (ready < form.group) & some_left

    def some_steps(carry: tuple[_Games, jax.Array]) -> tuple[_Games, jax.Array]:
        games, steps = carry
        games = _fill(environment, form, params, of_episodes, order, games)
        places = games.places
        playing = jax.tree.map(lambda x: x.at[places.lane].get(mode="clip"), policies)
        draws = jax.vmap(draw, (0, 0, None), out_axes=1)(places.key, places.step, form.refill)

        def one_step(i: jax.Array, games: _Games) -> _Games:
            uniforms, of_step = jax.tree.map(lambda x: x[i], draws)
            return _step_all(environment, form, params, playing, uniforms, of_step, games)

        return lax.fori_loop(0, form.refill, one_step, games), steps + form.refill

    result: tuple[_Games, jax.Array] = lax.while_loop(
        is_under_way, some_steps, (games, jnp.int32(0))
    )
    return result


def _fill(
    environment: FunctionalEnvironment,
    form: _Form,
    params: Any,
    of_episodes: jax.Array,
    order: jax.Array,
    games: _Games,
) -> _Games:
    """Begin episodes that wait at places that are free, some at a time."""
    begun, places = games.begun, games.places
    waiting = (form.batch - begun)[order]
    up_to = jnp.cumsum(waiting, dtype=jnp.int32)
    rank = jnp.arange(form.most, dtype=jnp.int32)  # of an episode among those that wait
    at = jnp.searchsorted(up_to, rank, side="right", method="scan_unrolled").astype(jnp.int32)
    lane = order.at[at].get(mode="clip")
    there = waiting.at[at].get(mode="clip") - (up_to.at[at].get(mode="clip") - rank)
    episode = begun.at[lane].get(mode="clip") + there
    free = jnp.nonzero(~places.live, size=form.most, fill_value=form.places)[0].astype(jnp.int32)
    begins = (rank < up_to[-1]) & (free < form.places)
    key = of_episodes.at[lane, episode].get(mode="clip")
    state, seen, step = _begin_all(environment, key, params)
    new = _Places(state, seen, key, lane, episode, step, begins)
    into = jnp.where(begins, free, form.places)
    last = jax.tree.map(lambda x, y: x.at[..., into].set(y, mode="drop"), places.state, state)
    places = jax.tree.map(
        lambda x, y: x.at[into].set(y, mode="drop"),
        places._replace(state=None),
        new._replace(state=None),
    )._replace(state=last)
    return games._replace(
        begun=begun.at[jnp.where(begins, lane, form.width)].add(1, mode="drop"), places=places
    )


def _begin_all(environment: FunctionalEnvironment, keys: jax.Array, params: Any) -> Any:
    """`begin` for many places."""
    return jax.vmap(lambda key: begin(environment, key, params), out_axes=(-1, 0, 0))(keys)


def _step_all(
    environment: FunctionalEnvironment,
    form: _Form,
    params: Any,
    policies: Policy,
    uniforms: jax.Array,
    of_step: jax.Array,
    games: _Games,
) -> _Games:
    """One step at every place; what is done at those without an episode counts for nothing."""
    begun, lengths, record, places = games

    def one(key: jax.Array, state: Any, seen: jax.Array, action: jax.Array) -> Any:
        state, reward, ended = environment.step(key, state, action, params)
        reward = jnp.asarray(reward, jnp.float32)
        played = jnp.concatenate([seen, jnp.stack([action.astype(jnp.float32), reward])])
        return played, state, observe(environment, state, params), ended

    actions = act(policies, uniforms, places.seen)
    played, state, after, ends = jax.vmap(one, (0, -1, 0, 0), (0, -1, 0, 0))(
        of_step, places.state, places.seen, actions
    )
    counts = places.live & (places.step >= 0)
    lane, step = jnp.where(counts, places.lane, form.width), places.step + 1
    record = record.at[lane, places.step, places.episode].set(played, mode="drop")
    ends = counts & (ends | (step >= form.max_steps))
    lane = jnp.where(ends, places.lane, form.width)
    lengths = lengths.at[lane, places.episode].set(step, mode="drop")
    places = places._replace(state=state, seen=after, step=step, live=places.live & ~ends)
    return _Games(begun, lengths, record, places)
