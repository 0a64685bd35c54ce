"""An episode as a moving picture, in a GIF."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._common.files import check_output, replacing

__all__ = ["Film", "check_film"]

COMMENT = b"made by mellowmax evaluate"
"""A comment in every file, by which later commands know it as one of ours."""
FAR_ENOUGH = 2000
"""The comment is within this many bytes of the beginning, after at most 256 colours."""

PICTURES_A_SECOND = 25
"""About how many pictures are kept for each second of the episode."""


def check_film(name: str, path: Path, *, force: bool) -> None:
    """Raise unless a film may be written to a file; see `check_output`."""
    if path.suffix.lower() != ".gif":
        raise ValueError(f"`{name}` must be a file ending in .gif, got {str(path)!r}")
    check_output(name, path, _is_film, force=force)


def _is_film(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(FAR_ENOUGH)
    except OSError:
        return False
    return head.startswith(b"GIF8") and COMMENT in head


class Film:
    """A GIF of an episode.

    The first picture is drawn at once, so that errors come before any other work; the rest of the
    episode is played when the film is written.

    Args:
        path: of the file, which `check_film` has approved of.
        environment: the id of the environment that is shown.
        pictures: from `deep.watch`.

    Raises:
        ValueError: for an environment that cannot show itself.
    """

    def __init__(
        self,
        path: Path,
        environment: str,
        pictures: Iterator[tuple[npt.NDArray[np.uint8], float]],
    ) -> None:
        from ..environments.fleet.flatten import make_discrete

        with contextlib.closing(make_discrete(environment)) as env:
            a_second = float(env.metadata.get("render_fps") or 50)
        for name, value in (("SDL_VIDEODRIVER", "dummy"), ("PYGAME_HIDE_SUPPORT_PROMPT", "1")):
            os.environ.setdefault(name, value)  # a file needs no window, and no greeting
        every = max(1, round(a_second / PICTURES_A_SECOND))
        first, _ = next(pictures)
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
                comment=COMMENT,
            )
        return next(count)
