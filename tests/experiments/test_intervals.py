"""Corrected p values, and the difference that an experiment can show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mellowmax.experiments.intervals import difference, holm


def test_holm_s_correction():
    """Worked by hand: 4 x .005, 3 x .01, then 2 x .03, which .04 may not fall below."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.4, 0.7, 0.9]), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(holm([0.03]), [0.03])


@pytest.mark.parametrize("tests", [1, 6])
def test_the_detectable_difference_is_found_in_80_experiments_of_100(tests):
    """4000 experiments: the share has a standard error of 0.6 %, and the scatter is estimated."""
    rng = np.random.default_rng(tests)
    one, other = rng.normal(size=(2, 4000, 20)) * [[[1.0]], [[2.0]]]
    true = difference(
        pd.Series(stats.norm.ppf((np.arange(20) + 0.5) / 20)),
        pd.Series(2 * stats.norm.ppf((np.arange(20) + 0.5) / 20)),
        tests,
    )["detectable"]
    p = stats.ttest_ind(one + true, other, axis=1, equal_var=False).pvalue
    assert (p < 0.05 / tests).mean() == pytest.approx(0.8, abs=0.04)
