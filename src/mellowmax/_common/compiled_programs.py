"""Compiled programs that are kept for the next process.

JAX compiles a program at its first call, which takes from a tenth of a second to several seconds.
It can keep compiled programs in a directory, but does so only where it is told of one.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .private_names import write_programs_whole

__all__ = ["keep_compiled_programs"]

SECONDS = 0.1
"""A program that takes fewer seconds to compile is not kept."""


def keep_compiled_programs() -> None:
    """Compile once and not in each process: let JAX keep programs in the user's cache directory.

    JAX's own settings win: nothing is changed if it keeps programs already, if it is told to keep
    none (`JAX_ENABLE_COMPILATION_CACHE=0`), or if nothing can be written.
    """
    import jax

    config = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return
    with contextlib.suppress(OSError, RuntimeError):  # no home, or it cannot be written
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        directory = Path(home) / "mellowmax" / "jax"
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK):
            return
        config.update("jax_compilation_cache_dir", str(directory))
        least = config.jax_persistent_cache_min_compile_time_secs  # type: ignore[attr-defined]
        config.update("jax_persistent_cache_min_compile_time_secs", min(least, SECONDS))
        with contextlib.suppress(ImportError, AttributeError):  # of a JAX that does it differently
            write_programs_whole()
