"""LU factorisations that can be mapped over thousands of matrices, on a CPU too.

There jaxlib (0.10 and 0.11) splits the matrices of one call among the threads that run the program,
and waits for them in such a thread. Calls that do not depend on each other do so together, and all
threads wait for ever: two calls are enough on two cores. So on a CPU mapped matrices are taken one
after another here, which is no slower. Elsewhere they are one batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

__all__ = ["Factors", "factorise", "solution"]

Factors = tuple[jax.Array, jax.Array]
"""The factors of a matrix, as `jax.scipy.linalg.lu_factor` gives them."""


def factorise(matrix: jax.Array) -> Factors:
    """The factors of a matrix `[S, S]`."""
    result: Factors = _factorise(matrix)
    return result


def solution(factors: Factors, b: jax.Array, transposed: bool = False) -> jax.Array:
    """The solution of a system, of right sides `[S]` or `[S, N]`; by the transposed matrix?"""
    result: jax.Array = (_solve_transposed if transposed else _solve)(factors, b)
    return result


@custom_vmap
def _factorise(matrix: jax.Array) -> Factors:
    return jax.scipy.linalg.lu_factor(matrix)


@_factorise.def_vmap
def _factorise_all(size: int, mapped: Any, matrices: jax.Array) -> tuple[Factors, Any]:
    result = _one_after_another(_factorise, jax.scipy.linalg.lu_factor, (matrices,))
    return result, (True, True)


def _solver(trans: int) -> Callable[[Factors, jax.Array], jax.Array]:

    def plain(factors: Factors, b: jax.Array) -> jax.Array:
        return jax.scipy.linalg.lu_solve(factors, b, trans)

    solve = custom_vmap(plain)

    @solve.def_vmap
    def _(size: int, mapped: Any, factors: Factors, b: jax.Array) -> tuple[jax.Array, bool]:
        of_factors, of_b = mapped
        if not any(of_factors):  # many right sides of one system
            columns = jnp.moveaxis(b, 0, -1)
            x = solve(factors, columns.reshape(len(columns), -1))
            return jnp.moveaxis(x.reshape(columns.shape), -1, 0), True
        if not of_b:
            b = jnp.broadcast_to(b, (size, *b.shape))
        return _one_after_another(solve, plain, (factors, b)), True

    return solve


_solve, _solve_transposed = _solver(0), _solver(1)


def _one_after_another(
    function: Callable[..., Any], of_one: Callable[..., Any], arguments: Any
) -> Any:
    """Map a function over all arguments; `of_one` is the same without a rule for mapping."""
    return jax.lax.platform_dependent(
        arguments,
        cpu=lambda each: jax.lax.map(lambda one: function(*one), each),
        default=lambda each: jax.vmap(of_one)(*each),
    )
