"""The ids of our environments in Gymnasium, with their classes as text.

Gymnasium has had no plugins since 1.0: a package is imported before its ids are known, or the id
names the module, as in `gymnasium.make("mellowmax.environments:mellowmax/TwoState-v0")`.
"""

from __future__ import annotations

import importlib
import re
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
there, and a limit would change its values."""


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
        ValueError: for an id that Gymnasium cannot make one from, or that does not say which
            version it means.
    """
    with needed_by(name, "gymnasium"):
        import gymnasium

    register()
    rule = "`environment` must be the id of a Gymnasium environment"
    try:
        latest = _latest(name)
        if latest is None:
            return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"{rule}, got {name!r}: {error}") from error
    except Exception as error:  # of its module, or of its class
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"{rule} that can be made, got {name!r}: {said}") from error
    raise ValueError(f"{rule} with its version, such as {latest!r}, got {name!r}")


def _latest(name: str) -> str | None:
    """The latest version of an id that names none; None for any other.

    Gymnasium would take it, and warn.
    """
    import gymnasium

    module, _, plain = name.rpartition(":")
    if re.search(r"-v\d+$", plain):
        return None
    if module:
        importlib.import_module(module)
    matches = [re.fullmatch(re.escape(plain) + r"-v(\d+)", key) for key in gymnasium.registry]
    versions = [int(match[1]) for match in matches if match]
    return f"{name}-v{max(versions)}" if versions else None
