"""Rows made to be awkward, for tests against exact arithmetic.

Two generators: strategies for hypothesis, which shrinks what it finds, and a batch of mixed rows.
"""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

sizes = st.floats(-12, 6).map(lambda x: 10.0**x)
signs = st.sampled_from([-1.0, 1.0])
values = st.one_of(
    st.floats(-10, 10),
    st.builds(lambda size, sign: size * sign, sizes, signs),
    st.floats(-1e300, 1e300, allow_subnormal=False),
    st.sampled_from([0.0, 1.0, 1.0 + 2**-52, 1e6, 1e6 + 1e-6, -1e300, 1e300]),
)
gaps = st.lists(st.one_of(st.just(0.0), sizes), min_size=0, max_size=7)
rows = st.one_of(
    st.lists(values, min_size=1, max_size=8),
    st.builds(lambda top, gaps: [top, *(top - g for g in gaps)], st.floats(-1e6, 1e6), gaps),
    st.builds(lambda value, n: [value] * n, values, st.integers(1, 8)),
)
parameters = st.one_of(
    st.builds(lambda x, sign: sign * 10.0**x, st.floats(-8, 8), signs),
    st.sampled_from([0.0, np.inf, -np.inf, 1e-8, -1e8]),
)
many = settings(max_examples=400, deadline=None, derandomize=True)


def awkward_rows(rng, n, count, largest):
    """Ties, near ties, gaps over 18 decades, offsets, huge and tiny values; and parameters."""
    size = 10.0 ** rng.uniform(-12, 6, size=(count, 1))
    kinds = [
        rng.normal(size=(count, n)),
        10.0 ** rng.uniform(-12, 6, size=(count, n)) * rng.choice([-1, 1], size=(count, n)),
        rng.integers(0, 3, size=(count, n)) * size,
        1e6 * rng.normal(size=(count, 1)) + size * rng.normal(size=(count, n)),
        rng.normal(size=(count, n)) * 10.0 ** rng.uniform(-largest, largest, size=(count, 1)),
        -np.cumsum(10.0 ** rng.uniform(-12, 6, size=(count, n)), axis=1),
        np.where(np.arange(n) == 0, 0, -size * (1 + 1e-15 * rng.integers(0, 4, size=(count, n)))),
    ]
    q = np.concatenate(kinds)
    omega = 10.0 ** rng.uniform(-8, 8, size=len(q)) * rng.choice([-1, 1], size=len(q))
    special = rng.random(len(q)) < 0.05
    omega[special] = rng.choice([0.0, np.inf, -np.inf], size=int(special.sum()))
    return q, omega
