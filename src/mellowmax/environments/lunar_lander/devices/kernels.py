"""Functions of landers and of bodies as kernels for a GPU.

Numbers are the rows of an array, `[rows, landers]`: all that a lander has lies in one column, truth
values and integers as numbers too. A `Row` stands for a row of an array; trees of them are what a
kernel's function is given in its place, so that between two kernels nothing is computed or copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ..arrays.legs import side_by_side
from ..arrays.vectors import Array

__all__ = ["Kernels", "Row", "Source", "chosen", "pack", "rows_of", "unpack"]

MANY = 65536
"""With more landers than these, a GPU is short of threads."""
CHOSEN_BLOCK = 256
"""How many landers a program looks at in `chosen`."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """An array of rows."""

    array: Array
    compact: bool = False
    """Has it a column for each lander that is chosen, rather than for each that there is?"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of an array."""

    source: Source
    number: int
    kind: Any
    """What its numbers stand for."""


def pack(tree: Any) -> Array:
    """The leaves of a tree, `[n]` each, as the rows of one array."""
    return jnp.stack([leaf.astype(jnp.float32) for leaf in jax.tree.leaves(tree)])


def unpack(rows: Array, like: T) -> T:
    """The tree that `pack` was given, by one whose leaves are the kinds of its leaves."""
    kinds, structure = jax.tree.flatten(like)
    tree: T = jax.tree.unflatten(
        structure, [_as(rows[i], jnp.dtype(kind)) for i, kind in enumerate(kinds)]
    )
    return tree


def rows_of(source: Source, like: T) -> T:
    """What stands for the rows of an array in a kernel's arguments."""
    kinds, structure = jax.tree.flatten(like)
    rows = [Row(source, i, jnp.dtype(kind)) for i, kind in enumerate(kinds)]
    tree: T = jax.tree.unflatten(structure, rows)
    return tree


def _as(row: Array, kind: Any) -> Array:
    return row != 0.0 if kind == jnp.bool_ else row.astype(kind)


def chosen(first: Array, last: Array, *, interpret: bool = False) -> tuple[Array, Array]:
    """The numbers of the landers of two masks, those of one first and those of the other last.

    Which of the same mask comes before which hangs on which program is quicker. No lander sees it.

    Args:
        first: a mask as numbers, `[n]`.
        last: likewise; none is in both.
        interpret: run it without a GPU, slowly, as a test does?

    Returns:
        The numbers, at least `[n]`, and how many there are of each, `[2]`.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    n = first.shape[0]
    block = min(CHOSEN_BLOCK, 1 << (n - 1).bit_length())

    def kernel(*references: Any) -> None:
        *masks, _, _, order, count = references
        within = jnp.arange(block, dtype=jnp.int32)
        number = pl.program_id(0) * block + within
        for i, mask in enumerate(masks):
            here = (mask[jnp.minimum(number, n - 1)] != 0.0) & (number < n)
            up_to = jnp.cumsum(here.astype(jnp.int32))
            begin = triton.atomic_add(count, (jnp.int32(i),), jnp.max(up_to))
            place = begin + up_to - 1
            place = place if i == 0 else n - 1 - place
            place = jnp.where(here, place, n + within)  # nobody's
            triton.store(order.at[place], number, mask=here)

    shapes = [jax.ShapeDtypeStruct((size,), jnp.int32) for size in (n + block, 2)]
    order, count = pl.pallas_call(
        kernel,
        grid=(-(-n // block),),
        out_shape=shapes,
        input_output_aliases={2: 0, 3: 1},
        compiler_params=triton.CompilerParams(num_warps=max(1, block // 32), num_stages=1),
        interpret=interpret,
        name="lunar_lander_chosen",
    )(first, last, *(jnp.zeros(shape.shape, shape.dtype) for shape in shapes))
    if interpret:  # where a masked store writes what was there: each lane needs its own lander
        place = jnp.arange(n, dtype=jnp.int32)
        (others,) = jnp.nonzero((first == 0.0) & (last == 0.0), size=n)
        others = others.astype(jnp.int32)[jnp.maximum(place - count[0], 0)]
        order = jnp.where((place >= count[0]) & (place < n - count[1]), others, order[:n])
    return order, count


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Calls functions as kernels, with a program for each block of landers or bodies."""

    columns: int
    """How many landers there are, whole blocks."""
    block: int
    warps: int
    """How many groups of 32 threads run a program."""
    interpret: bool
    order: Array | None = None
    """The numbers of the landers that are chosen, `[columns]`, some of them first and the others
    last; None for all."""
    count: Array | None = None
    """How many are first and how many are last, `[2]`. A program that would have none of them does
    nothing."""
    over: Row | None = None
    """The row that says whose episode is over: whoever is not chosen counts as such."""
    targets: Any = None
    """The rows to which the last of the functions writes its results, or None for what it leaves
    as it was."""

    def landers(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives for a row of landers."""
        # A lander has two threads, one for each of its legs, where there are threads enough.
        block = self.block if self.columns > MANY else max(1, self.block // 2)
        result: T = dataclasses.replace(self, block=block).call(function, [arguments])
        return result

    def bodies(self, function: Callable[..., T], three: Any, *shared: Any) -> tuple[T, T, T]:
        """What a function gives for a row of bodies: for hulls, right legs and left legs."""
        result: tuple[T, T, T] = self.call(function, [(body, *shared) for body in three])
        return result

    def finish(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives for a row of landers, written to where `targets` says."""
        result: T = self.call(function, [arguments], self.targets)
        return result

    def call(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        targets: Any = None,
        only: Row | None = None,
    ) -> Any:
        """What a function gives.

        Args:
            function: for bodies, it is told first which of them are hulls.
            arguments: of each of the three bodies, or of the one lander.
            targets: the rows that the results are written to, in place, where not None; None for
                rows of a new array.
            only: the row that says where results are written at all; None for everywhere.

        Returns:
            The rows that were written.
        """
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import triton

        parts = len(arguments)
        flat = [jax.tree.flatten(each)[0] for each in arguments]
        structure = jax.tree.structure(arguments[0])
        like = [jax.ShapeDtypeStruct((self.block,), row.kind) for row in flat[0]]

        def whole(is_hull: Array | None, values: Sequence[Any]) -> Any:
            given = jax.tree.unflatten(structure, values)
            with side_by_side():
                return function(*given) if is_hull is None else function(is_hull, *given)

        is_hull = jax.ShapeDtypeStruct((self.block,), jnp.bool_) if parts > 1 else None
        shapes, result_structure = jax.tree.flatten(jax.eval_shape(whole, is_hull, like))
        compact = self.order is not None
        if targets is None:
            rows, written = len(shapes), list[Source]()
            out_shape = [jax.ShapeDtypeStruct((parts * rows * self.columns,), jnp.float32)]
            where: list[tuple[int, int] | None] = [(0, i) for i in range(rows)]
        else:
            places = jax.tree.leaves(targets, is_leaf=lambda x: x is None)
            rows, written = 0, list(dict.fromkeys(row.source for row in places if row is not None))
            out_shape = [
                jax.ShapeDtypeStruct((source.array.size,), jnp.float32) for source in written
            ]
            where = [
                None if row is None else (written.index(row.source), row.number) for row in places
            ]
        read_from = [row.source for each in flat for row in each]
        if only is not None:
            read_from.append(only.source)
        sources = list(dict.fromkeys([*read_from, *written]))
        extra = [self.order, self.count] if self.order is not None else []
        inputs = [source.array.reshape(-1) for source in sources] + extra

        def kernel(*references: Any) -> None:
            part, first = pl.program_id(0), pl.program_id(1) * self.block
            if compact:
                count = references[len(inputs) - 1]
                has_any = (first < count[0]) | (first + self.block > self.columns - count[1])
                pl.when(has_any)(lambda: program(part, first, *references))
            else:
                program(part, first, *references)

        def program(part: Array, first: Array, *references: Any) -> None:
            read, write = references[: len(inputs)], references[len(inputs) :]
            lanes = first + jnp.arange(self.block, dtype=jnp.int32)
            columns = read[-2][lanes] if compact else lanes
            inside = None
            if compact:
                inside = (lanes < read[-1][0]) | (lanes >= self.columns - read[-1][1])

            def value(rows: Sequence[Row]) -> Array:
                row = rows[0]
                column = lanes if row.source.compact else columns
                for i, other in enumerate(rows[1:], 1):
                    assert other.source == row.source
                    if other.number != row.number:
                        further = (other.number - row.number) * self.columns
                        column = column + (part == i).astype(jnp.int32) * further
                reference = read[sources.index(row.source)]
                numbers = _as(reference[column + row.number * self.columns], row.kind)
                return numbers | ~inside if row == self.over and inside is not None else numbers

            values = [value(each) for each in zip(*flat, strict=True)]
            hulls = None if parts == 1 else jnp.full((self.block,), part, jnp.int32) == 0
            result = jax.tree.leaves(whole(hulls, values))
            into = columns if targets is not None else lanes
            if parts > 1:
                into = into + part * (rows * self.columns)
            mask = inside if targets is not None else None
            if only is not None:
                mask = value([only])
            for place, leaf in zip(where, result, strict=True):
                if place is not None:
                    target = write[place[0]].at[into + place[1] * self.columns]
                    triton.store(target, leaf.astype(jnp.float32), mask=mask)

        values = pl.pallas_call(
            kernel,
            grid=(parts, self.columns // self.block),
            out_shape=out_shape,
            input_output_aliases={sources.index(source): i for i, source in enumerate(written)},
            compiler_params=triton.CompilerParams(num_warps=self.warps, num_stages=1),
            interpret=self.interpret,
            name=f"lunar_lander_{function.__name__.lstrip('_')}",
        )(*inputs)
        values = [array.reshape(-1, self.columns) for array in values]
        if targets is not None:
            new = {old: Source(array) for old, array in zip(written, values, strict=True)}
            return jax.tree.map(lambda row: Row(new[row.source], row.number, row.kind), targets)
        source = Source(values[0], compact)
        trees = [
            jax.tree.unflatten(
                result_structure,
                [Row(source, part * rows + i, leaf.dtype) for i, leaf in enumerate(shapes)],
            )
            for part in range(parts)
        ]
        return trees[0] if parts == 1 else tuple(trees)
