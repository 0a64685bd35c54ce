"""An episode of Lunar Lander for the page, drawn there from its states.

What is kept of a step: the place and the angle of the hull and of both legs, in hundredths of a
metre and of a radian, which legs are on the ground, and what fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._common import checks
from .._typing import Floats
from .numbers import rounded
from .page import Block

if TYPE_CHECKING:
    from ..environments.lunar_lander import Params, State
    from ..environments.lunar_lander.bodies import Body

__all__ = ["Pilot", "landing"]

Pilot: TypeAlias = Callable[[Floats], int]
"""From what is observed of a lander, `[8]`, to an action from 0 to 3."""
FINE = 100
"""How many steps a metre and a radian have."""


def landing(
    pilot: Pilot,
    *,
    title: str,
    seed: int = 0,
    params: Params | None = None,
    max_steps: int = 1000,
    every: int = 2,
) -> Block:
    """Play an episode of `mellowmax.environments.lunar_lander` and keep it for the page.

    Args:
        pilot: chooses the actions.
        title: what the page calls it.
        seed: of the episode's random numbers.
        params: the world; None for that of LunarLander-v3.
        max_steps: where the episode is cut off.
        every: one in so many steps is kept; a step is a fiftieth of a second.

    Returns:
        `ground` (heights from x = 0 to 20), `hull` and `leg` (their corners about the centre of
        mass), and `frames`: each x, y and angle of the hull, the right and the left leg, the legs
        on the ground in bits, and the action.

    Raises:
        ValueError: for an action that is none, or an argument that is out of range.
    """
    import jax

    from ..environments import lunar_lander
    from ..environments.lunar_lander.bodies import HULL, LEG, SECONDS

    every = checks.whole("every", every, 1)
    max_steps = checks.whole("max_steps", max_steps, 1)
    world = lunar_lander.params() if params is None else params
    keys = jax.random.split(jax.random.key(seed), max_steps + 1)
    step = jax.jit(lunar_lander.step)
    # A launched lander's first step is that of `reset`, whatever the action: one program does both.
    state = step(keys[0], lunar_lander.launch(keys[0]), 0, world).state
    frames, earned, ended = [_frame(lunar_lander.named(state), 0)], 0.0, False
    for number in range(1, max_steps + 1):
        seen = np.asarray(lunar_lander.observe(state, world), np.float64)
        action = checks.whole("pilot's action", pilot(seen), 0, 3)
        state, reward, terminated = step(keys[number], state, action, world)
        earned, ended = earned + float(reward), bool(terminated)
        if ended or number % every == 0:
            frames.append(_frame(lunar_lander.named(state), action))
        if ended:
            break
    return {
        "kind": "landing",
        "title": title,
        "ground": rounded(np.array([float(height) for height in lunar_lander.named(state).terrain])),
        "hull": _corners(HULL),
        "leg": _corners(LEG),
        "fine": FINE,
        "seconds": SECONDS * every,
        "return": round(earned, 1),
        "steps": number,
        "ended": ended,
        "frames": frames,
    }


def _frame(state: State, action: int) -> list[int]:
    bodies: Sequence[Any] = (state.hull, state.right.motion, state.left.motion)
    places = [(m.place.centre.x, m.place.centre.y, m.place.angle) for m in bodies]
    down = int(state.right.on_ground) + 2 * int(state.left.on_ground)
    return [*(round(FINE * float(x)) for place in places for x in place), down, action]


def _corners(body: Body) -> list[list[float]]:
    return [rounded(np.array([v.x, v.y - body.centre])) for v in body.vertices]
