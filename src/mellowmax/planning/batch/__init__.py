"""Planning in thousands of small MDPs at once."""

from .fixed_points import Roots, search
from .iterate import Run, iterate
from .mdps import Batch

__all__ = ["Batch", "Roots", "Run", "iterate", "search"]
