"""Are numbers there, or do they only stand for numbers in a program that is being traced?

`truth` asks it of any library's condition. The others ask it of PyTorch, where a tensor may be
followed by its compiler, its exporter, `torch.func` or forward-mode derivatives.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from ..._common.private_names import functorch_unwrapped, is_intercepted, is_only_for_autograd
from ..._typing import Array

if TYPE_CHECKING:
    import torch

__all__ = ["as_number", "holds_numbers", "is_symbol", "is_traced", "truth"]


def truth(condition: Array | bool) -> bool | None:
    """The value of a condition, or None while it is being traced and has none."""
    if is_traced(condition):
        return None
    try:
        return bool(condition)
    except Exception as error:  # each library has its own class for this
        if "Tracer" in type(error).__name__ or "vmap" in str(error):
            return None
        raise


def is_traced(x: object) -> bool:
    """Is it a tensor that stands for numbers in a program that PyTorch compiles or exports?

    To ask such a tensor for its truth would leave a trace in that program, or is an error.
    """
    if not type(x).__module__.startswith("torch"):
        return False
    import torch

    inner = functorch_unwrapped(cast("torch.Tensor", x))
    is_plain = type(inner) in (torch.Tensor, torch.nn.Parameter) and not inner.is_meta
    return not is_plain or is_intercepted()


def as_number(x: object) -> float | None:
    """A number, or a tensor that holds one, as a plain number; None for anything else."""
    if type(x) in (float, int):
        try:
            return float(cast(float, x))
        except OverflowError:  # of an integer
            return None
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor) or x.ndim or not x.is_floating_point():
        return None
    return float(x.detach()) if holds_numbers(x) else None


def is_symbol(x: object) -> bool:
    """Is it a number that PyTorch's compiler takes for a variable?"""
    return type(x).__name__ in ("SymFloat", "SymInt")


def holds_numbers(x: torch.Tensor) -> bool:
    """Has a tensor numbers, and does nothing but autograd follow what is done with it?

    Not so for `torch.compile`, `torch.export` and `make_fx`, for `torch.func`, for forward-mode
    derivatives, for a trace of `torch.jit`, and on the meta device.
    """
    import torch

    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.layout is torch.strided
        and not x.is_meta
        and is_only_for_autograd(x)
        and torch.autograd.forward_ad.unpack_dual(x).tangent is None
        and not torch.jit.is_tracing()
    )
