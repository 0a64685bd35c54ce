"""What PyTorch's compilers see: operators as formulas, and one search as a call.

`torch.compile` reads Python code, and would stumble over that which makes rows of any caller's
arguments. So each function is *allowed in its graph*: it is run with tensors that stand for
numbers, and what it does with them is compiled and fused with what is around it.

The search for mellowmax's inverse temperature is a loop that ends when the numbers say so. A
compiled program has a fixed number of steps, which nearly all rows need at most, and then calls the
operator `mellowmax::temperature`, which looks whether that was enough, and searches with care if
not. An exported program calls it too: whoever runs one imports mellowmax first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..._common.on_import import once_imported
from ..._common.private_names import COMPILER

if TYPE_CHECKING:
    import torch

__all__ = ["allow_in_graph", "define_search"]

_libraries: list[torch.library.Library] = []
"""What is defined lasts as long as its library."""


def allow_in_graph(functions: Iterable[Callable[..., Any]]) -> None:
    """Let PyTorch's compiler run functions, not read them, once there is a compiler."""

    def allow() -> None:
        import torch

        for function in functions:
            torch.compiler.allow_in_graph(function)

    once_imported(COMPILER, allow)


def define_search(search: Callable[..., Any]) -> None:
    """Define `mellowmax::temperature`, with the search that is right for every row.

    It has arguments and a result like those of a formula, after a condition and the result if that
    holds. To look at the condition, it waits for the device: CUDA graphs cannot have it.
    """

    def define() -> None:
        import array_api_compat.torch as xp
        import torch

        library = torch.library.Library("mellowmax", "DEF")
        _libraries.append(library)
        unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)
        library.define(
            "temperature(Tensor known, Tensor at, Tensor q, Tensor omega, Tensor? mask) -> Tensor",
            tags=() if unsafe is None else (unsafe,),
        )

        def temperature(
            known: torch.Tensor,
            at: torch.Tensor,
            q: torch.Tensor,
            omega: torch.Tensor,
            mask: torch.Tensor | None,
        ) -> torch.Tensor:
            return at.clone() if known else search(xp, q, omega, mask).contiguous()

        library.impl("temperature", temperature, "CompositeExplicitAutograd")
        torch.library.register_fake(
            "mellowmax::temperature", lambda known, at, *_: torch.empty_like(at), lib=library
        )

    once_imported("torch", define)
