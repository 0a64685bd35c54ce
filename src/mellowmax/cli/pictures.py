"""Pictures that commands write: where they may be, and how a later command knows them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._common.files import check_output, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ENDINGS", "check_picture", "save_picture"]

TITLE = "made by mellowmax"
"""A text in every file, by which later commands know it as one of ours."""
FAR_ENOUGH = 4000
"""The text is within this many bytes of the beginning."""
ENDINGS = (".svg", ".png")


def check_picture(name: str, path: Path, *, force: bool) -> None:
    """Raise unless a picture may be written to a file; see `check_output`."""
    if path.suffix.lower() not in ENDINGS:
        rule = f"`{name}` must be a file ending in {' or '.join(ENDINGS)}"
        raise ValueError(f"{rule}, got {str(path)!r}")
    check_output(name, path, _is_ours, force=force)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return TITLE.encode() in file.read(FAR_ENOUGH)
    except OSError:
        return False


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure as its file's ending says, whole or not at all."""
    kind = path.suffix.lower().removeprefix(".")
    metadata: dict[str, Any] = {"Title": TITLE, **({"Date": None} if kind == "svg" else {})}
    with replacing(path) as file:
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)
