"""The multi-passenger taxi: every row against a taxi that drives, and values known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax import Max
from mellowmax.mdp import multi_passenger_taxi
from mellowmax.mdp.taxi import GRID, TaxiGrid
from mellowmax.planning import fixed_points

OTHERS = {
    "figure 8": GRID,
    "nobody": ("S..", ".#D"),
    "corridor": ("FSFD",),
    "column": ("S", "F", ".", "D"),
    "cut off": (".#SF", "##.D"),
}
SIDES = {"north": ("east", "west"), "south": ("east", "west"),
         "east": ("north", "south"), "west": ("north", "south")}  # fmt: skip
STEPS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


def drive(rows, row, column, direction):
    """Where a car ends that is sent one cell in a direction."""
    down, right = STEPS[direction]
    inside = 0 <= row + down < len(rows) and 0 <= column + right < len(rows[0])
    if inside and rows[row + down][column + right] != "#":
        return row + down, column + right
    return row, column


def outcomes(rows, place, picked, direction, slip, rewards):
    """`{(place, picked, reward): probability}` of one move from a place with a set picked up."""
    result = {}
    chances = [(direction, 1 - slip), *((side, slip / 2) for side in SIDES[direction])]
    for way, chance in chances:
        row, column = drive(rows, *place, way)
        mark = rows[row][column]
        now = picked | {(row, column)} if mark == "F" else picked
        key = ((row, column), now, rewards[len(picked)] if mark == "D" else 0.0)
        if chance:
            result[key] = result.get(key, 0.0) + chance
    return result


@pytest.mark.parametrize("slip", [0.0, 0.1, 0.35, 1.0])
@pytest.mark.parametrize("name", OTHERS)
def test_every_row_is_what_a_driving_taxi_does(name, slip):
    rows = OTHERS[name]
    free = [(i, j) for i in range(len(rows)) for j in range(len(rows[0])) if rows[i][j] != "#"]
    waiting = [place for place in free if rows[place[0]][place[1]] == "F"]
    rewards = [0.5, 1.0, 3.0, 15.0][: len(waiting) + 1]
    mdp = multi_passenger_taxi(rows, slip=slip, rewards=rewards)
    n_sets = 2 ** len(waiting)
    assert mdp.n_states == len(free) * n_sets

    def number(place, picked):
        return free.index(place) * n_sets + sum(2 ** waiting.index(who) for who in picked)

    most = 0
    for place in free:
        for bits in range(n_sets):
            picked = frozenset(who for i, who in enumerate(waiting) if bits >> i & 1)
            s = number(place, picked)
            ends = rows[place[0]][place[1]] == "D"
            assert mdp.terminal[s] == ends
            for a, direction in enumerate(("north", "south", "east", "west")):
                row = {
                    (int(mdp.successors[s, a, k]), float(mdp.rewards[s, a, k])): p
                    for k, p in enumerate(mdp.probabilities[s, a].tolist())
                    if p
                }
                said = outcomes(rows, place, picked, direction, slip, rewards)
                said = {(number(at, now), paid): p for (at, now, paid), p in said.items()}
                assert row == ({} if ends else pytest.approx(said, abs=1e-15)), (s, a)
                # No successor is listed twice.
                assert np.count_nonzero(mdp.probabilities[s, a]) == len(row)
                most = max(most, len(row))
    assert mdp.n_branches == most


def test_the_grid_of_figure_8():
    grid, mdp = TaxiGrid.parse(GRID), multi_passenger_taxi()
    assert grid.n_cells == 33
    assert grid.n_states == mdp.n_states == 264
    assert (mdp.n_actions, mdp.n_branches, mdp.discount) == (4, 3, 0.99)
    assert grid.cells[grid.start].tolist() == [0, 0]
    assert grid.cells[grid.destination].tolist() == [0, 6]
    assert grid.cells[list(grid.passengers)].tolist() == [[0, 2], [4, 6], [5, 0]]
    assert grid.start_state == 0
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), np.arange(32, 40))
    assert set(np.unique(mdp.rewards)) == {0.0, 1.0, 3.0, 15.0}
    # A move in the open: 0.9 ahead and 0.05 to each side.
    middle = grid.state(grid.cells.tolist().index([2, 3]))
    np.testing.assert_allclose(mdp.probabilities[middle], [[0.9, 0.05, 0.05]] * 4, rtol=1e-15)


def test_states_and_their_numbers():
    grid = TaxiGrid.parse(GRID)
    for state in range(grid.n_states):
        cell, picked = grid.decode(state)
        assert grid.state(cell, picked) == state == 8 * cell + sum(2**i for i in picked)
    assert grid.decode(13) == (1, (0, 2))
    assert not grid.cells.flags.writeable


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda grid: grid.state(33), "`cell` must be a whole number in [0, 32], got 33"),
        (lambda grid: grid.state(0, [3]), "`picked` must be a whole number in [0, 2], got 3"),
        (lambda grid: grid.decode(264), "`state` must be a whole number in [0, 263], got 264"),
    ],
)
def test_a_state_that_there_is_not_is_an_error(call, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call(TaxiGrid.parse(GRID))
    assert str(error.value) == message


CORRIDORS = [  # the grid, the rewards, the best number of passengers and the steps it takes
    ("S.D", [2.0], 0, 2),
    ("SFD", [0.0, 1.0], 1, 2),
    ("SFFD", [1.0, 2.0, 4.0], 2, 3),
    ("FSD", [1.0, 1.1], 0, 1),  # the way back costs more than the passenger is worth
    ("FSD", [1.0, 5.0], 1, 3),
    ("F..S.D", [0.0, 0.0], 0, 2),
]


@pytest.mark.parametrize(("row", "rewards", "fetched", "steps"), CORRIDORS)
def test_in_a_corridor_without_slips_the_value_is_a_power_of_the_discount(
    row, rewards, fetched, steps
):
    mdp = multi_passenger_taxi([row], slip=0.0, rewards=rewards, discount=0.9)
    (optimum,) = fixed_points(mdp, Max())
    value = optimum.value[TaxiGrid.parse([row]).start_state]
    # The reward comes with the last step, which `steps - 1` discounts lead to.
    assert value == pytest.approx(0.9 ** (steps - 1) * rewards[fetched], abs=1e-12)


def test_a_corridor_with_slips_has_the_value_of_a_geometric_series():
    """East from S enters D with probability 0.7 and stays otherwise: v = 0.7 + 0.9 * 0.3 v."""
    mdp = multi_passenger_taxi(["SD"], slip=0.3, rewards=[1.0], discount=0.9)
    (optimum,) = fixed_points(mdp, Max())
    value = optimum.value[0]
    assert value == pytest.approx(0.7 / (1 - 0.9 * 0.3), abs=1e-12)


def test_the_text_of_a_grid_comes_in_three_forms():
    lines = """
        S#F.#.D
        .#..#..
        .......
        ##...##
        ......F
        F.....#
    """
    for grid in (list(GRID), lines, " / ".join(GRID), "/".join(GRID), "\n".join(GRID)):
        assert TaxiGrid.parse(grid).rows == GRID
    np.testing.assert_array_equal(
        multi_passenger_taxi(lines).successors, multi_passenger_taxi().successors
    )


MADE_OF = "`grid` must be made of 'S', 'D', 'F', '#' and '.', got"
WAY = "`grid` must have a way from S to D and to each F, got none to"
PAYS = "`rewards` must be finite numbers, one for each number of passengers from 0 to"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: multi_passenger_taxi(["S..", ".xD"]), f"{MADE_OF} 'x' in row 1, column 1"),
        (lambda: multi_passenger_taxi("S. D"), f"{MADE_OF} ' ' in row 0, column 2"),
        (lambda: multi_passenger_taxi(["S.D", "...."]),
         "`grid` must be rows of one length, that of row 0, 3, got 4 in row 1"),
        (lambda: multi_passenger_taxi("S.D\n\n..."),
         "`grid` must be rows of one length, that of row 0, 3, got 0 in row 1"),
        (lambda: multi_passenger_taxi(["..D"]), "`grid` must have one 'S', got none"),
        (lambda: multi_passenger_taxi(["S.."]), "`grid` must have one 'D', got none"),
        (lambda: multi_passenger_taxi(["###"]), "`grid` must have one 'S', got none"),
        (lambda: multi_passenger_taxi([""]), "`grid` must have one 'S', got none"),
        (lambda: multi_passenger_taxi(["S#D", "..S"]),
         "`grid` must have one 'S', got a second one in row 1, column 2"),
        (lambda: multi_passenger_taxi(["S.D", "#.D"]),
         "`grid` must have one 'D', got a second one in row 1, column 2"),
        (lambda: multi_passenger_taxi(["S#D"]), f"{WAY} 'D' in row 0, column 2"),
        (lambda: multi_passenger_taxi(["SD#", "##F"]), f"{WAY} 'F' in row 1, column 2"),
        # Only through the destination, where the episode is over.
        (lambda: multi_passenger_taxi(["FSDF"]), f"{WAY} 'F' in row 0, column 3"),
        (lambda: multi_passenger_taxi(["SD" + "F" * 17]),
         "`grid` must have at most 16 passengers, got 17"),
        (lambda: multi_passenger_taxi([]), "`grid` must be rows of text, got []"),
        (lambda: multi_passenger_taxi(""), "`grid` must be rows of text, got []"),
        (lambda: multi_passenger_taxi(7), "`grid` must be rows of text, got 7"),
        (lambda: multi_passenger_taxi(["S.D", 3]), "`grid` must be rows of text, got ['S.D', 3]"),
        (lambda: multi_passenger_taxi(["SFD"]), f"{PAYS} 1, got (0.0, 1.0, 3.0, 15.0)"),
        (lambda: multi_passenger_taxi(["S.D"], rewards=[np.inf]), f"{PAYS} 0, got [inf]"),
        (lambda: multi_passenger_taxi(["S.D"], rewards=1.0), f"{PAYS} 0, got 1.0"),
        (lambda: multi_passenger_taxi(["S.D"], rewards="1"),
         "`rewards` must be an array of numbers, got one of <U1"),
        (lambda: multi_passenger_taxi(slip=1.1), "`slip` must be in [0, 1], got 1.1"),
        (lambda: multi_passenger_taxi(slip=None), "`slip` must be in [0, 1], got None"),
        (lambda: multi_passenger_taxi(discount=1.5), "`discount` must be in [0, 1], got 1.5"),
        (lambda: multi_passenger_taxi(discount=1.0).check_ends(),
         "`discount` must be below 1 unless every policy ends, got 1 and a policy that never ends "
         "from state 0 with action 0"),
    ],
)  # fmt: skip
def test_an_invalid_argument_is_an_error(make, message):
    wrong_kind = any(part in message for part in ("rows of text", "got one of", "got None"))
    with pytest.raises(TypeError if wrong_kind else ValueError) as error:
        make()
    assert str(error.value) == message


def test_sixteen_passengers_are_not_too_many():
    mdp = multi_passenger_taxi(["S" + "F" * 16 + "D"], slip=0.0, rewards=np.arange(17.0))
    assert mdp.n_states == 18 * 2**16
    assert mdp.rewards.max() == 16.0
