"""Small batches: there the time goes into the calls of array functions, not into numbers.

`answer` is the quick way for the arguments that nearly all callers pass: an array of NumPy's or a
tensor of PyTorch's, with the actions last, and one number as the parameter. It asks a kernel of
`ordinary`, and gives None where that, or it, does not know: then the call goes the way of all.

Such a tensor is computed with NumPy, whose calls cost a fraction of PyTorch's, wherever it lies.
Autograd sees one operation. Its derivative is the closed form, computed likewise; one that is to be
differentiated again, or for many results at once, is that of the way of all.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._typing import Array, Floats, Shape
from .libraries import as_number, holds_numbers
from .ordinary import Answer, Kernel

if TYPE_CHECKING:
    import torch

__all__ = ["General", "answer"]

MOST = 1 << 13
"""Elements of a batch that is small."""

General: TypeAlias = Callable[[Any, Any], Array]
"""The way of all, as a function of the values and the parameter."""


def answer(
    kernel: Kernel | None,
    q: object,
    parameter: object,
    axis: object,
    where: object,
    general: General,
    keepdims: bool = False,
) -> Any:
    """What the kernel finds, laid out for the caller; None if there is no quick way."""
    if kernel is None or type(axis) is not int or axis != -1:
        return None
    if type(q) is np.ndarray:
        known = _ask(kernel, q, parameter, where)
        return None if known is None else _laid_out(known.result, q.shape, keepdims).astype(q.dtype)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(q, torch.Tensor):
        return None
    return _of_tensor(kernel, q, parameter, where, general, keepdims)


def _ask(kernel: Kernel, q: object, parameter: object, where: object) -> Answer | None:
    """What the kernel knows of arrays that are small and plain."""
    if not isinstance(q, np.ndarray) or q.dtype.char not in "fd" or not 0 < q.size <= MOST:
        return None
    number, shape, mask = as_number(parameter), (-1, *q.shape[-1:]), None
    if number is None or not q.ndim:
        return None
    if where is not None:
        if type(where) is not np.ndarray or where.dtype != bool or where.ndim > q.ndim:
            return None
        if where.shape != q.shape[q.ndim - where.ndim :]:
            return None
        mask = np.array(np.broadcast_to(where, q.shape).reshape(shape).T, order="C")
        if not mask.any(axis=0).all():
            return None
    columns = np.ascontiguousarray(q.reshape(shape).T, dtype=np.float64)
    with np.errstate(all="ignore"):
        return kernel(columns, number, mask)


def _laid_out(result: Floats, shape: Shape, keepdims: bool) -> Floats:
    """`[rows]` or `[actions, rows]` as the axes of `q` are."""
    if result.ndim == 1:
        shape = (*shape[:-1], 1) if keepdims else shape[:-1]
    return result.T.reshape(shape)


def _of_tensor(
    kernel: Kernel,
    q: torch.Tensor,
    parameter: object,
    where: object,
    general: General,
    keepdims: bool,
) -> torch.Tensor | None:
    import torch

    if not holds_numbers(q) or not 0 < q.numel() <= MOST:
        return None
    if isinstance(where, torch.Tensor):
        where = where.numpy(force=True) if holds_numbers(where) else where
    values = None if q.dtype is torch.bfloat16 else q.numpy(force=True)
    known = _ask(kernel, values, parameter, where)
    if known is None:
        return None
    result = torch.from_numpy(_laid_out(known.result, tuple(q.shape), keepdims))
    result = result.to(q.device, q.dtype)
    learned = isinstance(parameter, torch.Tensor) and parameter.requires_grad
    if torch.is_grad_enabled() and (q.requires_grad or learned):
        result = _known().apply(q, parameter, result, known, general)
    return result


@functools.cache
def _known() -> type[torch.autograd.Function]:
    import torch

    class Known(torch.autograd.Function):  # type: ignore[misc]
        """A result that is known, with its derivative."""

        @staticmethod
        def forward(
            ctx: torch.autograd.function.FunctionCtx,
            q: torch.Tensor,
            parameter: torch.Tensor | float,
            result: torch.Tensor,
            known: Answer,
            general: General,
        ) -> torch.Tensor:
            is_tensor = isinstance(parameter, torch.Tensor)
            ctx.save_for_backward(q, parameter if is_tensor else None)
            ctx.number = None if is_tensor else parameter
            ctx.known, ctx.general = known, general
            return result

        @staticmethod
        def backward(
            ctx: torch.autograd.function.FunctionCtx, cotangent: torch.Tensor
        ) -> tuple[torch.Tensor | None, ...]:
            q, parameter = ctx.saved_tensors
            wanted = ctx.needs_input_grad[:2]
            if not torch.is_grad_enabled() and holds_numbers(cotangent):
                rows = cotangent.numpy(force=True).reshape(ctx.known.result.T.shape).T
                with np.errstate(all="ignore"):
                    by_q, by_parameter = ctx.known.pulled_back(rows.astype(np.float64))
                if by_parameter is not None or not wanted[1]:
                    found = torch.from_numpy(by_q.T.reshape(q.shape)).to(q.device, q.dtype)
                    total = parameter.new_tensor(by_parameter.sum()) if wanted[1] else None
                    return found, total, None, None, None
            inputs = (q, ctx.number if parameter is None else parameter)
            with torch.enable_grad():
                result = ctx.general(*inputs)
            each = torch.autograd.grad(
                result,
                [x for x, is_wanted in zip(inputs, wanted, strict=True) if is_wanted],
                cotangent,
                create_graph=torch.is_grad_enabled(),
            )
            by = iter(each)
            return (*(next(by) if is_wanted else None for is_wanted in wanted), None, None, None)

    return Known
