"""The report: every finished item of the paper on one page, and the same as Markdown."""

from .._common.extras import needed_by

with needed_by("mellowmax.report", "experiments"):
    from .entry import Entry
    from .markdown import write_markdown
    from .page import write_page

__all__ = ["Entry", "write_markdown", "write_page"]
