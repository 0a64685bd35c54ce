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
    from ..environments.lunar_lander import State
    from ..environments.lunar_lander.game.bodies import Body

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
    height: str = "v3",
    max_steps: int = 1000,
    every: int = 2,
) -> Block:
    """Play an episode of `mellowmax/LunarLander-v0` and keep it for the page.

    Args:
        pilot: chooses the actions.
        title: what the page calls it.
        seed: of the episode.
        height: the scale of the observed height, `"v3"` or `"2016"`.
        max_steps: where the episode is cut off.
        every: how many steps lie between two pictures; a step is a fiftieth of a second.

    Returns:
        `ground` (heights from x = 0 to 20), `hull` and `leg` (their corners about the centre of
        mass), and `frames`: each x, y and angle of the hull, the right and the left leg, the legs
        on the ground in bits, and the action.

    Raises:
        ValueError: for an action that is none, or an argument that is out of range.
    """
    from ..environments.lunar_lander.game.bodies import HULL, LEG, SECONDS
    from ..environments.lunar_lander.gymnasium import LunarLander

    checks.function("pilot", pilot, "a function from an observation to an action")
    checks.text("title", title)
    seed = checks.whole("seed", seed, 0)
    every = checks.whole("every", every, 1)
    max_steps = checks.whole("max_steps", max_steps, 1)
    env = LunarLander(height=height)
    seen, _ = env.reset(seed=seed)
    frames, earned, ended = [_frame(env.lander, 0)], 0.0, False
    for number in range(1, max_steps + 1):
        action = pilot(np.asarray(seen, np.float64))
        seen, reward, ended, _, _ = env.step(action)
        earned += reward
        if ended or number % every == 0:
            frames.append(_frame(env.lander, action))
        if ended:
            break
    return {
        "kind": "landing",
        "title": title,
        "ground": rounded(np.array(env.lander.terrain, np.float64)),
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
