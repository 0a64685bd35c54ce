"""The report: every finished item of the paper on one page."""

from .page import Entry, markdown, write

__all__ = ["Entry", "markdown", "write"]
