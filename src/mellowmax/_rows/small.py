"""Small batches: there the time goes into the calls of array functions, not into numbers.

`answer` is the quick way for the arguments that nearly all callers pass: an array of NumPy's or a
tensor of PyTorch's, with the actions last, and one number as the parameter. It asks `ordinary`
kernels, and gives None where they, or it, do not know: then the call goes the way that serves all.

Such a tensor is computed with NumPy, whose calls cost a fraction of PyTorch's, wherever it lies.
Autograd sees one operation. Its derivative is the closed form, computed likewise; a derivative that
is to be differentiated again is that of the way that serves all.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._typing import Shape
from .libraries import holds_numbers
from .ordinary import Answer, Kernel

if TYPE_CHECKING:
    import torch

__all__ = ["answer"]

MOST = 1 << 13
"""Elements of a batch that is small."""

General: TypeAlias = Callable[[Any, Any], Any]
"""The way that serves all, as a function of the values and the parameter."""


def answer(
    kernel: Kernel | None,
    q: Any,
    parameter: Any,
    axis: Any,
    where: Any,
    general: General,
    keepdims: bool = False,
) -> Any:
    """What the kernel finds, laid out for the caller; None if there is no quick way."""
    if kernel is None or axis != -1:
        return None
    if type(q) is np.ndarray:
        known = _ask(kernel, q, parameter, where)
        return None if known is None else _laid_out(known.result, q.shape, keepdims).astype(q.dtype)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(q, torch.Tensor):
        return None
    return _of_tensor(kernel, q, parameter, where, general, keepdims)


def _ask(kernel: Kernel, q: npt.NDArray[Any], parameter: Any, where: Any) -> Answer | None:
    """What the kernel knows of an array."""
    if not 0 < q.size <= MOST or q.ndim == 0 or q.dtype.char not in "fd":
        return None
    if type(parameter) not in (float, int):
        return None
    mask = None
    if where is not None:
        if type(where) is not np.ndarray or where.dtype != bool or where.shape != q.shape:
            return None
        mask = np.array(where.reshape(-1, q.shape[-1]).T, order="C")  # it may change later
    columns = np.ascontiguousarray(q.reshape(-1, q.shape[-1]).T, dtype=np.float64)
    with np.errstate(all="ignore"):
        return kernel(columns, float(parameter), mask)


def _laid_out(result: npt.NDArray[Any], shape: Shape, keepdims: bool) -> npt.NDArray[Any]:
    """`[rows]` or `[actions, rows]` as the axes of `q` are."""
    if result.ndim == 1:
        shape = (*shape[:-1], 1) if keepdims else shape[:-1]
    return result.T.reshape(shape)


def _of_tensor(
    kernel: Kernel, q: torch.Tensor, parameter: Any, where: Any, general: General, keepdims: bool
) -> torch.Tensor | None:
    import torch

    tensors = [x for x in (q, parameter, where) if isinstance(x, torch.Tensor)]
    if not all(map(holds_numbers, tensors)) or q.numel() > MOST:
        return None
    if q.dtype not in (torch.float32, torch.float64):
        return None
    is_tensor = isinstance(parameter, torch.Tensor)
    if is_tensor and (parameter.ndim or not parameter.is_floating_point()):
        return None
    number = float(parameter.detach()) if is_tensor else parameter
    mask = where.numpy(force=True) if isinstance(where, torch.Tensor) else where
    values = q.numpy(force=True)
    known = _ask(kernel, values, number, mask)
    if known is None:
        return None
    result = torch.from_numpy(_laid_out(known.result, values.shape, keepdims))
    result = result.to(q.device, q.dtype)
    if torch.is_grad_enabled() and (q.requires_grad or (is_tensor and parameter.requires_grad)):
        differentiated: torch.Tensor = _function().apply(q, parameter, result, known, general)
        return differentiated
    return result


@functools.cache
def _function() -> type[torch.autograd.Function]:
    import torch

    class Known(torch.autograd.Function):  # type: ignore[misc]
        """A result that is known, with its derivative."""

        @staticmethod
        def forward(
            ctx: Any,
            q: torch.Tensor,
            parameter: torch.Tensor | float,
            result: torch.Tensor,
            known: Answer,
            general: General,
        ) -> torch.Tensor:
            ctx.is_tensor = isinstance(parameter, torch.Tensor)
            ctx.save_for_backward(q, *([parameter] if ctx.is_tensor else []))
            ctx.parameter = None if ctx.is_tensor else parameter
            ctx.known, ctx.general = known, general
            return result

        @staticmethod
        def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            q = ctx.saved_tensors[0]
            parameter = ctx.saved_tensors[1] if ctx.is_tensor else ctx.parameter
            again = torch.is_grad_enabled()
            if not again and holds_numbers(cotangent):
                rows = cotangent.numpy(force=True).reshape(ctx.known.result.T.shape).T
                with np.errstate(all="ignore"):
                    by_q, by_parameter = ctx.known.pulled_back(rows.astype(np.float64))
                if by_parameter is not None or not ctx.needs_input_grad[1]:
                    back = torch.from_numpy(by_q.T.reshape(q.shape)).to(q.device, q.dtype)
                    if not ctx.needs_input_grad[1]:
                        return back, None, None, None, None
                    total = parameter.new_tensor(float(by_parameter.sum()))
                    return back, total, None, None, None
            wanted = [x for x, is_wanted in zip((q, parameter), ctx.needs_input_grad[:2]) if is_wanted]
            with torch.enable_grad():
                result = ctx.general(q, parameter)
            found = iter(torch.autograd.grad(result, wanted, cotangent, create_graph=again))
            return (
                *(next(found) if is_wanted else None for is_wanted in ctx.needs_input_grad[:2]),
                None,
                None,
                None,
            )

    return Known
