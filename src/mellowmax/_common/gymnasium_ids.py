"""The ids of our environments in Gymnasium, with classes as text so that none is imported here.

Gymnasium has had no plugins since 1.0: a package is imported before its ids are known, or the id
names the module, as in `gymnasium.make("mellowmax.environments:mellowmax/TwoState-v0")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .extras import needed_by

if TYPE_CHECKING:
    import gymnasium

__all__ = ["ENVIRONMENTS", "make", "register"]

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "mellowmax/TwoState-v0": {"entry_point": "mellowmax.environments.gymnasium:TwoState"},
    "mellowmax/MultiPassengerTaxi-v0": {
        "entry_point": "mellowmax.environments.gymnasium:MultiPassengerTaxi"
    },
    "mellowmax/LunarLander-v0": {
        "entry_point": "mellowmax.environments.lunar_lander.gymnasium:LunarLander",
        "vector_entry_point": "mellowmax.environments.lunar_lander.gymnasium:LunarLanderVector",
        "max_episode_steps": 1000,
    },
}
"""What Gymnasium is told of each id. Two have no limit of steps: the paper's episodes have none
there, and its values would be others."""


def register() -> None:
    """Tell Gymnasium the ids; a second call changes nothing, nor does one without Gymnasium."""
    try:
        import gymnasium
    except ImportError:
        return
    for name, what in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, **what)


def make(name: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """The Gymnasium environment of an id, ours included, with Gymnasium's own options.

    Raises:
        ValueError: for an id that Gymnasium cannot make one from.
    """
    with needed_by(name, "gymnasium"):
        import gymnasium

    register()
    try:
        env = gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError) as error:
        rule = "`environment` must be the id of a Gymnasium environment"
        raise ValueError(f"{rule}, got {name!r}: {error}") from error
    return env
