"""The multi-passenger taxi of section 7.2: a grid with passengers to fetch on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from .._common import checks
from .._typing import Floats, Integers
from .model import MDP

__all__ = ["GRID", "TaxiGrid", "multi_passenger_taxi"]

GRID = (
    "S#F.#.D",
    ".#..#..",
    ".......",
    "##...##",
    "......F",
    "F.....#",
)
"""Figure 8: start, passengers, destination, walls and free cells."""

MOVES = ((-1, 0), (1, 0), (0, 1), (0, -1))
"""North, south, east and west as (rows, columns)."""
TOWARDS = ((0, 2, 3), (1, 2, 3), (2, 0, 1), (3, 0, 1))
"""For each action the intended move, and the two at a right angle to it."""
MOST_PASSENGERS = 16


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TaxiGrid:
    """Where things are in a grid, and which number a state has.

    Cells that are no walls are numbered row by row, and so are the passengers. The state
    `cell * 2**n_passengers + bits` has the taxi in `cell`; bit `i` says that passenger `i` has been
    picked up.

    Attributes:
        rows: the grid as text.
        cells: `[n, 2]`, the row and the column of each cell.
        start: the cell of S.
        destination: the cell of D.
        passengers: the cell of each F.

    Examples:
        >>> grid = TaxiGrid.parse("SF / #D")
        >>> grid
        TaxiGrid(rows=('SF', '#D'), cells=3, passengers=1, states=6)
        >>> grid.state(grid.destination, picked=[0]), grid.decode(5)
        (5, (2, (0,)))
    """

    rows: tuple[str, ...]
    cells: Integers
    start: int
    destination: int
    passengers: tuple[int, ...]

    @classmethod
    def parse(cls, grid: Sequence[str] | str) -> Self:
        """A grid from rows of text, or from one text with the rows on lines or between slashes.

        Args:
            grid: made of S (start), D (destination), F (passenger), # (wall) and . (free).

        Raises:
            ValueError: for a grid that is none; it says what is wrong, and where, in rows and
                columns from 0.
        """
        rows = _rows(grid)
        cells = np.array(
            [(i, j) for i, row in enumerate(rows) for j, mark in enumerate(row) if mark != "#"],
            np.int32,
        ).reshape(-1, 2)
        marks = [rows[i][j] for i, j in cells]
        start, destination = (_only(mark, marks, cells) for mark in "SD")
        passengers = tuple(cell for cell, mark in enumerate(marks) if mark == "F")
        if len(passengers) > MOST_PASSENGERS:
            rule = f"`grid` must have at most {MOST_PASSENGERS} passengers"
            raise ValueError(f"{rule}, got {len(passengers)}")
        cells.flags.writeable = False
        result = cls(rows, cells, start, destination, passengers)
        result._check_that_all_can_be_reached()
        return result

    @property
    def n_cells(self) -> int:
        """How many cells are no walls."""
        return len(self.cells)

    @property
    def n_passengers(self) -> int:
        """How many passengers there are."""
        return len(self.passengers)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.n_cells << self.n_passengers

    @property
    def start_state(self) -> int:
        """The state in which an episode starts: in S, with nobody picked up."""
        return self.state(self.start)

    def state(self, cell: int, picked: Iterable[int] = ()) -> int:
        """The number of a state.

        Args:
            cell: where the taxi is.
            picked: the passengers that have been picked up.
        """
        bits = 0
        for passenger in picked:
            bits |= 1 << checks.whole("picked", passenger, 0, self.n_passengers - 1)
        return (checks.whole("cell", cell, 0, self.n_cells - 1) << self.n_passengers) + bits

    def decode(self, state: int) -> tuple[int, tuple[int, ...]]:
        """The cell of the taxi in a state, and the passengers that have been picked up."""
        state = checks.whole("state", state, 0, self.n_states - 1)
        cell, bits = state >> self.n_passengers, state & ((1 << self.n_passengers) - 1)
        return cell, tuple(i for i in range(self.n_passengers) if bits >> i & 1)

    def __repr__(self) -> str:
        sizes = f"cells={self.n_cells}, passengers={self.n_passengers}, states={self.n_states}"
        return f"TaxiGrid(rows={self.rows}, {sizes})"

    def moves(self) -> Integers:
        """`[n, 4]`, the cell that each move leads to: north, south, east and west."""
        shape = (len(self.rows) + 2, len(self.rows[0]) + 2)
        numbers = np.full(shape, -1, np.int32)  # with a rim of walls
        row, column = self.cells.T + 1
        own = np.arange(self.n_cells, dtype=np.int32)
        numbers[row, column] = own
        leads = np.stack([numbers[row + i, column + j] for i, j in MOVES], axis=1)
        return np.where(leads < 0, own[:, None], leads)

    def _check_that_all_can_be_reached(self) -> None:
        """From S to D and to every F; no way leads through D, where the episode ends."""
        moves = self.moves()
        reached, new = {self.start}, [self.start]
        while new:
            ahead = {int(cell) for known in new for cell in moves[known]} - reached
            reached |= ahead
            new = [cell for cell in ahead if cell != self.destination]
        for cell in (self.destination, *self.passengers):
            if cell not in reached:
                row, column = self.cells[cell]
                rule = "`grid` must have a way from S to D and to each F"
                place = f"row {row}, column {column}"
                raise ValueError(f"{rule}, got none to {self.rows[row][column]!r} in {place}")


def multi_passenger_taxi(
    grid: Sequence[str] | str = GRID,
    *,
    slip: float = 0.1,
    rewards: Sequence[float] = (0.0, 1.0, 3.0, 15.0),
    discount: float = 0.99,
) -> MDP:
    """The taxi of section 7.2: fetch passengers and bring them to the destination.

    The actions 0 to 3 go north, south, east and west. A move goes where it should with probability
    `1 - slip`, and otherwise to one of the two directions at a right angle, equally probable; one
    into a wall or off the grid stays. A passenger is picked up when the taxi is in its cell after a
    move, by a slip as well. Entering the destination ends the episode and pays by the number of
    passengers on board; nothing else pays.

    `TaxiGrid.parse(grid)` says which number a state has. Figure 8 has 33 cells and 3 passengers,
    so 264 states; those with the taxi in D are terminal.

    Args:
        grid: rows of S (start), D (destination), F (passenger), # (wall) and . (free); the default
            is that of figure 8.
        slip: the probability that a move goes to a side, in [0, 1].
        rewards: what 0, 1, 2 and so on passengers are worth; one entry more than passengers.
        discount: in [0, 1].

    Raises:
        ValueError: for an argument that is not as above; of a grid it says where.

    Examples:
        >>> multi_passenger_taxi()
        MDP(states=264, actions=4, branches=3, discount=0.99, terminal=8)
        >>> multi_passenger_taxi(["S.F", "#.D"], rewards=[0, 1], slip=0)
        MDP(states=10, actions=4, branches=1, discount=0.99, terminal=2)
        >>> multi_passenger_taxi(["S.F", "#.x"])
        Traceback (most recent call last):
        ...
        ValueError: `grid` must be made of 'S', 'D', 'F', '#' and '.', got 'x' in row 1, column 2

    References:
        Dearden, Friedman and Russell, "Bayesian Q-learning" (1998), has this maze and the slips.
    """
    taxi = TaxiGrid.parse(grid)
    slip = checks.real("slip", slip, 0, 1)
    pays = _pays(rewards, taxi.n_passengers)
    leads, probabilities = _branches(taxi.moves(), slip)

    n_sets = 1 << taxi.n_passengers
    sets = np.arange(n_sets, dtype=np.int32)
    waits = np.zeros(taxi.n_cells, np.int32)  # the bit of who waits in a cell
    waits[list(taxi.passengers)] = 1 << np.arange(taxi.n_passengers, dtype=np.int32)
    leads = leads[:, None]  # [cells, sets, actions, branches] from here on
    successors = leads * n_sets + (sets[:, None, None] | waits[leads])
    on_board = np.bitwise_count(sets)
    earned = np.where(leads == taxi.destination, pays[on_board][:, None, None], 0.0)
    shape = (taxi.n_states, *leads.shape[2:])
    return MDP(
        successors.reshape(shape),
        np.broadcast_to(probabilities[:, None], successors.shape).reshape(shape),
        earned.reshape(shape),
        discount,
        terminal=np.repeat(np.arange(taxi.n_cells) == taxi.destination, n_sets),
    )


def _rows(grid: Sequence[str] | str) -> tuple[str, ...]:
    """The rows of the grid, all of one length and made of the five characters."""
    if isinstance(grid, str):
        grid = [row.strip() for row in grid.strip().replace("/", "\n").splitlines()]
    try:
        rows = tuple(grid)
    except TypeError:
        rows = ()
    if not rows or not all(isinstance(row, str) for row in rows):
        raise TypeError(f"`grid` must be rows of text, got {grid!r}")
    for i, row in enumerate(rows):
        wrong = row.strip("SDF#.")
        if wrong:
            place = f"row {i}, column {row.index(wrong[0])}"
            rule = "`grid` must be made of 'S', 'D', 'F', '#' and '.'"
            raise ValueError(f"{rule}, got {wrong[0]!r} in {place}")
        if len(row) != len(rows[0]):
            rule = f"`grid` must be rows of one length, that of row 0, {len(rows[0])}"
            raise ValueError(f"{rule}, got {len(row)} in row {i}")
    return rows


def _only(mark: str, marks: list[str], cells: Integers) -> int:
    """The one cell with a mark."""
    if mark not in marks:
        raise ValueError(f"`grid` must have one {mark!r}, got none")
    first = marks.index(mark)
    if mark in marks[first + 1 :]:
        row, column = cells[marks.index(mark, first + 1)]
        rule = f"`grid` must have one {mark!r}"
        raise ValueError(f"{rule}, got a second one in row {row}, column {column}")
    return first


def _pays(rewards: Sequence[float], n_passengers: int) -> Floats:
    """The reward of each number of passengers."""
    pays = checks.numbers("rewards", rewards)
    if pays.shape != (n_passengers + 1,) or not np.isfinite(pays).all():
        rule = f"one for each number of passengers from 0 to {n_passengers}"
        raise ValueError(f"`rewards` must be finite numbers, {rule}, got {rewards!r}")
    return pays


def _branches(moves: Integers, slip: float) -> tuple[Integers, Floats]:
    """`[n, 4, K]`, where a move leads and how probably; one branch for each cell it can lead to."""
    leads = moves[:, TOWARDS]
    probabilities = np.broadcast_to([1 - slip, slip / 2, slip / 2], leads.shape).copy()
    for later in (1, 2):
        for earlier in range(later):
            same = leads[..., later] == leads[..., earlier]
            probabilities[..., earlier] += np.where(same, probabilities[..., later], 0.0)
            probabilities[..., later] = np.where(same, 0.0, probabilities[..., later])
    padding_last = np.argsort(probabilities == 0, axis=-1, kind="stable")
    n_branches = int((probabilities > 0).sum(-1).max())
    kept = padding_last[..., :n_branches]
    return np.take_along_axis(leads, kept, -1), np.take_along_axis(probabilities, kept, -1)
