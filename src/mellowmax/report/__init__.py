"""The report: every finished item of the paper on one page, and the same as Markdown.

>>> from tempfile import TemporaryDirectory
>>> from mellowmax import experiments, report
>>> with TemporaryDirectory() as out:
...     finished = experiments.reproduce(["fig5"], "quick", out)
...     page = report.write(finished, out)
...     print(page.name)
report.html
"""

from .._common.extras import needed_by

with needed_by("mellowmax.report", "experiments"):
    from .markdown import write_markdown
    from .page import write_page
    from .writing import write

__all__ = ["write", "write_markdown", "write_page"]
