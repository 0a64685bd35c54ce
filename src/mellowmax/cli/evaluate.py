"""Layer 7: what a trained policy earns, as a command measures it, and an episode to look at."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import deep
from .._common import checks
from .._common.files import replacing
from ..environments.fleet.worker import flat

__all__ = ["Measured", "measure"]

A_SECOND = 25
"""About how many pictures of a second are kept."""


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """What a policy has earned, and where it was read from."""

    saved: deep.Saved
    run: int
    environment: str
    evaluation: deep.Evaluation
    frames: int | None
    """How many pictures were written."""

    def rows(self) -> list[tuple[str, str]]:
        """What there is to say, as names and texts."""
        found, returns = self.evaluation, self.evaluation.returns
        # It was kept in float32; 0.1 is to be 0.1 again.
        softmax = jax.tree.map(lambda x: float(f"{x:.7g}"), self.saved.policy.softmax)
        error = f", standard error {found.standard_error:.2g}" if len(returns) > 1 else ""
        return [
            ("environment", self.environment),
            ("policy", f"run {self.run} of a training in {self.saved.environment}"),
            ("softmax", str(softmax)),
            ("episodes", str(len(returns))),
            ("mean return", f"{found.mean:.4g}{error}"),
            ("best", f"{returns.max():.4g}"),
            ("worst", f"{returns.min():.4g}"),
            ("mean length", f"{np.mean(found.lengths):.4g}"),
        ]


def measure(
    checkpoint: Path,
    environment: str,
    *,
    run: int = 0,
    episodes: int = 100,
    seed: int = 0,
    render: Path | None = None,
    max_steps: int | None = None,
    workers: int | None = None,
) -> Measured:
    """Let a policy from a checkpoint play, and keep one more episode as a moving picture.

    Args:
        checkpoint: the `out` of a training, or one of the files of runs in it.
        environment: the id of a Gymnasium environment.
        run: its number, counted from the first of the file where one is given.
        episodes: how many.
        seed: a whole number.
        render: the GIF to write, if any.
        max_steps: as for `deep.evaluate`.
        workers: as for `deep.evaluate`.

    Raises:
        ValueError: for an argument that does not fit, before anything is played.
        OSError: when a file cannot be read or written.
        RuntimeError: when an environment fails in its process.
    """
    checks.whole("episodes", episodes, 1)
    checks.whole("seed", seed, 0, 2**32 - 1)
    directory, lane = _found(checkpoint, checks.whole("run", run, 0))
    saved = deep.load_policy(directory, lane)
    source = deep.Vector(environment, max_steps=max_steps)
    fits, there = ((x.n_observations, x.n_actions) for x in (saved, source))
    if fits != there:
        rule = f"`ENV` must have {fits[0]} observations and {fits[1]} actions, as the training had"
        raise ValueError(f"{rule}, got {there[0]} and {there[1]} in {environment!r}")
    film = None
    if render is not None:
        pictures = deep.watch(saved.policy, environment, seed=seed, max_steps=max_steps)
        film = _Film(render, environment, pictures)
    evaluation = deep.evaluate(
        saved.policy,
        environment,
        episodes=episodes,
        seed=seed,
        max_steps=max_steps,
        workers=workers,
    )
    frames = None if film is None else film.write()
    return Measured(saved, lane, environment, evaluation, frames)


def _found(checkpoint: Path, run: int) -> tuple[Path, int]:
    """The directory of a checkpoint, and the number of a run there."""
    if not checkpoint.is_file():
        return checkpoint, run
    number = checkpoint.stem.removeprefix("runs-")
    if not number.isdecimal() or checkpoint.suffix != ".npz":
        rule = "`CHECKPOINT` must be the directory of a training, or a file runs-*.npz in it"
        raise ValueError(f"{rule}, got {str(checkpoint)!r}")
    return checkpoint.parent, int(number) + run


class _Film:
    """A GIF of an episode.

    Args:
        path: of the file.
        environment: the id of the environment that is shown.
        pictures: from `deep.watch`.

    Raises:
        ValueError: for a path that is not of a GIF, or an environment that cannot show itself.
    """

    def __init__(self, path: Path, environment: str, pictures: Iterator[tuple[Any, float]]) -> None:
        if path.suffix.lower() != ".gif" or not path.absolute().parent.is_dir():
            rule = "`--render` must be a file ending in .gif in a directory that exists"
            raise ValueError(f"{rule}, got {str(path)!r}")
        with contextlib.closing(flat(environment)) as env:
            a_second = float(env.metadata.get("render_fps") or 50)
        for name, value in (("SDL_VIDEODRIVER", "dummy"), ("PYGAME_HIDE_SUPPORT_PROMPT", "1")):
            os.environ.setdefault(name, value)  # a file needs no window, and no greeting
        every = max(1, round(a_second / A_SECOND))
        first, _ = next(pictures)  # what is wrong with it is said before any work
        rest = (picture for picture, _ in pictures)
        self.path, self.milliseconds = path, round(1000 * every / a_second)
        self.kept = itertools.islice(itertools.chain([first], rest), 0, None, every)

    def write(self) -> int:
        """Play the episode and write it, whole or not at all; returns how many pictures it has."""
        from PIL import Image

        count = itertools.count()

        def images() -> Iterator[Image.Image]:
            for picture, _ in zip(self.kept, count, strict=False):
                image = Image.fromarray(picture)
                yield image.quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)

        one_by_one = images()
        with replacing(self.path) as file:
            next(one_by_one).save(
                file,
                format="GIF",
                save_all=True,
                append_images=one_by_one,
                duration=self.milliseconds,
                loop=0,
            )
        return next(count)
