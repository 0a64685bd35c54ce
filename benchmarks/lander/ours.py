"""Our side: it needs JAX and no Gymnasium, and runs on a CPU or an accelerator."""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax.environments import lunar_lander
from mellowmax.environments.lunar_lander import environment
from mellowmax.environments.lunar_lander.arrays.vectors import Vector
from mellowmax.environments.lunar_lander.devices import batch
from mellowmax.environments.lunar_lander.game.reward import observation
from mellowmax.environments.lunar_lander.state import Dispersion, Inputs, Motion, Place, Speed

from .draws import LIMIT, choices_of, draws_of
from .files import CRASH, FLIGHT_STEPS, LAND, LEAVE, TIME, Plan, load, save
from .policies import POLICIES, Network, heuristic, load_network

CPU_PART = 2000
"""How many episodes of a policy a CPU plays at once; an accelerator plays all at once."""
WIND = {"wind_power": 15.0, "turbulence_power": 1.5}
"""The settings of Gymnasium's `enable_wind`."""


class Result(NamedTuple):
    """The results of episodes, `[n]` each."""

    returns: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray


class Draws(NamedTuple):
    """Random numbers for some steps of a row of landers."""

    actions: Any
    """`[steps, n]`."""
    coins: Any
    along: Any
    """The dispersion of the engines along the axis of the hull."""
    across: Any
    """The dispersion of the engines across that axis."""


class FromSeeds:
    """The numbers that Gymnasium's landers draw, so that episodes are the same on both sides."""

    def __init__(self, count: int, steps: int, wind: bool = False) -> None:
        self.steps, self.wind = steps, wind
        self.starts = np.full((16, count), 0.5, np.float32)
        self.dispersion = np.zeros((count, 1 + LIMIT, 2), np.float32)
        # The step that `reset` takes has no action.
        self.actions = np.zeros((count, 1 + LIMIT), np.int32)
        self.coins = np.zeros((count, 1 + LIMIT), bool)

    def begin(self, place: int, seed: int) -> None:
        """An episode begins."""
        self.starts[:, place], self.dispersion[place] = draws_of(seed, self.wind)
        self.actions[place, 1:], self.coins[place, 1:] = choices_of(seed)

    def draw(self, times: np.ndarray) -> tuple[Any, Draws]:
        """The numbers for new episodes, and those for the next steps of all landers."""
        steps = np.minimum(times + np.arange(self.steps)[:, None], LIMIT)
        every = np.arange(len(times))
        one, two = np.moveaxis(self.dispersion[every, steps], -1, 0)
        return self.starts, Draws(self.actions[every, steps], self.coins[every, steps], one, two)


class FromKeys:
    """Numbers as `reset` and `step` draw them, from a key of JAX."""

    def __init__(self, count: int, steps: int, seed: int) -> None:
        self.key, self.number = jax.random.key(seed), 0

        @jax.jit
        def draw(key: jax.Array) -> tuple[Any, Draws]:
            keys = jax.random.split(key, 4)
            rows = (steps, count)
            one, two = jax.random.uniform(keys[1], (2, *rows), jnp.float32, -1.0, 1.0)
            actions = jax.random.randint(keys[2], rows, 0, 4, jnp.int32)
            coins = jax.random.bernoulli(keys[3], 0.5, rows)
            starts = jax.random.uniform(keys[0], (16, count), jnp.float32)
            return starts, Draws(actions, coins, one, two)

        self.jitted = draw

    def begin(self, place: int, seed: int) -> None:
        """An episode begins."""

    def draw(self, times: np.ndarray) -> tuple[Any, Draws]:
        """The numbers for new episodes and for the next steps; different ones in each call."""
        self.number += 1
        result: tuple[Any, Draws] = self.jitted(jax.random.fold_in(self.key, self.number))
        return result


def _choose(network: Network, policy: Any, seen: Any, action: Any, coin: Any) -> Any:
    """The action of each lander's policy; observations are `[8, n]`."""
    # In full precision: an accelerator would else round the factors to fewer bits.
    product = functools.partial(jnp.matmul, precision="highest")
    hidden = jnp.tanh(product(network.hidden, seen) + network.hidden_bias[:, None])
    best = jnp.argmax(product(network.output, hidden) + network.output_bias[:, None], axis=0)
    ruled = heuristic(seen, jnp)
    either = jnp.where(coin, action, ruled)
    return jnp.select(
        [policy == i for i in range(1, len(POLICIES))], [action, ruled, either, best], 0
    ).astype(jnp.int32)


def _bodies(state: Any) -> Any:
    """The positions and velocities of hull, right and left leg, `[18, n]`."""
    return jnp.stack(jax.tree.leaves((state.hull, state.right.motion, state.left.motion)))


class Landers:
    """A row of landers, each of which starts another episode when one has ended.

    Args:
        count: how many landers there are.
        steps: how many steps they take between two checks of who has ended.
    """

    def __init__(self, count: int, steps: int) -> None:
        self.count, self.steps = count, steps
        params = lunar_lander.params()

        def observe(state: Any) -> Any:
            return jnp.stack(observation(state, params.height_scale))

        @jax.jit
        def fly(
            network: Network,
            world: Any,
            state: Any,
            begins: Any,
            starts: Any,
            policy: Any,
            draws: Draws,
        ) -> Any:
            # What is seen after each step, and the bodies after the first one.
            fresh = environment.start(list(starts))
            state = jax.tree.map(lambda new, old: jnp.where(begins, new, old), fresh, state)

            def one(carry: Any, draw: Draws) -> Any:
                state, number, first = carry
                seen = observe(state)
                action = _choose(network, policy, seen, draw.actions, draw.coins)
                inputs = Inputs(action, Dispersion(draw.along, draw.across), world)
                step = batch.step_batch(state, inputs)
                first = jnp.where(number == 0, _bodies(step.state), first)
                results = (observe(step.state), step.reward, step.terminated)
                return (step.state, number + 1, first), results

            carry = (state, jnp.int32(0), _bodies(state))
            (state, _, first), results = jax.lax.scan(one, carry, draws)
            return state, first, results

        network = jax.tree.map(jnp.asarray, load_network())
        self.fly = functools.partial(fly, network)
        self.calm, self.windy = self._world(), self._world(**WIND)

    def _world(self, **settings: float) -> Any:
        """The parameters of each lander."""
        world = environment.world(lunar_lander.params(**settings))
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.count,)), world)

    def play(
        self,
        policies: np.ndarray,
        seeds: np.ndarray,
        draws: FromSeeds | FromKeys,
        see: Callable[..., None] | None = None,
        say: Callable[[int, int], None] | None = None,
    ) -> Result:
        """Play episodes to their ends, at most `LIMIT` steps each.

        Args:
            policies: the number of each episode's policy.
            seeds: its seed.
            draws: where its random numbers come from.
            see: called with the numbers of episodes, the numbers of steps, and the observations.
            say: called with the number of episodes that have ended, and of the steps they took.
        """
        total, count = len(seeds), self.count
        returns, lengths = np.zeros(total), np.zeros(total, np.int64)
        ends = np.full(total, TIME)
        episode, times = np.full(count, -1), np.zeros(count, np.int64)
        world = self.windy if isinstance(draws, FromSeeds) and draws.wind else self.calm
        state = environment.start(list(np.full((16, count), 0.5, np.float32)))
        state = state._replace(over=np.ones(count, bool))
        begun = done = 0
        while done < total:
            begins = np.zeros(count, bool)
            for place in np.flatnonzero(episode < 0)[: total - begun]:
                draws.begin(place, int(seeds[begun]))
                episode[place], times[place], begins[place] = begun, 0, True
                begun += 1
            starts, drawn = draws.draw(times)
            state, _, results = self.fly(
                world, state, begins, starts, policies[episode].astype(np.int32), drawn
            )
            seen, reward, over = (np.asarray(each) for each in results)
            steps = times + np.arange(self.steps)[:, None]
            flies = np.vstack([np.zeros((1, count), bool), over[:-1]]) == 0
            flies &= (episode >= 0) & (steps <= LIMIT)
            if see:
                at = np.nonzero(flies)
                see(episode[at[1]], steps[at], np.moveaxis(seen, 1, 2)[at])
            flies &= steps >= 1
            used = episode >= 0
            numbers = episode[used]
            returns[numbers] += (reward * flies).sum(0, dtype=np.float64)[used]
            lengths[numbers] += flies.sum(0)[used]
            ended = (over & flies).any(0)
            last = np.argmax(over & flies, axis=0), np.arange(count)
            how = np.where(np.abs(seen[:, 0][last]) >= 1, LEAVE, CRASH)
            how = np.where(reward[last] == 100, LAND, how)
            ends[episode[ended]] = how[ended]
            times += self.steps
            free = used & (ended | (times > LIMIT))
            done += int(free.sum())
            episode[free] = -1
            # Who waits for another episode, or for the others, needs no work.
            state = state._replace(over=state.over | (episode < 0))
            if say:
                say(done, int(lengths.sum()))
        return Result(returns, lengths, ends)

    def touch(self, seeds: np.ndarray, before: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The bodies after one step from given ones, `[n, 3, 6]`, without warm starting.

        Args:
            seeds: of the episodes that the bodies are from.
            before: the bodies, `[n, 3, 6]`.
            actions: the numbers of the steps and the actions, `[n, 2]`.
        """
        parts = []
        for first in range(0, len(seeds), self.count):
            now = np.arange(first, first + self.count) % len(seeds)
            drawn = [draws_of(int(seed)) for seed in seeds[now]]
            one, two = np.transpose(
                [each.dispersion[step] for each, step in zip(drawn, actions[now, 0], strict=True)]
            )
            state = environment.start(list(np.transpose([each.start for each in drawn])))
            hull, right, left = (_motion(before[now, body]) for body in range(3))
            state = state._replace(
                hull=hull,
                right=state.right._replace(motion=right),
                left=state.left._replace(motion=left),
                fresh=np.zeros(self.count, bool),
            )
            rows = (self.steps, self.count)
            draws = Draws(
                *(np.broadcast_to(x, rows) for x in (actions[now, 1].astype(np.int32), False)),
                *(np.broadcast_to(x, rows) for x in (one, two)),
            )
            given = np.full(self.count, POLICIES.index("random"), np.int32)
            nobody = np.zeros(self.count, bool)
            starts = np.full((16, self.count), 0.5, np.float32)
            _, after, _ = self.fly(self.calm, state, nobody, starts, given, draws)
            parts.append(np.asarray(after).reshape(3, 6, -1).transpose(2, 0, 1))
        return np.concatenate(parts)[: len(seeds)]


def _motion(numbers: np.ndarray) -> Motion:
    """A body from its six numbers, `[n, 6]`."""
    x, y, angle, velocity_x, velocity_y, spin = np.ascontiguousarray(numbers.T)
    return Motion(Place(Vector(x, y), angle), Speed(Vector(velocity_x, velocity_y), spin))


def collect(folder: pathlib.Path, plan: Plan, parts: list[str]) -> None:
    """Our side of all parts; files that exist are not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    on_cpu = jax.default_backend() == "cpu"
    count, steps = (1024, 8) if on_cpu else (20480, 25)
    landers = Landers(count, steps)
    about = {"jax": jax.__version__, "device": jax.devices()[0].device_kind}
    began = last = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)

    def progress(done: int, taken: int) -> None:
        nonlocal last
        if time.monotonic() - last > 20:
            last = time.monotonic()
            say(f"{done} episodes, {taken} steps")

    def flights(path: pathlib.Path, wind: bool) -> None:
        seeds = np.array(plan.flight_seeds())
        seen = np.full((len(seeds), 1 + FLIGHT_STEPS, 8), np.nan, np.float32)

        def see(episodes: np.ndarray, numbers: np.ndarray, what: np.ndarray) -> None:
            early = numbers <= FLIGHT_STEPS
            seen[episodes[early], numbers[early]] = what[early]

        policy = np.full(len(seeds), POLICIES.index("random"))
        landers.play(policy, seeds, FromSeeds(count, steps, wind), see, progress)
        save(path, seeds=seeds, seen=seen, **about)
        say(path.stem)

    for name in ("flight", "wind") if "flight" in parts else ():
        if not (path := folder / f"ours {name}.npz").exists():
            flights(path, name == "wind")
    if "contact" in parts and not (path := folder / "ours contact.npz").exists():
        if (given := plan.of(folder, "contact")).exists():
            theirs = load(given)
            after = landers.touch(theirs["seeds"], theirs["before"], theirs["actions"])
            save(path, seeds=theirs["seeds"], after=after, **about)
            say("contact")
        else:
            say(f"contact is left out: it needs {given.name!r} of Gymnasium's side")
    if "policies" not in parts:
        return
    # Those with long episodes first, so that few landers wait for the last one.
    order = [POLICIES.index(name) for name in ("heuristic", "network", "half and half")]
    order += [i for i in range(len(POLICIES)) if i not in order]
    for seeds in plan.parts(CPU_PART if on_cpu else plan.episodes):
        for kind in ("paired", "alone"):
            paths = {i: plan.ours(folder, kind, POLICIES[i], seeds) for i in order}
            if all(path.exists() for path in paths.values()):
                continue
            policy = np.repeat(order, len(seeds))
            each = np.tile(np.array(seeds), len(order))
            paired = kind == "paired"
            # A key is not one of Gymnasium's seeds: the same number leads to other draws.
            source = FromSeeds(count, steps) if paired else FromKeys(count, steps, seeds.start)
            result = landers.play(policy, each, source, say=progress)
            for number, path in paths.items():
                mine = policy == number
                save(path, seeds=each[mine], **{k: v[mine] for k, v in result._asdict().items()})
            say(f"policies, {kind}, {seeds.start}-{seeds.stop - 1}")
