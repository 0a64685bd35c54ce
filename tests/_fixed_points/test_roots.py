"""Every root of a function of one variable."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax._fixed_points.roots import all_roots


@pytest.mark.parametrize("degree", [1, 2, 7, 20])
def test_all_roots_of_a_chebyshev_polynomial(degree):
    polynomial = np.polynomial.Chebyshev.basis(degree)
    bound = degree**2 * (degree**2 - 1) / 3  # of its second derivative, at the ends
    found, doubtful = all_roots(
        lambda x: (polynomial(x), polynomial.deriv()(x)), -1.0, 1.0, bound, (1e-14, 1e-12)
    )
    exact = np.cos((np.arange(degree) + 0.5) * np.pi / degree)[::-1]
    once = found[
        np.append(True, np.diff(found) > 1e-12)
    ]  # one between two intervals is listed twice
    np.testing.assert_allclose(once, exact, atol=1e-13)
    assert len(doubtful) == 0


def test_a_double_root_is_left_in_doubt_and_a_miss_is_excluded():
    for shift, in_doubt in ((0.0, True), (1e-10, False)):
        found, doubtful = all_roots(
            lambda x, c=shift: ((x - 0.3) ** 2 + c, 2 * (x - 0.3)), 0.0, 1.0, 2.0, (1e-14, 1e-14)
        )
        assert (len(doubtful) > 0) == in_doubt
        assert in_doubt or len(found) == 0
        np.testing.assert_allclose(np.append(found, doubtful), 0.3, atol=1e-6)
