"""Gymnasium's side: it needs `gymnasium[box2d]` and a CPU, and no JAX."""

from __future__ import annotations

import concurrent.futures
import pathlib
import time
from typing import Any

import numpy as np

from .draws import LIMIT, choices_of
from .files import CRASH, FLIGHT_STEPS, LAND, LEAVE, TIME, Plan, save
from .policies import POLICIES, Network, load_network, network_action


class Player:
    """One of Gymnasium's landers with the policies that play it."""

    def __init__(self, network: Network | None, **settings: Any) -> None:
        import gymnasium
        from gymnasium.envs.box2d.lunar_lander import heuristic

        name = "LunarLander-v3"
        self.env = gymnasium.make(name, disable_env_checker=True, **settings)
        self.heuristic, self.network = heuristic, network

    def choose(self, policy: str, seen: np.ndarray, action: int, coin: bool) -> int:
        """The action of a policy."""
        if policy == "no-op":
            return 0
        if policy == "network":
            return network_action(self.network, seen)
        if policy == "random" or (policy == "half and half" and coin):
            return int(action)
        return self.heuristic(self.env, seen)

    def play(self, policy: str, seed: int, see: Any = None) -> tuple[float, int, int]:
        """An episode: its return, its length, and how it ended."""
        choices = choices_of(seed)
        seen, _ = self.env.reset(seed=seed)
        earned, end = 0.0, TIME
        if see:
            see(0, seen)
        for step in range(LIMIT):
            action = self.choose(policy, seen, choices.actions[step], choices.coins[step])
            seen, reward, terminated, _, _ = self.env.step(action)
            earned += reward
            if see and see(step + 1, seen):
                break
            if terminated:
                end = LAND if reward == 100 else LEAVE if abs(seen[0]) >= 1 else CRASH
                break
        return earned, step + 1, end


def play_part(path: pathlib.Path, policy: str, seeds: range) -> None:
    """Play some episodes of a policy, and save them in a file."""
    player = Player(load_network() if policy == "network" else None)
    results = [player.play(policy, seed) for seed in seeds]
    returns, lengths, ends = (np.array(each) for each in zip(*results, strict=True))
    save(path, seeds=np.array(seeds), returns=returns, lengths=lengths, ends=ends)


def fly(path: pathlib.Path, seeds: range, part: str) -> None:
    """Flights with random actions until something touches the ground, with all observations.

    The part says whether there is wind, or whether the hull's velocity is changed in its last bit.
    """
    player = Player(None, enable_wind=part == "wind")
    seen = np.full((len(seeds), 1 + FLIGHT_STEPS, 8), np.nan, np.float32)
    for row, seed in zip(seen, seeds, strict=True):

        def see(step: int, now: np.ndarray, row: np.ndarray = row, seed: int = seed) -> bool:
            if step == 0 and part == "nudged":
                _nudge(player.env.unwrapped.lander, np.random.default_rng([seed, 3]))
            touches = now[6:].any() or player.env.unwrapped.game_over
            if not touches:
                row[step] = now
            return touches or step == FLIGHT_STEPS

        player.play("random", seed, see)
    save(path, seeds=np.array(seeds), seen=seen, **_about())


def _nudge(body: Any, rng: np.random.Generator) -> None:
    """Change the velocity of a body in its last bit, up or down."""
    speeds = np.float32([*body.linearVelocity, body.angularVelocity])
    ends = np.where(rng.random(3) < 0.5, np.float32(-np.inf), np.float32(np.inf))
    x, y, spin = np.nextafter(speeds, ends).tolist()
    body.linearVelocity, body.angularVelocity = (x, y), spin


def _bodies(env: Any) -> np.ndarray:
    """The positions and velocities of hull, right and left leg, `[3, 6]`."""
    return np.float32(
        [
            [*body.worldCenter, body.angle, *body.linearVelocity, body.angularVelocity]
            for body in (env.lander, *env.legs)
        ]
    )


def touch(path: pathlib.Path, seeds: range) -> None:
    """One step without warm starting from a moment of contact of each of some episodes.

    An episode is played to its end, and one of its steps is chosen in which a leg touches the
    ground before or after it. The episode is played again up to this step, which is then taken
    without warm starting.
    """
    player = Player(load_network())
    world = player.env.unwrapped
    kept: dict[str, list[Any]] = {name: [] for name in ("seeds", "before", "after", "actions")}
    for number, seed in enumerate(seeds):
        policy = POLICIES[number % len(POLICIES)]
        steps: list[int] = []
        flags = [False]

        def note(step: int, seen: np.ndarray, steps: list = steps, flags: list = flags) -> bool:
            flags.append(bool(seen[6:].any()))
            if (flags[-1] or flags[-2]) and not world.game_over:
                steps.append(step)
            return False

        player.play(policy, seed, note)
        # The bodies do not show that a lander has come to rest, so the last step is left out.
        if not world.lander.awake and steps:
            steps.pop()
        if not steps:
            continue
        chosen = int(np.random.default_rng([seed, 2]).choice(steps))
        last: list[np.ndarray] = []

        def stop(step: int, seen: np.ndarray, last: list = last, until: int = chosen) -> bool:
            last[:] = [seen]
            return step == until - 1

        player.play(policy, seed, stop)
        choices = choices_of(seed)
        action = player.choose(
            policy, last[0], choices.actions[chosen - 1], choices.coins[chosen - 1]
        )
        before = _bodies(world)
        world.world.warmStarting = False
        world.step(action)
        if world.game_over:
            continue
        kept["seeds"].append(seed)
        kept["before"].append(before)
        kept["after"].append(_bodies(world))
        kept["actions"].append([chosen, action])
    save(path, **{name: np.array(each) for name, each in kept.items()})


def _work(job: tuple[Any, ...]) -> str:
    function, path, *arguments = job
    function(path, *arguments)
    return path.name


def _about() -> dict[str, str]:
    """The versions with which the results were made."""
    import Box2D
    import gymnasium

    return {"gymnasium": gymnasium.__version__, "box2d": Box2D.__version__}


def collect(folder: pathlib.Path, plan: Plan, parts: list[str], workers: int) -> None:
    """Gymnasium's side of all parts; files that exist are not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[Any, ...]] = []
    if "flight" in parts:
        for name in ("flight", "wind", "nudged"):
            jobs.append((fly, plan.of(folder, name), plan.flight_seeds(), name))
    if "contact" in parts:
        jobs.append((touch, plan.of(folder, "contact"), plan.contact_seeds()))
    for seeds in plan.parts() if "policies" in parts else ():
        for policy in POLICIES:
            jobs.append((play_part, plan.theirs(folder, policy, seeds), policy, seeds))
    missing = [job for job in jobs if not job[1].exists()]
    began = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        for number, name in enumerate(pool.map(_work, missing), 1):
            took = time.monotonic() - began
            left = took / number * (len(missing) - number)
            text = f"{number} of {len(missing)}: {name}, {took:.0f} s, about {left:.0f} s left"
            print(text, flush=True)
