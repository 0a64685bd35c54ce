"""The numbering of runs: grids of settings, and keys that depend on nothing else."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mellowmax._common.runs import (
    evaluation_keys,
    gather_settings,
    key_data,
    run_keys,
    run_numbers,
    setting_of_each_run,
    settings_shape,
)


def test_the_runs_of_a_setting_stand_side_by_side():
    settings = settings_shape([(3, 1), (), (2,)])
    assert settings == (3, 2)
    setting = setting_of_each_run(settings, 4)
    assert setting.tolist() == np.repeat(range(6), 4).tolist()
    rates = gather_settings([[1.0], [2.0], [3.0]], settings, setting)
    assert rates.dtype == np.float32
    assert (
        rates.reshape(3, 2, 4).tolist()
        == np.broadcast_to([[[1]], [[2]], [[3]]], (3, 2, 4)).tolist()
    )
    tables = np.arange(2 * 5 * 7).reshape(2, 5, 7)
    gathered = gather_settings(tables, settings, setting, inner=2)
    np.testing.assert_array_equal(gathered.reshape(3, 2, 4, 5, 7)[2, 1, 3], tables[1])


def test_a_key_depends_on_the_seed_and_the_number_alone():
    two = jax.random.split(jax.random.key(9), 2)
    data = key_data(two, (3, 2))
    assert data.shape == (6, 2)
    np.testing.assert_array_equal(key_data(9, ()), key_data(jax.random.key(9), ()))
    one = jax.random.fold_in(two[1], 5)
    assert run_keys(data[[3]], np.uint32([5]))[0] == one
    few, many = evaluation_keys(9, 2, 1), evaluation_keys(9, 0, 4)
    assert few[0] == many[2]
    assert len(np.unique(jax.random.key_data(many), axis=0)) == 4


def test_runs_are_a_count_or_numbers():
    assert run_numbers(3).tolist() == [0, 1, 2]
    assert run_numbers(range(5, 7)).tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"`runs` must have a number, got \[\]"):
        run_numbers([])


def test_a_seed_is_a_number_or_keys_that_fit():
    with pytest.raises(TypeError, match=r"^`seed` must be a whole number or JAX's threefry"):
        key_data(jax.numpy.zeros(2), ())
    with pytest.raises(ValueError, match=r"to the \(3,\) settings, got keys of shape \(2,\)"):
        key_data(jax.random.split(jax.random.key(0), 2), (3,))
