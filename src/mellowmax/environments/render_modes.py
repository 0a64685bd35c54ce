"""The checks of `render_mode` that our Gymnasium environments share, and their errors.

The modules that use it have imported Gymnasium before, or raised an error if it is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._common.shown import shown

if TYPE_CHECKING:
    import gymnasium

__all__ = ["check_mode", "check_started", "needs_pillow", "warn_of_no_mode"]


def check_mode(mode: str | None, modes: list[str]) -> str | None:
    """A render mode, or an error if it is neither None nor one of `modes`."""
    if mode is None or (isinstance(mode, str) and mode in modes):
        return mode
    error = ValueError if isinstance(mode, str) else TypeError
    raise error(f"`render_mode` must be None or in {modes}, got {shown(mode)}")


def check_started(started: bool) -> None:
    """Raise unless an episode has begun."""
    if not started:
        import gymnasium

        rule = "`reset` must be called before `render`"
        raise gymnasium.error.ResetNeeded(f"{rule}, got no episode yet")


def warn_of_no_mode(
    env: gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any],
) -> None:
    """Warn that an environment without a render mode shows nothing."""
    import gymnasium

    name = type(env).__name__ if env.spec is None else env.spec.id
    modes = env.metadata["render_modes"]
    gymnasium.logger.warn(
        f"`render` shows nothing as `render_mode` is None, make {name!r} with one of {modes}"
    )


def needs_pillow() -> Exception:
    """The error for a picture without Pillow to draw it."""
    import gymnasium

    needs = "`rgb_array` needs Pillow: pip install 'mellowmax[gymnasium]'"
    return gymnasium.error.DependencyNotInstalled(needs)
