"""What parts of the library need beyond NumPy, and the extra that installs it.

    >>> with needed_by("mellowmax.planning", "jax"):
    ...     import jax

Without JAX this says so, and how to install it. The command works wherever mellowmax came from, a
clone or an index: pip keeps the one that is installed and adds what the extra asks for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["MissingExtraError", "needed_by"]

TITLES = {
    "blackjax": "blackjax",
    "cloudpickle": "cloudpickle",
    "equinox": "Equinox",
    "gymnasium": "Gymnasium",
    "jax": "JAX",
    "jaxlib": "JAX",
    "matplotlib": "Matplotlib",
    "optax": "Optax",
    "pandas": "pandas",
    "PIL": "Pillow",
    "pyarrow": "PyArrow",
    "rich": "Rich",
    "scipy": "SciPy",
    "torch": "PyTorch",
    "typer": "Typer",
}
"""The modules that extras install, and their names in a sentence."""


class MissingExtraError(ModuleNotFoundError):
    """An extra is not installed; the sentence has the command that installs it."""


@contextlib.contextmanager
def needed_by(part: str, extra: str) -> Iterator[None]:
    """Imports without which a part of the library cannot work.

    Where one is within another, the error names the outer part: what the user asked for.

    Args:
        part: the module or function, as a user writes it.
        extra: what installs all that is imported within.

    Raises:
        MissingExtraError: if one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in TITLES:  # "jax.core" is missing from a JAX that is there
            raise
        sentence = f"`{part}` needs {TITLES[error.name]}: pip install 'mellowmax[{extra}]'"
        raise MissingExtraError(sentence, name=error.name) from error
