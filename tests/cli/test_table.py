"""Tables on narrow terminals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mellowmax.cli.table import Table, column

NUMBERS = st.floats().map(lambda number: f"{number:.5g}")


@given(
    cells=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=9),
    width=st.none() | st.integers(20, 120),
)
def test_every_number_is_in_its_row_and_no_line_is_too_wide(cells, width):
    columns = [column(str(i), one, 9) for i, one in enumerate(cells)]
    index = ["state", *(f"{state:5d}" for state in range(3))]
    title, *lines = Table("policy", index, columns).lines(width)
    assert title.strip() == "policy"
    pieces = "\n".join(lines).split("\n\n")
    rows = [[] for _ in index]
    for piece in pieces:
        for row, line in zip(rows, piece.split("\n"), strict=True):
            assert width is None or len(line) <= width
            row.extend(line.split()[1:])
    assert rows == [
        list(row) for row in zip(*([str(i), *c] for i, c in enumerate(cells)), strict=True)
    ]
    assert width is not None or len(pieces) == 1
