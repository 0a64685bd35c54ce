"""The explorer: a page to turn the inverse temperature and see planning break and heal.

`page` makes it, `write_page` writes it, and `PageServer` serves it. What Python computes for it are
blocks: `exhibits` are those of its gallery, `landing` makes another one, and `model` is for a
reader's own MDP.
"""

from .gallery import exhibits, taxi
from .landings import Pilot, landing
from .models import model
from .page import Block, page, write_page
from .serve import PageServer

__all__ = [
    "Block",
    "PageServer",
    "Pilot",
    "exhibits",
    "landing",
    "model",
    "page",
    "taxi",
    "write_page",
]
