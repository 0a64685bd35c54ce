"""The quick path: NumPy's arrays, and PyTorch's tensors, with formulas of few operations.

`answer` takes the arguments that nearly all callers pass: a NumPy array or a PyTorch tensor, with
the actions last, and one number as the parameter. It computes with a formula of `formulas`. It
returns None for other arguments, and for rows that the formula does not get right; then the caller
takes the general path.

The rows are taken chunk by chunk, so that temporaries stay in cache. Tensors are computed with
NumPy, whose calls are much shorter than PyTorch's; small ones on a GPU are copied to the host.
Autograd sees one operation. Its derivative is the closed form, computed in the same way. Second
derivatives, and derivatives for many cotangents at once, are those of the general path.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..._typing import Array, Bools, Floats, Shape
from ..arguments import Call
from ..libraries.tracing import as_number, holds_numbers
from .formulas import Answer, Gradients, QuickFormula
from .gaps import Counted

if TYPE_CHECKING:
    import torch

__all__ = ["General", "answer"]

MOST_FROM_GPU = 1 << 17
"""Elements of a small tensor on another device: a larger one takes less time there."""
CHUNK = 1 << 15
"""Elements that are computed at once."""
FAINT, FAINT_IN_SINGLE = 2.0**-10, 2.0**-24
"""The least weight of a prior that costs the result none of its digits."""

General: TypeAlias = Callable[[Call], Array]
"""The general path."""


def answer(formula: QuickFormula | None, call: Call, general: General) -> Any:
    """The result in the caller's library, shape and dtype; None if this path is not for the call.

    `general` is needed for second derivatives.
    """
    q, parameter, _, axis, where, prior, keepdims = call
    if formula is None or type(axis) is not int or axis not in (-1, getattr(q, "ndim", 0) - 1):
        return None
    if type(q) is np.ndarray:
        known = _compute(formula, q, parameter, where, prior, False)
        if known is None:
            return None
        return _laid_out(np.asarray(known.result.T, q.dtype, order="C"), q.shape, keepdims)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(q, torch.Tensor):
        return None
    return _of_tensor(formula, call, general)


def _compute(
    formula: QuickFormula,
    q: object,
    parameter: object,
    where: object,
    prior: object,
    differentiated: bool,
) -> Answer | None:
    """What the formula gives for NumPy's arrays; None for other arguments."""
    if not isinstance(q, np.ndarray) or q.dtype.char not in "fd" or not q.size:
        return None
    number, shape = as_number(parameter), (-1, *q.shape[-1:])
    if number is None or not q.ndim:
        return None
    mask: Bools | None = None
    if where is not None:
        if type(where) is not np.ndarray or where.dtype != bool or where.ndim > q.ndim:
            return None
        if where.shape != q.shape[q.ndim - where.ndim :]:
            return None
        whole = where if where.shape == q.shape else np.broadcast_to(where, q.shape)
        mask = whole.reshape(shape)
    counted: Counted = mask
    if prior is not None:
        counted = _prior(prior, q, mask)
        if counted is None:
            return None
    columns = None if counted is None else counted.T
    with np.errstate(all="ignore"):
        if q.size <= CHUNK:
            return formula(q.reshape(shape).T, number, columns)
        return _in_chunks(formula, q.reshape(shape), number, columns, differentiated)


def _prior(prior: object, q: Floats, mask: Bools | None) -> Floats | None:
    """The weights of a prior `[rows or 1, actions]`, scaled to add up to 1.

    None for arguments that are wrong, and for weights so faint that they cost digits.
    """
    if type(prior) is not np.ndarray or prior.dtype.char not in "fd" or prior.ndim > q.ndim:
        return None
    if not prior.ndim or prior.shape != q.shape[q.ndim - prior.ndim :]:
        return None
    each = prior.reshape(-1, prior.shape[-1]).astype(np.float64)
    if prior.ndim not in (1, q.ndim):
        each = np.broadcast_to(prior, q.shape).reshape(-1, prior.shape[-1]).astype(np.float64)
    if mask is not None:
        each = each * mask
    total = np.add.reduce(each, axis=1, keepdims=True)
    least = FAINT_IN_SINGLE if q.dtype == np.float32 else FAINT
    if not (np.isfinite(total) & (total > 0)).all():
        return None
    each = each / total
    if not ((each >= least) | (each == 0)).all():
        return None
    return each


def _in_chunks(
    formula: QuickFormula,
    q: Floats,
    parameter: float,
    counted: Counted,
    differentiated: bool,
) -> Answer | None:
    """What the formula gives for `q [rows, actions]`, some rows at a time."""
    n_chunks = -(-q.size // CHUNK)
    ends = [len(q) * i // n_chunks for i in range(n_chunks + 1)]
    parts = [slice(start, end) for start, end in itertools.pairwise(ends) if start < end]
    result, pullbacks = None, []
    for part in parts:
        of_part = counted
        if counted is not None and counted.shape[1] > 1:
            of_part = counted[:, part]
        known = formula(q[part].T, parameter, of_part)
        if known is None:
            return None
        if result is None:
            result = np.empty((len(q), *known.result.shape[:-1]), q.dtype)
        result[part] = known.result.T
        if differentiated:  # else the arrays of each chunk are freed, and taken again for the next
            pullbacks.append(known.pullback)

    def pullback(cotangent: Floats) -> Gradients:
        each = [
            of_part(cotangent[..., part]) for part, of_part in zip(parts, pullbacks, strict=True)
        ]
        grad_q = np.concatenate([grad_q for grad_q, _ in each], axis=-1)
        d_parameter = [x for _, x in each if x is not None]
        if len(d_parameter) < len(each):
            return grad_q, None
        return grad_q, np.concatenate(d_parameter)

    return None if result is None else Answer(result.T, pullback)


def _laid_out(result: Floats, shape: Shape, keepdims: bool) -> Floats:
    """A result `[rows]` or `[rows, actions]` with the axes of `q`."""
    if result.ndim == 1:
        shape = (*shape[:-1], 1) if keepdims else shape[:-1]
    return result.reshape(shape)


def _of_tensor(formula: QuickFormula, call: Call, general: General) -> torch.Tensor | None:
    import torch

    q, parameter, _, _, where, prior, keepdims = call
    on_cpu = q.is_cpu
    if not holds_numbers(q) or not q.numel() or (not on_cpu and q.numel() > MOST_FROM_GPU):
        return None
    if q.dtype is torch.bfloat16:  # which NumPy does not have
        return None
    if isinstance(where, torch.Tensor):
        where = where.numpy(force=True) if holds_numbers(where) else where
    if isinstance(prior, torch.Tensor):
        if prior.requires_grad or not holds_numbers(prior) or prior.dtype is torch.bfloat16:
            return None
        prior = prior.numpy(force=True)
    values = q.numpy(force=True)
    learned = isinstance(parameter, torch.Tensor) and parameter.requires_grad
    differentiated = (q.requires_grad or learned) and torch.is_grad_enabled()
    known = _compute(formula, values, parameter, where, prior, differentiated)
    if known is None:
        return None
    copy = known.result.T.astype(values.dtype, order="C")  # what is done to it is the caller's
    result = torch.from_numpy(_laid_out(copy, tuple(q.shape), keepdims))
    if not on_cpu:
        result = result.to(q.device)
    if differentiated:
        result = _known().apply(q, parameter, result, known, call, general)
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
            call: Call,
            general: General,
        ) -> torch.Tensor:
            is_tensor = isinstance(parameter, torch.Tensor)
            ctx.save_for_backward(q, parameter if is_tensor else None)
            ctx.number = None if is_tensor else parameter
            ctx.known, ctx.others, ctx.general = known, call[2:], general
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
                    grad_q, d_parameter = ctx.known.pullback(rows.astype(np.float64))
                if d_parameter is not None or not wanted[1]:
                    found = torch.from_numpy(grad_q.T.reshape(q.shape)).to(q.device, q.dtype)
                    total = parameter.new_tensor(d_parameter.sum()) if wanted[1] else None
                    return found, total, None, None, None, None
            inputs = (q, ctx.number if parameter is None else parameter)
            with torch.enable_grad():
                result = ctx.general(Call(*inputs, *ctx.others))
            each = torch.autograd.grad(
                result,
                [x for x, is_wanted in zip(inputs, wanted, strict=True) if is_wanted],
                cotangent,
                create_graph=torch.is_grad_enabled(),
            )
            found = iter(each)
            first = (next(found) if is_wanted else None for is_wanted in wanted)
            return (*first, None, None, None, None)

    return Known
