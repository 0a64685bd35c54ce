"""The private names of other packages that are used here: all of them, and why.

A public name is used wherever there is one. A private name may be gone in the next version of its
package. So each stands here, with the version that it was tested with, and
`tests/_common/test_private_names.py` fails when one is gone or has another meaning. Nothing here
imports a package before it is called. What waits for an import is in `on_import`, by a public name
of Python.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from typer._click import core, exceptions, formatting

    click_core, click_exceptions, click_formatting = core, exceptions, formatting

__all__ = [
    "COMPILER",
    "added_product",
    "click",
    "functorch_unwrapped",
    "is_intercepted",
    "is_only_for_autograd",
    "rows_in_place",
    "write_programs_whole",
]

COMPILER = "torch._dynamo"
"""The module of PyTorch's compiler, which is imported when something is first compiled. What is
told to `torch.compiler` before that would import it, which takes seconds. PyTorch 2.13."""


def click(part: str) -> ModuleType:
    """A module of the Click that Typer uses, such as `exceptions`.

    Newer versions of Typer have a Click of their own, and no public name for its errors, its help
    and the command under way. Typer 0.29; older ones use the package `click`.
    """
    own = importlib.util.find_spec("typer._click")
    return importlib.import_module(f"{'typer._click' if own else 'click'}.{part}")


def is_intercepted() -> bool:
    """Does a mode of PyTorch see every operation, as in a program that is being traced?

    `torch.compiler.is_compiling` knows of the compiler alone, not of `make_fx`. PyTorch 2.13.
    """
    import torch

    return bool(torch._C._len_torch_dispatch_stack() > 0)


def functorch_unwrapped(x: torch.Tensor) -> torch.Tensor:
    """The tensor that `torch.func` has wrapped, at all its levels.

    `torch.func` itself has no name for it. PyTorch 2.13.
    """
    import torch

    wrappers = torch._C._functorch
    while wrappers.is_functorch_wrapped_tensor(x):
        x = wrappers.get_unwrapped(x)
    return x


def is_only_for_autograd(x: torch.Tensor) -> bool:
    """Has a tensor numbers, and does nothing but autograd follow what is done with them?

    Not so within `torch.func`, nor where a mode sees every operation, nor for a tensor that
    `torch.func` has left behind, whose numbers are another's. What is public reads the numbers.
    PyTorch 2.13.
    """
    import torch

    return bool(
        torch._C._has_storage(x)
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
    )


@functools.cache
def added_product() -> Callable[..., object] | None:
    """SciPy's product of a matrix in CSR form and a vector, `y += A x`, row by row.

    It is `f(rows, columns, starts, columns_of_entries, entries, x, y)`. The public form makes a new
    `y`, and takes half as long again for a small matrix. SciPy 1.17; None where it is not there.
    """
    try:
        from scipy.sparse._sparsetools import csr_matvec
    except ImportError:
        return None
    return cast(Callable[..., object], csr_matvec)


@functools.cache
def rows_in_place() -> Callable[..., object] | None:
    """Gauss-Seidel's sweep, `x[i] += sum_j a[i, j] x[j]` row by row, each with the new `x`.

    It takes a matrix in CSR form and `x`: `f(starts, columns, entries, x)`. It is SciPy's product
    where both vectors are the same. None where a small trial shows that this is another thing.
    """
    import numpy as np

    product = added_product()
    if product is None:
        return None

    def sweep(starts: object, columns: object, entries: object, x: npt.NDArray[np.float64]) -> None:
        product(len(x), len(x), starts, columns, entries, x, x)

    x = np.ones(3)
    sweep(np.array([0, 0, 1, 3], np.int32), np.array([0, 0, 1], np.int32), np.full(3, 0.5), x)
    return sweep if x.tolist() == [1.0, 1.5, 2.25] else None


def write_programs_whole() -> None:
    """Let JAX write a compiled program to its cache whole or not at all.

    One that is half there, since the process was killed, would be warned of at every start, and
    never be replaced. JAX has no setting for this. JAX 0.10.2; a version that does it differently
    is left as it is.
    """
    from jax._src import lru_cache

    from .files import replacing

    put, suffix = lru_cache.LRUCache.put, lru_cache._CACHE_SUFFIX

    def put_whole(self: lru_cache.LRUCache, key: str, value: bytes) -> None:
        path = Path(self.path) / f"{key}{suffix}"
        if not path.exists():
            with replacing(path) as file:
                file.write(value)
        put(self, key, value)

    lru_cache.LRUCache.put = put_whole  # type: ignore[method-assign]
