"""The two layouts of both legs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax.environments.lunar_lander.arrays.legs import PAIR, STACKED

COUNT = 16


def test_both_legs_in_one_array_are_the_same_as_a_pair():
    numbers = np.linspace(-3, 3, 2 * COUNT, dtype=np.float32).reshape(2, COUNT)
    legs = [(jnp.asarray(x), jnp.asarray(x > 1)) for x in numbers]

    def run(layout):
        both = layout.map(lambda x: (x[0] * x[0] - 1, ~x[1]), layout.join(*legs))
        return layout.split(both)

    pair, same = run(PAIR), run(STACKED)
    for a, b in zip(jax.tree.leaves(pair), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(a, b)
