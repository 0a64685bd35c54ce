"""Systems whose matrices and right sides JAX maps."""

from __future__ import annotations

import re

import jax
import numpy as np

from mellowmax.planning.factors import factorise, solution

RNG = np.random.default_rng(0)
MATRICES = 3 * np.eye(4) + RNG.uniform(-1, 1, (2, 3, 4, 4))
SIDES = RNG.normal(size=(2, 3, 4))


def both(matrix, b):
    factors = factorise(matrix)
    return solution(factors, b), solution(factors, b, transposed=True)


def test_what_is_mapped_is_solved():
    """Matrices alone, right sides alone, both, and either within the other."""
    every = {
        "matrices": (both, (0, None)),
        "sides": (both, (None, 0)),
        "sides of each": (jax.vmap(both, (None, 0)), (0, 0)),
        "both, twice": (jax.vmap(both), (0, 0)),
    }
    shapes = {
        "matrices": (MATRICES[0], SIDES[0, 0]),
        "sides": (MATRICES[0, 0], SIDES[0]),
        "sides of each": (MATRICES[0, :2], SIDES),
        "both, twice": (MATRICES, SIDES),
    }
    with jax.enable_x64(True):
        found = jax.jit(
            lambda given: {
                name: jax.vmap(function, axes)(*given[name])
                for name, (function, axes) in every.items()
            }
        )(shapes)
    for name, (matrices, b) in shapes.items():
        matrices = matrices[:, None] if name == "sides of each" else matrices
        for x, m in zip(found[name], (matrices, np.swapaxes(matrices, -1, -2)), strict=True):
            expected = np.linalg.solve(m, b[..., None])[..., 0]
            np.testing.assert_allclose(x, expected, rtol=1e-12)


def test_a_cpu_takes_one_after_another_and_a_gpu_all_at_once():
    """Two batches that do not wait for each other would wait for the threads of a CPU for ever."""
    with jax.enable_x64(True):
        program = jax.jit(jax.vmap(jax.vmap(both))).trace(MATRICES, SIDES)
        for platform, dimensions in (("cpu", "0"), ("cuda", "2")):
            text = program.lower(lowering_platforms=(platform,)).as_text()
            assert set(re.findall(r'num_batch_dims = "(\d)"', text)) == {dimensions}
