"""Gymnasium environments: they are the MDP they are made of, and keep Gymnasium's rules."""

from __future__ import annotations

import copy
import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from mellowmax import Max
from mellowmax._common.gymnasium_ids import ENVIRONMENTS, register
from mellowmax._common.shown import shown
from mellowmax.environments.gymnasium import MultiPassengerTaxi, TabularEnv, TwoState
from mellowmax.mdp import MDP, chain, garnet, multi_passenger_taxi, random_mdp, two_state
from mellowmax.planning import fixed_points

TWO_STATE, TAXI = "mellowmax/TwoState-v0", "mellowmax/MultiPassengerTaxi-v0"
LANDER = "mellowmax/LunarLander-v0"


def masked(seed=0):
    """A random MDP with actions that are not allowed, transitions to the end and a terminal state.

    It has a reward for every branch.
    """
    rng = np.random.default_rng(seed)
    shape = (12, 4, 3)
    probabilities = rng.random(shape)
    probabilities[3, 1, 2] = 0.0
    allowed = rng.random(shape[:2]) < 0.6
    allowed[:, 2] = True
    mdp = MDP(
        rng.integers(0, 13, shape),
        probabilities / probabilities.sum(-1, keepdims=True),
        rng.normal(size=shape),
        0.9,
        allowed=allowed,
        terminal=np.arange(12) == 5,
    )
    assert (mdp.successors == 12).any()
    assert (mdp.successors == 5).any()
    assert not mdp.allowed.all()
    return mdp


MDPS = {
    "two-state": two_state,
    "taxi": multi_passenger_taxi,
    "taxi of another grid": lambda: multi_passenger_taxi("S.F/.#D", slip=0.4, rewards=[1, 2]),
    "masked": masked,
    "dense": lambda: random_mdp(3),
    "garnet": lambda: garnet(40, 3, 5, 0),
}


@pytest.mark.parametrize("name", MDPS)
def test_the_table_is_the_mdp(name):
    mdp = MDPS[name]()
    env = TabularEnv(mdp)
    again = MDP.from_gymnasium(env, env.discount)
    np.testing.assert_array_equal(again.terminal, mdp.terminal)
    if mdp.allowed is not None:
        np.testing.assert_array_equal(again.allowed, mdp.allowed)
    np.testing.assert_allclose(again.expected_rewards, mdp.expected_rewards, atol=1e-14)
    going_on = ~mdp.terminal  # a step into a terminal state leads to the end in the table
    np.testing.assert_allclose(
        again.to_numpy()[0][..., going_on], mdp.to_numpy()[0][..., going_on], atol=1e-15
    )


@pytest.mark.parametrize("name", ["two-state", "taxi", "masked"])
def test_the_table_has_the_values_of_the_mdp(name):
    mdp = MDPS[name]()
    again = MDP.from_gymnasium(TabularEnv(mdp), mdp.discount)
    one, two = (fixed_points(model, Max())[0].value for model in (mdp, again))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MDPS)
def test_the_table_holds_pythons_numbers_and_terminal_states_stay(name):
    mdp = MDPS[name]()
    table = TabularEnv(mdp).P
    assert list(table) == list(range(mdp.n_states))
    for s, row in table.items():
        assert list(row) == list(range(mdp.n_actions))
        for a, branches in row.items():
            if mdp.terminal[s]:
                assert branches == [(1.0, s, 0.0, True)]
            elif mdp.allowed is not None and not mdp.allowed[s, a]:
                assert branches == []
            else:
                assert sum(p for p, *_ in branches) == pytest.approx(1.0)
            for p, after, reward, ended in branches:
                assert [type(v) for v in (p, after, reward, ended)] == [float, int, float, bool]
                assert p > 0
                assert 0 <= after < mdp.n_states


def play(env, seed, n_steps):
    """All that an environment says under actions that are allowed, drawn from a seed."""
    rng = np.random.default_rng(seed)
    state, info = env.reset(seed=seed)
    said = [(state, info["prob"])]
    for _ in range(n_steps):
        choices = (
            np.flatnonzero(info["action_mask"])
            if "action_mask" in info
            else range(env.action_space.n)
        )
        state, reward, ended, truncated, info = env.step(rng.choice(choices))
        said.append((state, reward, ended, truncated, info["prob"]))
        if ended:
            state, info = env.reset()
            said.append((state, info["prob"]))
    return said


@pytest.mark.parametrize("name", MDPS)
def test_the_same_seed_gives_the_same_trajectory(name):
    one, two = TabularEnv(MDPS[name]()), TabularEnv(MDPS[name]())
    said = play(one, 7, 200)
    assert play(two, 7, 200) == said
    assert play(one, 7, 200) == said
    assert play(one, 8, 200) != said
    assert play(copy.deepcopy(one), 7, 200) == said


def test_what_a_step_says_is_in_the_table():
    mdp = masked()
    env = TabularEnv(mdp)
    rng = np.random.default_rng(0)
    state, info = env.reset(seed=0)
    ends = set()
    for _ in range(3000):
        assert info["action_mask"].dtype == np.int8
        np.testing.assert_array_equal(info["action_mask"], mdp.allowed[state])
        kept = info["action_mask"]
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        after, reward, ended, truncated, info = env.step(action)
        assert (info["prob"], after, reward, ended) in env.P[state][action]
        kept[...] = 7  # a mask is the caller's own
        assert env.state == after
        assert truncated is False
        if ended:
            ends.add(bool(mdp.terminal[after]))
            assert mdp.terminal[after] or after == state
            after, info = env.reset()
            assert not mdp.terminal[after]
        state = after
    assert ends == {False, True}  # by the index S and in a terminal state


def test_the_taxi_slips_as_often_as_its_table_says():
    """A chi-square test of each row that a random drive saw often enough to expect 5 of a branch.

    The smallest p-value times the number of rows (Bonferroni) is below 1e-6 for a right environment
    with a probability of about 1e-6; the seed is fixed. A slip of 0.15 in its place is found out.
    """
    scipy_stats = pytest.importorskip("scipy.stats")
    env = MultiPassengerTaxi()
    rng = np.random.default_rng(1)
    counts: dict[tuple[int, int], dict[int, int]] = {}
    state, _ = env.reset(seed=1)
    for action in rng.integers(4, size=150_000).tolist():
        after, _, ended, _, _ = env.step(action)
        row = counts.setdefault((state, action), {})
        row[after] = row.get(after, 0) + 1
        state = env.reset()[0] if ended else after

    def smallest(slip):
        table = MultiPassengerTaxi(slip=slip).P
        values = []
        for (s, a), row in counts.items():
            n, branches = sum(row.values()), table[s][a]
            assert set(row) <= {after for _, after, _, _ in branches}
            if n * min(p for p, *_ in branches) >= 5 and len(branches) > 1:
                seen = [row.get(after, 0) for _, after, _, _ in branches]
                values.append(scipy_stats.chisquare(seen, [n * p for p, *_ in branches]).pvalue)
        assert len(values) > 200
        return min(values) * len(values)

    assert smallest(0.1) > 1e-6
    assert smallest(0.15) < 1e-6


@pytest.mark.parametrize(
    ("start", "states"),
    [(None, range(4)), (2, [2]), (np.int64(3), [3]), ([0, 0.25, 0, 0.75, 0], [1, 3])],
)
def test_an_episode_starts_where_it_should(start, states):
    mdp = MDP.from_function(lambda s, a: [(1.0, s + 1, 0.0)] if s < 4 else [], 5, 1, 1.0)
    env = TabularEnv(mdp, start)
    seen = [env.reset(seed=0), *(env.reset() for _ in range(999))]
    assert {state for state, _ in seen} == set(states)
    for state in states:
        p = 0.25 if start is None else 1.0 if np.ndim(start) == 0 else start[state]
        assert {info["prob"] for s, info in seen if s == state} == {p}
        share = np.mean([s == state for s, _ in seen])  # four standard errors: 6e-5 each
        assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / 1000)


def test_an_episode_that_is_over_needs_a_reset():
    env = TabularEnv(MDP([[[1]]], [[[1.0]]], [[2.0]], 0.9, terminal=[False]), render_mode="ansi")
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"^`reset` must be called before"):
            call()
    env.reset(seed=0)
    assert env.step(0) == (0, 2.0, True, False, {"prob": 1.0})
    assert env.render() == "state 0, action 0, reward 2"
    with pytest.raises(gymnasium.error.ResetNeeded) as error:
        env.step(0)
    assert str(error.value) == "`reset` must be called before `step`, got no episode under way"


@pytest.mark.parametrize("action", [4, -1, 1.0, "north", None, np.array([0, 1]), [0]])
def test_an_action_outside_the_space_is_an_error_and_draws_nothing(action):
    env = MultiPassengerTaxi()
    state, _ = env.reset(seed=3)
    before = env.np_random.bit_generator.state
    number = isinstance(action, int | float)
    with pytest.raises(ValueError if number else TypeError) as error:
        env.step(action)
    assert str(error.value) == f"`action` must be a whole number in [0, 3], got {shown(action)}"
    assert env.state == state
    assert env.np_random.bit_generator.state == before


def test_an_action_that_is_not_allowed_is_an_error():
    mdp = masked()
    state, action = (int(i) for i in np.argwhere(~mdp.allowed)[0])
    env = TabularEnv(mdp, state)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"^`action` must be allowed in state {state}, got"):
        env.step(action)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TabularEnv(3), "`mdp` must be an MDP, got 3"),
        (lambda: TabularEnv(two_state(), 2), "`start` must be a whole number in [0, 1], got 2"),
        (lambda: TabularEnv(two_state(), 1), "`start` must be where no episode ends, got state 1"),
        (lambda: TabularEnv(two_state(), [0.5, 0.5]),
         "`start` must be where no episode ends, got state 1"),
        (lambda: TabularEnv(two_state(), [1.0]),
         "`start` must be a state or have the shape (2,), got (1,)"),
        (lambda: TabularEnv(chain(2), [0.5, 0.6]), "`start` must sum to 1, got 1.1"),
        (lambda: TabularEnv(chain(2), [1.5, -0.5]),
         "`start` must not be negative, got -0.5 in state 1"),
        (lambda: TabularEnv(MDP([[[0]]], [[[1.0]]], [[0.0]], 0.9)),
         "`mdp` must have a state that is not terminal, got none"),
        (lambda: TwoState(render_mode="human"),
         "`render_mode` must be None or in ['ansi'], got 'human'"),
        (lambda: MultiPassengerTaxi("S#D"),
         "`grid` must have a way from S to D and to each F, got none to 'D' in row 0, column 2"),
    ],
)  # fmt: skip
def test_an_invalid_argument_is_an_error(make, message):
    with pytest.raises(TypeError if "an MDP" in message else ValueError) as error:
        make()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "mode"),
    [(TWO_STATE, None), (TWO_STATE, "ansi"), (TAXI, None), (TAXI, "ansi"), (TAXI, "rgb_array")],
)
def test_gymnasiums_checker_finds_nothing(name, mode):
    """Its findings are warnings, which are errors here."""
    env = gymnasium.make(name, render_mode=mode).unwrapped
    assert isinstance(env, TabularEnv)
    check_env(env, skip_render_check=False)


def test_the_paper_s_environments_are_its_mdps():
    env = gymnasium.make(TAXI).unwrapped
    assert env.reset(seed=0) == (0, {"prob": 1.0})
    assert (env.observation_space.n, env.action_space.n, env.discount) == (264, 4, 0.99)
    assert env.P == TabularEnv(multi_passenger_taxi()).P
    assert gymnasium.spec(TAXI).max_episode_steps is None
    env = gymnasium.make(TWO_STATE, printed=True, discount=0.5).unwrapped
    assert env.reset(seed=0) == (0, {"prob": 1.0})
    assert env.P == TabularEnv(two_state(printed=True)).P
    assert env.discount == 0.5


def fresh(code):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_gymnasium_makes_them_in_a_fresh_process_by_an_id_that_names_the_module():
    code = f"""
import gymnasium
for name in {list(ENVIRONMENTS)}:
    env = gymnasium.make("mellowmax.environments:" + name)
    print(type(env.unwrapped).__name__, env.spec.id)
"""
    names = ["TwoState", TWO_STATE, "MultiPassengerTaxi", TAXI, "LunarLander", LANDER]
    assert fresh(code) == names


def test_registering_is_light_and_happens_once():
    code = f"""
import sys
from mellowmax._common.gymnasium_ids import register
register()
register()
import gymnasium
heavy = {{"jax", "PIL", "mellowmax.environments", "mellowmax.mdp"}}
print(len(set(sys.modules) & heavy))
for name in {[TWO_STATE, TAXI]}:
    gymnasium.make(name).reset(seed=0)
print(len(set(sys.modules) & {{"jax", "PIL"}}))
"""
    assert fresh(code) == ["0", "0"]
    before = dict(gymnasium.registry)
    register()
    assert gymnasium.registry == before


def test_without_gymnasium_nothing_is_registered():
    code = """
import sys
sys.modules["gymnasium"] = None
from mellowmax._common.gymnasium_ids import register
print(register())
"""
    assert fresh(code) == ["None"]


def test_rendering_without_a_mode_is_a_warning():
    env = TwoState()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="`render` shows nothing as `render_mode` is None"):
        assert env.render() is None


def without_colour(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_the_text_of_the_taxi():
    env = MultiPassengerTaxi("S.F/#.D", slip=0.0, rewards=[0.0, 1.5], render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("\x1b[1;30;43mT\x1b[0m.F\n")
    shown = [without_colour(env.render())]
    for action in (2, 3, 0, 2, 2, 1):
        env.step(action)
        shown.append(without_colour(env.render()))
    assert shown == [
        "T.F\n#.D\n0 of 1 on board, start",
        "STF\n#.D\n0 of 1 on board, action east, reward 0",
        "T.F\n#.D\n0 of 1 on board, action west, reward 0",
        "T.F\n#.D\n0 of 1 on board, action north, reward 0",
        "STF\n#.D\n0 of 1 on board, action east, reward 0",
        "S.T\n#.D\n1 of 1 on board, action east, reward 0",
        "S..\n#.T\n1 of 1 on board, action south, reward 1.5",
    ]


def test_the_text_of_the_two_states():
    env = TwoState(render_mode="ansi")
    env.reset(seed=0)
    assert without_colour(env.render()) == "[s1]  s2   start"
    while not env.step(0)[2]:
        assert without_colour(env.render()) == "[s1]  s2   action a, reward 0.12211"
    assert without_colour(env.render()) == " s1  [s2]  action a, reward 0.12211"
    assert "\n" not in env.render()


def cells_that_differ(one, two):
    """Rows and columns of the cells, 48 pixels each, where two pictures differ."""
    at = np.argwhere((one != two).any(-1)) - 1
    return {(int(i), int(j)) for i, j in at // 48}


def test_the_picture_of_the_taxi():
    env = MultiPassengerTaxi("S.F/#.D", slip=0.0, rewards=[0.0, 1.5], render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.shape == (2 * 48 + 1, 3 * 48 + 1, 3)
    env.step(2)
    second = env.render()
    assert cells_that_differ(first, second) == {(0, 0), (0, 1)}
    env.step(2)
    third = env.render()
    assert cells_that_differ(second, third) == {(0, 1), (0, 2)}
    env.step(3)
    fourth = env.render()  # where the taxi was, with a passenger now: the number and no F
    assert cells_that_differ(second, fourth) == {(0, 1), (0, 2)}
    np.testing.assert_array_equal(env.render(), fourth)
    fourth[...] = 0  # a picture is the caller's own
    assert env.render().any()


def test_what_a_picture_shows_differs_from_the_floor_in_lightness():
    """By a contrast of 3 or more to white in grey, so without any colour: walls, F, taxi's rim."""
    env = MultiPassengerTaxi(render_mode="rgb_array")
    env.reset(seed=0)
    linear = (env.render() / 255) ** 2.2
    grey = linear @ [0.2126, 0.7152, 0.0722]
    contrast = 1.05 / (grey + 0.05)

    def darkest(row, column):
        return contrast[row * 48 + 2 : row * 48 + 47, column * 48 + 2 : column * 48 + 47].max()

    for place in ((0, 0), (0, 1), (0, 2), (0, 6), (5, 0)):
        assert darkest(*place) > 3
    assert darkest(0, 3) == pytest.approx(1.0)
