"""Calls that wait until a library is imported, to tell it of our types and functions.

JAX must know that a softmax is a pytree, also one that was made before `import jax`; PyTorch must
know an operator and functions of ours. To tell them at once would import them, which takes seconds,
and a user of NumPy may have neither. Neither library has a hook for others to register with.

So a finder stands first in `sys.meta_path`, Python's own place for such hooks, until all modules
that are waited for have been imported. Each import of the program asks it, which costs a look into
a dictionary. It finds nothing by itself: it asks the finders after it, and adds the call to the
loader of the module that they find. Python 3.11 to 3.14.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["once_imported"]


def once_imported(name: str, call: Callable[[], None]) -> None:
    """Make a call now if a module is imported already, or else at the end of its import."""
    if name in sys.modules:
        call()
        return
    _finder.calls.setdefault(name, []).append(call)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as the others do, and adds the calls to their loaders."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Callable[[], None]]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, if calls wait for it; None for other modules."""
        if name not in self.calls or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                for call in self.calls.pop(name, ()):
                    call()
                if not self.calls and self in sys.meta_path:
                    sys.meta_path.remove(self)

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


_finder = _Finder()
