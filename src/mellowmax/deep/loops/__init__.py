"""How playing and learning take turns in a block of runs: a loop for each kind of learner."""

from .loop import Learned, Loop
from .make import make_loop

__all__ = ["Learned", "Loop", "make_loop"]
