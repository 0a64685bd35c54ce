"""Functions of landers and of bodies as Pallas kernels for a GPU.

A kernel is given trees of `Row` in place of its function's arguments, and returns trees of `Row`,
so that nothing is computed or copied between two kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from ...._typing import PyTree
from ..arrays.legs import STACKED
from ..arrays.vectors import Array
from .rows import Row, Source, cast

__all__ = ["Kernels"]

MANY_LANDERS = 65536
"""Up to this many landers, each gets two threads in `Kernels.landers`; with more it gets one."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Calls functions as kernels, with a program for each block of landers or bodies."""

    columns: int
    """The number of landers, a multiple of the block."""
    block: int
    warps: int
    """The number of warps, groups of 32 threads, that run a program."""
    interpret: bool
    order: Array | None = None
    """The numbers of the landers that are chosen, in the order of `partition`; None for all."""
    count: Array | None = None
    """How many are first in `order` and how many are last, `[2]`. A program without a chosen lander
    does nothing."""
    over: Row | None = None
    """The row that says whose episode is over; a lander that is not chosen counts as over."""
    targets: object = None
    """The rows to which `finish` writes its results; None for a result that is not written."""

    layout = STACKED

    def landers(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function of a row of landers."""
        # With two threads for a lander, one for each leg, if there are threads enough.
        block = self.block if self.columns > MANY_LANDERS else max(1, self.block // 2)
        return dataclasses.replace(self, block=block).call(function, [arguments])

    def bodies(
        self, function: Callable[..., T], three: Sequence[object], *shared: object
    ) -> tuple[T, T, T]:
        """The results of a function of a row of bodies: for hulls, right legs and left legs."""
        return self.call(function, [(body, *shared) for body in three])

    def finish(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function of a row of landers, written to `targets`."""
        return self.call(function, [arguments], self.targets)

    def call(
        self,
        function: Callable[..., Any],
        arguments: Sequence[object],
        targets: object = None,
        only: Row | None = None,
    ) -> PyTree:
        """The results of a function, computed by one kernel.

        Args:
            function: the function. If it is one of bodies, its first argument is a flag that says
                which of them are hulls.
            arguments: the arguments of each part: of the three bodies, or of the one lander.
            targets: the rows to which the results are written in place, with None for a result that
                is not written. None alone stands for the rows of a new array.
            only: the row that says for whom results are written; None for all.

        Returns:
            The rows that were written.
        """
        plan = _plan(self, function, arguments, targets, only)
        arrays = _run(plan)
        return _written_rows(plan, arrays, targets)


@dataclasses.dataclass(frozen=True)
class _Evaluate:
    """A function of the leaves of its arguments."""

    function: Callable[..., Any]
    structure: jax.tree_util.PyTreeDef
    """The tree of the arguments of one part."""

    def __call__(self, is_hull: Array | None, values: Sequence[object]) -> PyTree:
        given = jax.tree.unflatten(self.structure, values)
        return self.function(*given) if is_hull is None else self.function(is_hull, *given)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """What a kernel reads, computes and writes."""

    kernels: Kernels
    evaluate: _Evaluate
    reads: list[list[Row]]
    """The rows of the arguments, of each part."""
    only: Row | None
    results: list[jax.ShapeDtypeStruct]
    """The shapes and dtypes of the results of a part."""
    result_structure: jax.tree_util.PyTreeDef
    in_place: bool
    """Are the results written to rows that exist? Else a new array has them all."""
    written: list[Source]
    """The arrays that are written in place."""
    places: list[tuple[int, int] | None]
    """The output and the row in it that each result is written to; None if it is not written."""
    sources: list[Source]
    """The arrays that the kernel is given."""

    @property
    def parts(self) -> int:
        """3 for bodies, 1 for landers."""
        return len(self.reads)

    @property
    def compact(self) -> bool:
        """Is the kernel for the landers that are chosen alone?"""
        return self.kernels.order is not None

    @property
    def new_rows(self) -> int:
        """The number of rows of a new array that belong to one part."""
        return 0 if self.in_place else len(self.results)

    @property
    def inputs(self) -> list[Array]:
        """The arrays that the kernel is given, and last the order and the counts of the chosen."""
        order, count = self.kernels.order, self.kernels.count
        extra = [] if order is None or count is None else [order, count]
        return [source.array.reshape(-1) for source in self.sources] + extra

    @property
    def outputs(self) -> list[jax.ShapeDtypeStruct]:
        """The shapes of the arrays that the kernel writes."""
        sizes = [source.array.size for source in self.written]
        if not self.in_place:
            sizes = [self.parts * self.new_rows * self.kernels.columns]
        return [jax.ShapeDtypeStruct((size,), jnp.float32) for size in sizes]

    @property
    def name(self) -> str:
        """The name of the kernel, as a profiler shows it."""
        function = self.evaluate.function
        function = getattr(function, "func", function)  # of a `functools.partial`
        return f"lunar_lander_{function.__name__.lstrip('_')}"


class _Lanes(NamedTuple):
    """The landers or bodies of one program, `[block]`."""

    part: Array
    """For bodies: 0 hulls, 1 right legs, 2 left legs."""
    numbers: Array
    """The numbers of the lanes, which are the columns of compact arrays."""
    columns: Array
    """The numbers of the landers, which are the columns of all other arrays."""
    chosen: Array | None
    """Which lanes have a lander that is chosen; None if all have."""


def _plan(
    kernels: Kernels,
    function: Callable[..., Any],
    arguments: Sequence[object],
    targets: object,
    only: Row | None,
) -> _Plan:
    """Find out which arrays a kernel reads and where its results belong."""
    reads: list[list[Row]] = [jax.tree.leaves(each) for each in arguments]
    evaluate = _Evaluate(function, jax.tree.structure(arguments[0]))
    like = [jax.ShapeDtypeStruct((kernels.block,), row.dtype) for row in reads[0]]
    is_hull = jax.ShapeDtypeStruct((kernels.block,), jnp.bool_) if len(reads) > 1 else None
    results, result_structure = jax.tree.flatten(jax.eval_shape(evaluate, is_hull, like))
    written: list[Source] = []
    places: list[tuple[int, int] | None] = [(0, i) for i in range(len(results))]
    if targets is not None:
        rows = jax.tree.leaves(targets, is_leaf=lambda x: x is None)
        written = list(dict.fromkeys(row.source for row in rows if row is not None))
        places = [None if row is None else (written.index(row.source), row.number) for row in rows]
    read_from = [row.source for each in reads for row in each]
    if only is not None:
        read_from.append(only.source)
    return _Plan(
        kernels,
        evaluate,
        reads,
        only,
        results,
        result_structure,
        targets is not None,
        written,
        places,
        sources=list(dict.fromkeys([*read_from, *written])),
    )


def _run(plan: _Plan) -> list[Array]:
    """Run the kernel: the arrays that it has written, `[rows, columns]`."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    kernels, inputs = plan.kernels, plan.inputs

    def kernel(*references: jax.Ref) -> None:
        part, first = pl.program_id(0), pl.program_id(1) * kernels.block
        read, write = references[: len(inputs)], references[len(inputs) :]
        if plan.compact:
            count = read[-1]
            has_any = (first < count[0]) | (first + kernels.block > kernels.columns - count[1])
            pl.when(has_any)(lambda: _program(plan, part, first, read, write))
        else:
            _program(plan, part, first, read, write)

    arrays = pl.pallas_call(
        kernel,
        grid=(plan.parts, kernels.columns // kernels.block),
        out_shape=plan.outputs,
        input_output_aliases={plan.sources.index(x): i for i, x in enumerate(plan.written)},
        compiler_params=triton.CompilerParams(num_warps=kernels.warps, num_stages=1),
        interpret=kernels.interpret,
        name=plan.name,
    )(*inputs)
    return [array.reshape(-1, kernels.columns) for array in arrays]


def _program(
    plan: _Plan, part: Array, first: Array, read: Sequence[jax.Ref], write: Sequence[jax.Ref]
) -> None:
    """One program of the kernel: read the arguments of a block, compute, store the results.

    Args:
        plan: the plan of the kernel.
        part: for bodies 0, 1 or 2.
        first: the number of the block's first lane.
        read: the references of the inputs.
        write: the references of the outputs.
    """
    kernels = plan.kernels
    numbers = first + jnp.arange(kernels.block, dtype=jnp.int32)
    columns = read[-2][numbers] if plan.compact else numbers
    chosen = None
    if plan.compact:
        chosen = (numbers < read[-1][0]) | (numbers >= kernels.columns - read[-1][1])
    lanes = _Lanes(part, numbers, columns, chosen)
    values = [_read(plan, lanes, rows, read) for rows in zip(*plan.reads, strict=True)]
    is_hull = None if plan.parts == 1 else jnp.full((kernels.block,), part, jnp.int32) == 0
    results = jax.tree.leaves(plan.evaluate(is_hull, values))
    _store(plan, lanes, results, read, write)


def _read(plan: _Plan, lanes: _Lanes, rows: Sequence[Row], read: Sequence[jax.Ref]) -> Array:
    """An argument of a block, from its row for each part."""
    row, kernels = rows[0], plan.kernels
    column = lanes.numbers if row.source.compact else lanes.columns
    for i, other in enumerate(rows[1:], 1):
        assert other.source == row.source
        if other.number != row.number:
            further = (other.number - row.number) * kernels.columns
            column = column + (lanes.part == i).astype(jnp.int32) * further
    reference = read[plan.sources.index(row.source)]
    values = cast(reference[column + row.number * kernels.columns], row.dtype)
    return values | ~lanes.chosen if row == kernels.over and lanes.chosen is not None else values


def _store(
    plan: _Plan,
    lanes: _Lanes,
    results: Sequence[Array],
    read: Sequence[jax.Ref],
    write: Sequence[jax.Ref],
) -> None:
    """Store the results of a block."""
    from jax.experimental.pallas import triton

    columns = plan.kernels.columns
    into = lanes.columns if plan.in_place else lanes.numbers
    if plan.parts > 1:
        into = into + lanes.part * (plan.new_rows * columns)
    mask = lanes.chosen if plan.in_place else None
    if plan.only is not None:
        mask = _read(plan, lanes, [plan.only], read)
    for place, result in zip(plan.places, results, strict=True):
        if place is not None:
            output, row = place
            target = write[output].at[into + row * columns]
            triton.store(target, result.astype(jnp.float32), mask=mask)


def _written_rows(plan: _Plan, arrays: Sequence[Array], targets: object) -> PyTree:
    """The rows that a kernel has written, as the trees of its results."""
    if plan.in_place:
        new = {old: Source(array) for old, array in zip(plan.written, arrays, strict=True)}
        return jax.tree.map(lambda row: Row(new[row.source], row.number, row.dtype), targets)
    source = Source(arrays[0], plan.compact)
    trees = [
        jax.tree.unflatten(
            plan.result_structure,
            [
                Row(source, part * plan.new_rows + i, result.dtype)
                for i, result in enumerate(plan.results)
            ],
        )
        for part in range(plan.parts)
    ]
    return trees[0] if plan.parts == 1 else tuple(trees)
