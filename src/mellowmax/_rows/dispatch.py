"""Functions of independent rows: how each library works through them and differentiates them.

NumPy takes a batch chunk by chunk, so that temporaries stay in cache and their memory is bounded.
JAX compiles the same, and folds `vmap` into the rows; PyTorch gets an autograd function with the
same closed forms. JAX and PyTorch are only ever imported for a caller who passed one of their
arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_jax_namespace, is_numpy_namespace, is_torch_namespace

__all__ = ["Rowwise"]

NUMPY_CHUNK = 1 << 16
"""Elements of a chunk: few enough to stay in cache, enough to hide the cost of the calls."""
XLA_CPU_CHUNK = 3584
"""The same for XLA on a CPU, where larger operations run slower (measured with 4096 and more)."""
XLA_CHUNK = 1 << 26
"""The same for XLA on an accelerator: enough to fill it, and a bound on its memory."""


class Rowwise:
    """A function of independent rows, for every library.

    It is called with `q [rows, actions]`, a `parameter` of `[rows, 1]` or `[1, 1]`, a `mask` like
    `q` or None, and perhaps one more array, and returns `[rows, 1]` or `[rows, actions]`. Its
    `kernel(xp, q, parameter, mask, ...)` sees all of these the other way round, actions first, so
    that an operation between actions is one over long vectors.

    With `by_q` and `by_parameter`, a function of one number a row is differentiated by these closed
    forms, never through its kernel. They are functions of rows too, `(q, parameter, mask, result)`,
    and are differentiated in turn for the higher orders.

    JAX takes the kernel `on_accelerator` there, if one is given.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        by_q: Any = None,
        by_parameter: Any = None,
        on_accelerator: Callable[..., Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.on_accelerator = on_accelerator or kernel
        self.by_q = by_q
        self.by_parameter = by_parameter

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        if is_jax_namespace(xp):
            return self._jax(*arrays)
        if is_numpy_namespace(xp):
            return self._numpy(*arrays)
        if is_torch_namespace(xp) and self.by_q is not None:
            return self._torch.apply(*arrays)
        return _whole(self.kernel, xp, *arrays)

    def _numpy(self, *arrays: Any) -> Any:
        """Chunk by chunk."""
        rows, actions = arrays[0].shape
        width = max(1, NUMPY_CHUNK // actions)
        result = None
        for start in range(0, max(rows, 1), width):
            chunk = slice(start, start + width)
            part = self.kernel(np, *(_contiguous(_part(x, chunk)) for x in arrays)).T
            if result is None:
                result = np.empty((rows, part.shape[1]), dtype=part.dtype)
            result[chunk] = part
        return result

    @functools.cached_property
    def _jax(self) -> Any:
        """Compiled, chunk by chunk, so that each leaves a loop when it has converged."""
        import jax
        import jax.numpy as jnp
        from jax.custom_batching import custom_vmap

        def in_chunks(kernel: Callable[..., Any], elements: int, *arrays: Any) -> Any:
            whole = functools.partial(_whole, kernel, jnp)
            rows, actions = arrays[0].shape
            width = max(1, elements // actions // 16) * 16
            if rows <= width:
                return whole(*arrays)

            def one_chunk(i: Any, result: Any) -> Any:
                start = i * width  # the last chunk is moved back to fit, and repeats some rows
                chunk = (
                    x if _is_one(x) else jax.lax.dynamic_slice_in_dim(x, start, width)
                    for x in arrays
                )
                return jax.lax.dynamic_update_slice_in_dim(result, whole(*chunk), start, axis=0)

            result = jnp.zeros(jax.eval_shape(whole, *arrays).shape, arrays[0].dtype)
            return jax.lax.fori_loop(0, -(-rows // width), one_chunk, result)

        @custom_vmap  # type: ignore[untyped-decorator]
        def value(*arrays: Any) -> Any:
            return jax.lax.platform_dependent(
                *arrays,
                cpu=functools.partial(in_chunks, self.kernel, XLA_CPU_CHUNK),
                default=functools.partial(in_chunks, self.on_accelerator, XLA_CHUNK),
            )

        @value.def_vmap  # type: ignore[untyped-decorator]
        def _(batch: int, batched: Any, *arrays: Any) -> Any:
            """A batch is more rows."""
            rows = arrays[0].shape[1 if batched[0] else 0]
            flat = []
            for x, is_batched in zip(arrays, batched, strict=True):
                if x is None or (x.shape == (1, 1) and not is_batched):
                    flat.append(x)
                else:
                    x = jnp.broadcast_to(x, (batch, rows, x.shape[-1]))
                    flat.append(x.reshape(-1, x.shape[-1]))
            result = value(*flat)
            return result.reshape(batch, rows, -1), True

        function = jax.custom_jvp(value)

        def jvp(primals: Any, tangents: Any) -> Any:
            if self.by_q is None:
                return jax.jvp(functools.partial(_whole, self.kernel, jnp), primals, tangents)
            result = function(*primals)
            total = jnp.zeros_like(result)
            for by, tangent in zip((self.by_q, self.by_parameter), tangents, strict=False):
                if not isinstance(tangent, jax.custom_derivatives.SymbolicZero):
                    part = by._jax(*primals, result) * tangent
                    total = total + jnp.sum(part, axis=1, keepdims=True)
            return result, total

        function.defjvp(jvp, symbolic_zeros=self.by_q is not None)
        return jax.jit(function)

    @functools.cached_property
    def _torch(self) -> Any:
        """An autograd function with the closed forms for both directions."""
        import array_api_compat.torch as xp
        import torch

        rule = self

        class Function(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(*arrays: Any) -> Any:
                return _whole(rule.kernel, xp, *arrays)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs, output)
                ctx.save_for_forward(*inputs, output)

            @staticmethod
            def backward(ctx: Any, cotangent: Any) -> Any:
                saved, by_q, by_parameter = ctx.saved_tensors, None, None
                if ctx.needs_input_grad[0]:
                    by_q = cotangent * rule.by_q(xp, *saved)
                if ctx.needs_input_grad[1]:
                    by_parameter = cotangent * rule.by_parameter(xp, *saved)
                    by_parameter = by_parameter.sum_to_size(saved[1].shape)
                return by_q, by_parameter, None

            @staticmethod
            def jvp(ctx: Any, *tangents: Any) -> Any:
                total = torch.zeros_like(ctx.saved_tensors[-1])
                for by, tangent in zip((rule.by_q, rule.by_parameter), tangents, strict=False):
                    if tangent is not None:
                        part = by(xp, *ctx.saved_tensors) * tangent
                        total = total + part.sum(1, keepdim=True)
                return total

            @staticmethod
            def vmap(info: Any, in_dims: Any, *arrays: Any) -> Any:
                """A batch is more rows."""
                batched: list[Any] = [
                    x if x is None else x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
                    for x, dim in zip(arrays, in_dims, strict=True)
                ]
                rows = (info.batch_size, batched[0].shape[1])
                flat = [x if x is None else x.expand(*rows, -1).flatten(0, 1) for x in batched]
                return Function.apply(*flat).unflatten(0, rows), 0

        return Function


def _whole(kernel: Callable[..., Any], xp: Any, *arrays: Any) -> Any:
    return kernel(xp, *(_turned(x) for x in arrays)).T


def _turned(x: Any) -> Any:
    return None if x is None else x.T


def _contiguous(x: Any) -> Any:
    return None if x is None else np.ascontiguousarray(x.T)


def _part(x: Any, chunk: slice) -> Any:
    return x if _is_one(x) else x[chunk]


def _is_one(x: Any) -> bool:
    """Not one a row, but one for all rows (or nothing)."""
    return x is None or x.shape[0] == 1
