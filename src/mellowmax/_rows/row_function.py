"""Functions of independent rows, worked through and differentiated in each library's way.

NumPy takes a batch chunk by chunk, so that temporaries stay in cache and their memory is bounded.
JAX compiles the same, and folds `vmap` into the rows; PyTorch gets an autograd function with the
same closed forms. JAX and PyTorch are only ever imported for a caller who passed one of their
arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from array_api_compat import is_jax_namespace, is_numpy_namespace, is_torch_namespace

from .._typing import Array, Namespace
from .formulas.gaps import ORDINARY, are_ordinary
from .libraries import pallas
from .libraries.array_api import in_fixed_steps
from .libraries.knowledge import knowing
from .quick.formulas import QuickFormula

if TYPE_CHECKING:
    import jax
    import torch

__all__ = ["Formula", "RowFunction"]

Formula: TypeAlias = Callable[..., Array]
"""`formula(xp, q, parameter, counted)` of `[actions, rows]`, which gives that or `[1, rows]`."""

NUMPY_CHUNK = 1 << 16
"""Elements of a chunk: few enough to stay in cache, enough to hide the cost of the calls."""
XLA_CPU_CHUNK = 3584
"""The same number for XLA on a CPU, where larger operations are slower (measured from 4096 on)."""
XLA_CHUNK = 1 << 26
"""Elements of a chunk for XLA on an accelerator: enough to fill it, and a bound on its memory."""


class RowFunction:
    """A function of independent rows, for every library.

    It is called as `function(xp, q, parameter, counted)`, with `q [rows, actions]` and a
    `parameter` of `[rows, 1]`, or of `[1, 1]` for all rows. `counted` is None where all actions
    count alike, a mask like `q`, or a prior: weights that add up to 1, like `q`, or `[1, actions]`
    for all rows. The result is `[rows, 1]` or `[rows, actions]`. A derivative takes the result of
    what it is the derivative of as a fourth array.

    Args:
        formula: what is computed. It is called alike, but with every array transposed: with the
            actions first, an operation between actions is one over long vectors.
        derivatives: for a function of one number a row, its closed-form derivatives with respect to
            `q` and, where it has them, to the parameter and to the prior. They are used instead of
            differentiating through the formula, and are differentiated in turn for the higher
            orders.
        given: the function of rows whose result the formula takes as a fourth array, as mellowmax's
            policy needs the inverse temperature, which depends on the row and on omega.
        on_accelerator: the formula that JAX takes there, if it is another.
        has_extremes: does the formula compute much that only rows with extreme numbers need? Then
            JAX compiles it without that too, and on a CPU tests each chunk. (Other libraries know
            the numbers when they compute.)
        is_brief: is the formula so short that asking each chunk for extremes would take as long?
            Then JAX asks all rows at once.
        quick: the formula for rows without extreme numbers in main memory.
        without_waiting: the formula that PyTorch compiles, and takes on a GPU, if it is another: a
            loop that ends when the numbers say so waits for the GPU at each step.
    """

    def __init__(
        self,
        formula: Formula,
        derivatives: Sequence[RowFunction] = (),
        *,
        given: RowFunction | None = None,
        on_accelerator: Formula | None = None,
        has_extremes: bool = False,
        is_brief: bool = False,
        quick: QuickFormula | None = None,
        without_waiting: Formula | None = None,
    ) -> None:
        self.formula = formula
        self.derivatives = tuple(derivatives)
        self.given = given
        self.on_accelerator = on_accelerator or formula
        self.has_extremes = has_extremes
        self.is_brief = is_brief
        self.quick = quick
        self.without_waiting = without_waiting or formula

    def __call__(self, xp: Namespace, *arrays: Array | None) -> Array:
        if is_jax_namespace(xp):
            if pallas.traces_kernel():
                return self._all_rows_at_once(self.formula, pallas.namespace(), *arrays)
            return cast(Array, self._jax(*arrays))
        if is_numpy_namespace(xp):
            return self._numpy(*cast(Any, arrays))
        if is_torch_namespace(xp) and self.derivatives:
            return cast(Array, self._torch.apply(*arrays))
        return self._all_rows_at_once(self.formula, xp, *arrays)

    def _all_rows_at_once(self, formula: Formula, xp: Namespace, *arrays: Array | None) -> Array:
        """The formula on arrays transposed for it, its result transposed back."""
        if self.given is not None:
            arrays = (*arrays, self.given(xp, *arrays))
        return formula(xp, *(None if x is None else x.T for x in arrays)).T

    def _by_the_chunk(self, formula: Formula) -> Formula:
        """The formula, and a quicker one for a chunk of ordinary rows, under JAX on a CPU."""
        import jax

        quick = _of_ordinary_rows(formula)

        def either(xp: Namespace, *columns: Array | None) -> Array:
            q, parameter, counted = cast(Any, columns[:3])
            has_prior = _is_prior(counted)
            if not (has_prior or (self.has_extremes and counted is None)):
                return formula(xp, *columns)
            branches = (functools.partial(each, xp) for each in (quick, formula))
            return jax.lax.cond(are_ordinary(xp, q, parameter, counted), *branches, *columns)

        return either

    def _numpy(self, *arrays: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Chunk by chunk."""
        rows, actions = arrays[0].shape
        width = max(1, NUMPY_CHUNK // actions)
        result = None
        for start in range(0, max(rows, 1), width):
            chunk = slice(start, start + width)
            columns: list[Array | None] = [
                _columns(x if _is_for_all_rows(x) else x[chunk]) for x in arrays
            ]
            if self.given is not None:
                columns.append(self.given.formula(np, *columns))
            part = cast(npt.NDArray[Any], self.formula(np, *columns)).T
            if result is None:
                result = np.empty((rows, part.shape[1]), dtype=part.dtype)
            result[chunk] = part
        return cast(npt.NDArray[Any], result)

    @functools.cached_property
    def _jax(self) -> Callable[..., jax.Array]:
        """Compiled, with the closed forms as its derivatives, and `vmap` as more rows."""
        import jax
        from jax.custom_batching import custom_vmap

        @custom_vmap
        def value(*arrays: jax.Array) -> jax.Array:
            elsewhere = self.formula if _is_prior(arrays[2]) else self.on_accelerator
            return jax.lax.platform_dependent(
                *arrays,
                cpu=self._in_jax_on_cpu,
                default=functools.partial(self._in_jax_by_chunks, elsewhere, XLA_CHUNK),
            )

        @value.def_vmap
        def _(batch: int, batched: Sequence[bool], *arrays: jax.Array) -> tuple[jax.Array, bool]:
            rows = arrays[0].shape[1 if batched[0] else 0]
            result = value(*_as_more_rows(batch, rows, batched, arrays))
            return result.reshape(batch, rows, -1), True

        function = jax.custom_jvp(value)

        def jvp(
            primals: Sequence[jax.Array], tangents: Sequence[jax.Array]
        ) -> tuple[jax.Array, jax.Array]:
            if self.derivatives:
                result = function(*primals)
                return result, self._tangent_in_jax(primals, result, tangents)
            at_once: Any = functools.partial(self._all_rows_at_once, self.formula, _jax_numpy())
            result, tangent = jax.jvp(at_once, primals, tangents)
            return result, tangent

        function.defjvp(jvp, symbolic_zeros=bool(self.derivatives))
        return jax.jit(function)

    def _in_jax_by_chunks(self, formula: Formula, elements: int, *arrays: jax.Array) -> jax.Array:
        """Chunk by chunk, so that each leaves a loop when it has converged."""
        import jax
        import jax.numpy as jnp

        at_once: Any = functools.partial(self._all_rows_at_once, formula, _jax_numpy())
        rows, actions = arrays[0].shape
        width = max(1, elements // actions // 16) * 16
        if not isinstance(rows, int) or rows <= width:  # a symbol is not to be divided
            return at_once(*arrays)

        def one_chunk(i: jax.Array, result: jax.Array) -> jax.Array:
            start = i * width  # the last chunk is moved back to fit, and repeats some rows
            chunk = (
                x if _is_for_all_rows(x) else jax.lax.dynamic_slice_in_dim(x, start, width)
                for x in arrays
            )
            return jax.lax.dynamic_update_slice_in_dim(result, at_once(*chunk), start, axis=0)

        result = jnp.zeros(jax.eval_shape(at_once, *arrays).shape, arrays[0].dtype)
        return jax.lax.fori_loop(0, -(-rows // width), one_chunk, result)

    def _in_jax_on_cpu(self, *arrays: jax.Array) -> jax.Array:
        """Chunk by chunk, with the formula that suits each chunk, or all if it is brief."""
        import jax

        if not self.is_brief or arrays[2] is not None:
            return self._in_jax_by_chunks(self._by_the_chunk(self.formula), XLA_CPU_CHUNK, *arrays)
        branches = (
            functools.partial(self._in_jax_by_chunks, formula, XLA_CPU_CHUNK)
            for formula in (_of_ordinary_rows(self.formula), self.formula)
        )
        q, parameter = cast(Any, arrays[:2])
        return jax.lax.cond(are_ordinary(_jax_numpy(), q.T, parameter.T), *branches, *arrays)

    def _tangent_in_jax(
        self, primals: Sequence[jax.Array], result: jax.Array, tangents: Sequence[jax.Array]
    ) -> jax.Array:
        """The tangent of the result, by the closed forms."""
        import jax
        import jax.numpy as jnp

        total = jnp.zeros_like(result)
        for derivative, tangent in zip(self.derivatives, tangents, strict=False):
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero | None):
                part = derivative._jax(*primals, result) * tangent
                total = total + jnp.sum(part, axis=1, keepdims=True)
        return total

    @functools.cached_property
    def _torch(self) -> type[torch.autograd.Function]:
        """An autograd function with the closed forms for both directions."""
        import array_api_compat.torch as xp
        import torch

        rule = self

        class Function(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(*arrays: torch.Tensor) -> torch.Tensor:
                fixed = in_fixed_steps(cast(Namespace, xp), cast(Any, arrays[0]))
                formula = rule.without_waiting if fixed else rule.formula
                return rule._all_rows_at_once(formula, xp, *arrays)

            @staticmethod
            def setup_context(
                ctx: torch.autograd.function.FunctionCtx,
                inputs: Sequence[torch.Tensor],
                output: torch.Tensor,
            ) -> None:
                ctx.save_for_backward(*inputs, output)
                ctx.save_for_forward(*inputs, output)

            @staticmethod
            def backward(
                ctx: torch.autograd.function.FunctionCtx, cotangent: torch.Tensor
            ) -> tuple[torch.Tensor | None, ...]:
                return tuple(
                    (cotangent * rule.derivatives[i](xp, *ctx.saved_tensors)).sum_to_size(x.shape)
                    if is_wanted
                    else None
                    for i, (x, is_wanted) in enumerate(
                        zip(ctx.saved_tensors[:3], ctx.needs_input_grad, strict=True)
                    )
                )

            @staticmethod
            def jvp(
                ctx: torch.autograd.function.FunctionCtx, *tangents: torch.Tensor | None
            ) -> torch.Tensor:
                total = torch.zeros_like(ctx.saved_tensors[-1])
                for derivative, tangent in zip(rule.derivatives, tangents, strict=False):
                    if tangent is not None:
                        part = derivative(xp, *ctx.saved_tensors) * tangent
                        total = total + part.sum(1, keepdim=True)
                return total

            @staticmethod
            def vmap(
                info: torch.autograd.function.VmapInfo,
                in_dims: Sequence[int | None],
                *arrays: torch.Tensor,
            ) -> tuple[torch.Tensor, int]:
                """A batch is more rows."""
                batched: list[torch.Tensor] = [
                    x if x is None else x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
                    for x, dim in zip(arrays, in_dims, strict=True)
                ]
                rows = (info.batch_size, batched[0].shape[1])
                flat = [x if x is None else x.expand(*rows, -1).flatten(0, 1) for x in batched]
                return Function.apply(*flat).unflatten(0, rows), 0

        return Function


def _jax_numpy() -> Namespace:
    import jax.numpy as jnp

    return cast(Namespace, jnp)


def _as_more_rows(
    batch: int, rows: int, batched: Sequence[bool], arrays: Sequence[jax.Array]
) -> list[jax.Array]:
    """The arrays of a batch as those of `batch * rows` rows."""
    import jax.numpy as jnp

    flat = []
    for i, (x, is_batched) in enumerate(zip(arrays, batched, strict=True)):
        if x is None or (i and x.shape[0] == 1 and not is_batched):
            flat.append(x)
        else:
            x = jnp.broadcast_to(x, (batch, rows, x.shape[-1]))
            flat.append(x.reshape(-1, x.shape[-1]))
    return flat


def _of_ordinary_rows(formula: Formula) -> Formula:
    """The formula for rows that are known to be ordinary."""

    def quick(xp: Namespace, *columns: Array | None) -> Array:
        return formula(knowing(xp, **{ORDINARY: True}), *columns)

    return quick


def _columns(x: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    """Rows as columns, next to each other in memory."""
    return None if x is None else np.ascontiguousarray(x.T)


def _is_prior(counted: Array | None) -> bool:
    """Is what counts given by weights, and not by a mask?"""
    return counted is not None and not str(counted.dtype).endswith("bool")


def _is_for_all_rows(x: Array | None) -> bool:
    """Not one a row, but one that all rows share (or nothing)."""
    return x is None or x.shape[0] == 1
