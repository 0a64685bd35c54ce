"""Whole episodes in environments that are pure JAX functions, played in one program.

The program has slots, each with one episode, and fewer of them than the batches of all lanes have
episodes. When an episode ends, its slot takes the next one that waits, of the lane with the fewest
batches behind it first. So no slot waits for the longest episode of a batch, and a lane whose batch
is complete learns and begins the next one while others still play.

An episode depends on its key and its lane's policy alone: not on its slot, nor on when it began.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._typing import Bools, PyTree
from .. import keys as random_keys
from ..checkpoint import BlockState
from ..environment import EnvironmentFunctions, FunctionalEnvironment, observe
from ..episodes import Episodes, Round, padded_length
from ..network import Policy
from ..observation import n_bytes
from ..packing import Packed, Packing
from ..reinforce import Reinforce
from .act_kernel import act
from .episodes import go_on, learn_in_between
from .functional import begin, draw
from .player import LAUNCHED_AT_ONCE, WIDTH, room

__all__ = ["FunctionalEpisodes"]

ACCELERATOR_WIDTH = 1024
"""On an accelerator the number of lanes of a block is a multiple of this, if memory has room."""
SLOTS, COPIES = 0.55, 4
"""On an accelerator: the number of slots for each episode of all batches, and how many copies of a
lane's network a slot has. They are gathered, and put in order for the matrix products."""


class FunctionalEpisodes:
    """Whole episodes in a functional environment: those of a block are played in one program.

    Args:
        environment: the environment.
    """

    def __init__(self, environment: FunctionalEnvironment) -> None:
        self.environment = environment

    def width(self, learner: Reinforce, lanes: int, devices: Sequence[jax.Device]) -> int:
        """32 lanes on a CPU; as many as the memory of an accelerator has room for, in thousands.

        Where there is no room for a thousand, a smaller power of two.
        """
        if devices[0].platform == "cpu":
            return WIDTH
        environment, some_key = self.environment, jax.random.key(0)
        sizes = environment.observation, environment.n_actions
        network = jax.eval_shape(lambda key: learner.init(key, *sizes).network, some_key)
        of_step = _packing(environment.observation).bytes
        of_episode = of_step * padded_length(environment.max_steps)
        of_lane = (of_episode + SLOTS * COPIES * n_bytes(network)) * learner.batch
        most = int(room(devices[0]) / of_lane)
        if most < ACCELERATOR_WIDTH:
            return 1 << max(0, most.bit_length() - 1)
        wanted = -(-lanes // (len(devices) * ACCELERATOR_WIDTH))
        return ACCELERATOR_WIDTH * min(most // ACCELERATOR_WIDTH, wanted)

    def begin(self, keys: jax.Array, learner: Reinforce) -> None:
        """No episode is saved: a batch that was cut short is played again."""

    def play(self, learners: Reinforce, keys: jax.Array, block: BlockState) -> Generator[Round]:
        """Play and learn; a round is the complete batches of some lanes."""
        return learn_in_between(self, learners, keys, block)

    def episodes(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
        unfinished: Callable[[], Bools] | None = None,
    ) -> Generator[Round]:
        """Play batches of episodes; a round has the lanes whose batches are complete by then."""
        environment, functions = self.environment, self.environment.functions
        width = len(keys)
        form = _Form.of(width, batch, environment.max_steps)
        params = jax.device_put(environment.params)
        numbers = np.full(width, until, np.uint32)
        numbers[: len(done)] = done
        packing = _packing(environment.observation)
        games = _empty(functions, form, params, keys, packing)
        taken = np.arange(width)
        while (going := go_on(numbers, until, len(done), unfinished)).any():
            games = _renew(form, games, np.isin(np.arange(width), taken), going)
            order = np.argsort(numbers, kind="stable").astype(np.int32)
            games, steps = _play(functions, form, params, policies(), keys, numbers, order, games)
            lengths = np.asarray(games.lengths)
            taken = order[lengths[order].min(1) > 0][: form.group]  # the others wait
            # Lanes that learn side by side take as long as the longest of their episodes.
            taken = taken[np.argsort(lengths[taken].max(1), kind="stable")]
            lanes = np.full(form.group, width, np.int32)  # padding
            lanes[: taken.size] = taken
            yield Round(lanes, _take(packing, games, lanes), int(steps) * form.slots)
            numbers[taken] += 1


class _Form(NamedTuple):
    """The sizes of a program."""

    width: int
    """The number of lanes."""
    batch: int
    """The number of episodes of a batch."""
    max_steps: int
    """The step at which an episode is cut off."""
    slots: int
    """The number of episodes that are played at a time."""
    refill: int
    """The number of steps after which slots whose episodes have ended take new ones."""
    most: int
    """The most slots that take new episodes at a time."""
    group: int
    """The most lanes that learn at a time."""

    @classmethod
    def of(cls, width: int, batch: int, max_steps: int) -> _Form:
        """The sizes that suit the device."""
        kind = "cpu" if jax.default_backend() == "cpu" else "accelerator"
        if kind == "accelerator" and width * batch >= MANY_EPISODES:
            kind = "full accelerator"
        share, refill, groups = FORMS[kind]
        slots = max(1, int(share * width * batch))
        return cls(width, batch, max_steps, slots, refill, -(-slots // 4), -(-width // groups))


FORMS = {
    "cpu": (0.5, 4, 4),
    "accelerator": (SLOTS, 8, 4),
    "full accelerator": (0.4, 8, 8),
}
"""The number of slots for each episode of all batches, `refill`, and how many groups of lanes learn
one after another. A training ends with its slowest run: with more slots than these, most of the
additional ones stay empty, and with fewer, the slowest run waits for a slot. Few slots take an
accelerator as long as some thousands. Where there are many, each one counts: an empty slot costs as
much as another, and smaller groups leave fewer slots empty while their lanes wait to learn."""
MANY_EPISODES = 65536
"""With this many episodes in all batches, an accelerator has no room for empty slots."""


class _Slots(NamedTuple):
    """The episodes that are played at present, `[P]` each."""

    state: object
    """The states of the environment. The slots are the last axis: kernels of an environment work on
    the numbers of many slots, which lie side by side."""
    observation: PyTree
    """`[P, ...]`: the observations of the states."""
    key: jax.Array
    """The keys of the episodes."""
    lane: jax.Array
    """The lanes that the episodes belong to."""
    episode: jax.Array
    """The numbers of the episodes within their batches."""
    step: jax.Array
    """The number of the next step; -1 for the step that ends a reset."""
    busy: jax.Array
    """Is an episode under way in the slot?"""


class _Games(NamedTuple):
    """The batches that are under way, and the slots."""

    begun: jax.Array
    """`[W]`: how many episodes of a lane's batch have begun."""
    lengths: jax.Array
    """`[W, B]`: the lengths of the episodes that have ended; 0 for others."""
    record: Packed
    """`[W, T, B, n]` for each dtype: the observation before each step, the action as float32, and
    the reward, side by side, so that a slot writes a step at once."""
    slots: _Slots


def _packing(seen: PyTree) -> Packing:
    """How a step is recorded."""
    number = jax.ShapeDtypeStruct((), jnp.float32)
    return Packing.of((seen, number, number))


@functools.partial(jax.jit, static_argnums=(0, 1, 4))
def _empty(
    functions: EnvironmentFunctions,
    form: _Form,
    params: object,
    keys: jax.Array,
    packing: Packing,
) -> _Games:
    """The state in which nothing is under way, and nothing is to be played."""
    record = packing.empty(form.width, padded_length(form.max_steps), form.batch)
    any_key = jnp.broadcast_to(keys[:1], (form.slots,))
    state, observation, step = _begin(functions, any_key, params)
    no_lane = jnp.full(form.slots, form.width, jnp.int32)
    busy = jnp.zeros(form.slots, jnp.bool_)
    slots = _Slots(state, observation, any_key, no_lane, jnp.zeros_like(no_lane), step, busy)
    begun = jnp.full(form.width, form.batch, jnp.int32)
    lengths = jnp.zeros((form.width, form.batch), jnp.int32)
    return _Games(begun, lengths, record, slots)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def _renew(form: _Form, games: _Games, ready: jax.Array, go_on: jax.Array) -> _Games:
    """Lanes whose batches were taken begin the next one, unless there is none."""
    begun = jnp.where(ready, jnp.where(go_on, 0, form.batch), games.begun)
    return games._replace(begun=begun, lengths=jnp.where(ready[:, None], 0, games.lengths))


@functools.partial(jax.jit, static_argnums=0)
def _take(packing: Packing, games: _Games, lanes: jax.Array) -> Episodes:
    """The batches of some lanes."""
    of_lanes = (games.record, games.lengths)
    steps, lengths = jax.tree.map(lambda x: x.at[lanes].get(mode="clip"), of_lanes)
    seen, actions, rewards = packing.unpack(steps)
    return Episodes(seen, actions.astype(jnp.int32), rewards, lengths)


@functools.partial(
    jax.jit, static_argnums=(0, 1), donate_argnums=7, compiler_options=LAUNCHED_AT_ONCE
)
def _play(
    functions: EnvironmentFunctions,
    form: _Form,
    params: object,
    policies: Policy,
    keys: jax.Array,
    numbers: jax.Array,
    order: jax.Array,
    games: _Games,
) -> tuple[_Games, jax.Array]:
    """Play until enough lanes can learn, or nothing is left to play.

    Args:
        functions: those of the environment.
        form: the sizes of the program.
        params: the parameters of the environment.
        policies: those of all lanes.
        keys: the keys of the runs.
        numbers: the numbers of their batches.
        order: the lanes, in the order in which their episodes are given slots.
        games: what is under way.

    Returns:
        What is under way then, and how many steps were computed in each slot.
    """
    of_batch = random_keys.batches(keys, numbers)
    of_episodes = jax.vmap(lambda key: random_keys.episodes(key, form.batch))(of_batch)

    def is_under_way(carry: tuple[_Games, jax.Array]) -> jax.Array:
        games, _ = carry
        ready = (games.lengths > 0).all(1).sum(dtype=jnp.int32)
        some_left = games.slots.busy.any() | (games.begun < form.batch).any()
        return (ready < form.group) & some_left

    def some_steps(carry: tuple[_Games, jax.Array]) -> tuple[_Games, jax.Array]:
        games, steps = carry
        games = _fill(functions, form, params, of_episodes, order, games)
        slots = games.slots
        playing = jax.tree.map(lambda x: x.at[slots.lane].get(mode="clip"), policies)
        draws = jax.vmap(draw, (0, 0, None), out_axes=1)(slots.key, slots.step, form.refill)

        def one_step(i: jax.Array, games: _Games) -> _Games:
            uniforms, of_step = jax.tree.map(lambda x: x[i], draws)
            return _step(functions, form, params, playing, uniforms, of_step, games)

        return lax.fori_loop(0, form.refill, one_step, games), steps + form.refill

    return lax.while_loop(is_under_way, some_steps, (games, jnp.int32(0)))


def _fill(
    functions: EnvironmentFunctions,
    form: _Form,
    params: object,
    of_episodes: jax.Array,
    order: jax.Array,
    games: _Games,
) -> _Games:
    """Begin waiting episodes in free slots, some at a time."""
    begun, slots = games.begun, games.slots
    waiting = (form.batch - begun)[order]
    up_to = jnp.cumsum(waiting, dtype=jnp.int32)
    rank = jnp.arange(form.most, dtype=jnp.int32)  # of an episode among those waiting
    at = jnp.searchsorted(up_to, rank, side="right", method="scan_unrolled").astype(jnp.int32)
    lane = order.at[at].get(mode="clip")
    within_lane = waiting.at[at].get(mode="clip") - (up_to.at[at].get(mode="clip") - rank)
    episode = begun.at[lane].get(mode="clip") + within_lane
    free = jnp.nonzero(~slots.busy, size=form.most, fill_value=form.slots)[0].astype(jnp.int32)
    begins = (rank < up_to[-1]) & (free < form.slots)
    key = of_episodes.at[lane, episode].get(mode="clip")
    state, observation, step = _begin(functions, key, params)
    new = _Slots(state, observation, key, lane, episode, step, begins)
    into = jnp.where(begins, free, form.slots)
    last = jax.tree.map(lambda x, y: x.at[..., into].set(y, mode="drop"), slots.state, state)
    slots = jax.tree.map(
        lambda x, y: x.at[into].set(y, mode="drop"),
        slots._replace(state=None),
        new._replace(state=None),
    )._replace(state=last)
    return games._replace(
        begun=begun.at[jnp.where(begins, lane, form.width)].add(1, mode="drop"), slots=slots
    )


def _begin(
    functions: EnvironmentFunctions, keys: jax.Array, params: object
) -> tuple[object, PyTree, jax.Array]:
    """Begin an episode in each of many slots."""
    return jax.vmap(lambda key: begin(functions, key, params), out_axes=(-1, 0, 0))(keys)


def _step(
    functions: EnvironmentFunctions,
    form: _Form,
    params: object,
    policies: Policy,
    uniforms: jax.Array,
    of_step: jax.Array,
    games: _Games,
) -> _Games:
    """One step in every slot; steps in free slots are computed too, and not recorded."""
    begun, lengths, record, slots = games
    packing = _packing(jax.tree.map(lambda x: x[0], slots.observation))

    def one(
        key: jax.Array, state: object, observation: PyTree, action: jax.Array
    ) -> tuple[Packed, object, PyTree, jax.Array]:
        state, reward, ended = functions.step(key, state, action, params)
        reward = jnp.asarray(reward, jnp.float32)
        played = packing.pack((observation, action.astype(jnp.float32), reward))
        return played, state, observe(functions, state, params), ended

    actions = act(policies, uniforms, slots.observation)
    played, state, observation, ends = jax.vmap(one, (0, -1, 0, 0), (0, -1, 0, 0))(
        of_step, slots.state, slots.observation, actions
    )
    counts = slots.busy & (slots.step >= 0)
    lane, step = jnp.where(counts, slots.lane, form.width), slots.step + 1
    at = lane, slots.step, slots.episode
    record = jax.tree.map(lambda x, new: x.at[at].set(new, mode="drop"), record, played)
    ends = counts & (ends | (step >= form.max_steps))
    lane = jnp.where(ends, slots.lane, form.width)
    lengths = lengths.at[lane, slots.episode].set(step, mode="drop")
    busy = slots.busy & ~ends
    slots = slots._replace(state=state, observation=observation, step=step, busy=busy)
    return _Games(begun, lengths, record, slots)
