"""The command line: `mellowmax solve`, `play`, `infer`, `train`, `evaluate`, `show`, `explore`,
`reproduce` and `report`.

Importing this needs nothing; `main` needs the extra `experiments`, and says so where it is missing.
"""

import sys

from .._common.extras import MissingExtraError, needed_by
from .._common.signals import unwatch_signals, watch_signals
from .._common.terminal import say_error

__all__ = ["main"]


def main() -> None:
    """Run the command line; signals are watched before anything else is imported."""
    watch_signals()
    try:
        with needed_by("mellowmax", "experiments"):
            from .app import app

            app(prog_name="mellowmax")
    except MissingExtraError as error:
        say_error(str(error))
        sys.exit(2)
    finally:
        unwatch_signals()
