"""The explorer: one page on which a reader turns the temperature and sees planning break and heal."""

from .page import Block, page, write_page

__all__ = ["Block", "page", "write_page"]
