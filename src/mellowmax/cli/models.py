"""The MDP that a command is asked for: a saved one, or that of a Gymnasium environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..mdp import MDP

__all__ = ["load_model"]


def load_model(model: str, discount: float) -> MDP:
    """The MDP of a file or of a Gymnasium id.

    Raises:
        ValueError: for a name that is neither, or arrays that are no MDP.
    """
    from ..mdp import MDP

    if Path(model).is_file():
        return MDP.load(model)
    if model.endswith(".npz") or (os.sep in model and Path(model).parent.is_dir()):
        raise ValueError(f"`MODEL` must be a file that exists or a Gymnasium id, got {model!r}")
    return MDP.from_gymnasium(model, discount)
