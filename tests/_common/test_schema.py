"""What a schema lets through."""

from __future__ import annotations

import pytest

from mellowmax._common.schema import Field, json_object

SECONDS = {"seconds": Field("number", least=0)}


@pytest.mark.parametrize("number", ["0", "7", "1.5", "1e308"])
def test_a_number_of_at_least_0(number):
    assert json_object("cell", f'{{"seconds": {number}}}', SECONDS) == {"seconds": float(number)}


@pytest.mark.parametrize(
    ("number", "got"),
    [("-1", "-1"), ("1e999", "inf"), ("Infinity", "inf"), ("NaN", "nan"), ('"1"', "'1'")],
)
def test_what_is_no_number_of_at_least_0(number, got):
    with pytest.raises(ValueError, match=f"must be a number of at least 0, got {got}$"):
        json_object("cell", f'{{"seconds": {number}}}', SECONDS)
