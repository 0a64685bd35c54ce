"""Lunar Lander keeps Gymnasium's rules: single, vectorised, as pictures, with the height of 2016.

Up to 16 landers share the program of all other tests here.
"""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from mellowmax import Boltzmann
from mellowmax.deep import Network, Policy, watch
from mellowmax.environments.gymnasium import Height2016
from mellowmax.environments.lunar_lander.gymnasium import LunarLander, LunarLanderVector
from mellowmax.environments.lunar_lander.picture import FLAG, FLAME, SHELL, draw_lander
from mellowmax.explorer import exhibits, landing

ID = "mellowmax/LunarLander-v0"


def colour(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)])


def where(picture, text):
    """The mean position of a colour in a picture, x and y in pixels from the upper left."""
    rows, columns = np.nonzero((np.abs(picture.astype(int) - colour(text)) < 8).all(-1))
    return columns.mean(), rows.mean(), len(rows)


def test_gymnasiums_checker_has_nothing_to_say(recwarn):
    check_env(gymnasium.make(ID, render_mode="rgb_array").unwrapped)
    assert not [str(warning.message) for warning in recwarn]


def test_an_episode_of_many_is_that_of_one_with_its_seed():
    many = gymnasium.make_vec(ID, num_envs=3)
    one = gymnasium.make(ID)
    assert isinstance(many, LunarLanderVector)
    seen, _ = many.reset(seed=3)
    alone, _ = one.reset(seed=4)
    np.testing.assert_array_equal(seen[1], alone)
    rng, ended = np.random.default_rng(0), False
    for _ in range(400):
        actions = rng.integers(0, 4, 3)
        seen, rewards, terminated, truncated, _ = many.step(actions)
        if ended:  # the step after the end starts another episode, whatever the action
            assert (rewards[1], terminated[1]) == (0, False)
            assert 1.3 < seen[1, 1] < 1.5
            break
        alone, reward, ended, cut, _ = one.step(int(actions[1]))
        np.testing.assert_array_equal(seen[1], alone)
        assert (rewards[1], terminated[1], truncated[1]) == (np.float32(reward), ended, cut)
    assert ended


def test_an_episode_is_cut_off_and_some_may_begin_anew():
    many = LunarLanderVector(2, max_episode_steps=3)
    first, _ = many.reset(seed=[7, 7])
    np.testing.assert_array_equal(first[0], first[1])
    many.step([0, 0])
    seen, _ = many.reset(options={"reset_mask": np.array([True, False])})
    assert (seen[0] != seen[1]).any()
    assert seen[1, 1] != first[1, 1]  # it has waited after one step
    cut = [many.step([0, 0])[3] for _ in range(5)]
    np.testing.assert_array_equal(cut, [[0, 0], [0, 1], [1, 0], [0, 0], [0, 0]])


def test_wrong_arguments_are_one_sentence():
    env = LunarLander()
    with pytest.raises(gymnasium.error.ResetNeeded, match="`reset` must be called before `step`"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"`action` must be a whole number in \[0, 3\], got 4"):
        env.step(4)
    with pytest.raises(ValueError, match=r"`render_mode` must be None or in .*, got 'ansi'"):
        LunarLander("ansi")
    many = LunarLanderVector(2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="got no episode yet"):
        many.step([0, 0])
    many.reset(seed=0)
    with pytest.raises(ValueError, match="`actions` must be 2 whole numbers"):
        many.step([0, 4])
    with pytest.raises(ValueError, match="`seed` must be one for each lander, got 3"):
        many.reset(seed=[1, 2, 3])


def test_the_picture_shows_where_the_lander_is_and_what_fires():
    env = LunarLander("rgb_array")
    env.reset(seed=1)
    for _ in range(20):  # an episode starts at the upper edge
        seen, *_ = env.step(0)
    left, height, count = where(env.render(), SHELL)
    # 30 pixels a metre, x in units of 10 metres from the middle.
    assert abs(left - (300 + 300 * seen[0])) < 3
    assert 300 < count < 1200
    assert where(env.render(), FLAG)[2] > 100
    one = jax.tree.map(lambda x: x[0], env._landers.states)
    below = {action: where(draw_lander(one, action), FLAME) for action in (1, 2, 3)}
    assert below[2][1] > height + 15  # flames of the main engine come out below
    assert below[1][0] > left + 15  # and those that push to the left on the right
    assert below[3][0] < left - 15


def test_a_policy_can_be_watched():
    policy = Policy(Network.init(jax.random.key(0), (8, 4, 4)), Boltzmann(1.0))
    pictures = list(watch(policy, ID, max_steps=3))
    assert len(pictures) == 4
    assert pictures[0][0].shape == (400, 600, 3)


def test_a_crash_cost_as_much_in_2016():
    env = Height2016(gymnasium.make("LunarLander-v3"))
    env.reset(seed=0)
    reward, ended = 0.0, False
    while not ended:
        _, reward, ended, _, _ = env.step(0)
    assert reward == -100


def test_the_height_of_2016_is_that_of_ours(pair, observed):
    """Gymnasium's lander in the wrapper and ours have the same observations and rewards."""
    both = pair(range(80_000, 80_016), height="2016")
    over = np.zeros(16, bool)
    np.testing.assert_allclose(both.seen, observed(both.ours.state, 10.0), atol=2e-5)
    assert (np.array(both.seen)[:, 1] < 1).all()  # today it is about 1.4
    earned = np.zeros((2, 16))
    for _ in range(60):  # no flight of the long comparison is further off than 3.5e-5
        seen, reward, ended = both.step(np.zeros(16, int))
        flies = ~over & (seen[:, 6:] == 0).all(1)
        np.testing.assert_allclose(seen[flies], observed(both.ours.state, 10.0)[flies], atol=4e-5)
        earned += np.where(flies, [reward, both.ours.reward], 0.0)
        over |= ended
    np.testing.assert_allclose(*earned, atol=0.02)
    assert np.abs(earned).max() > 10


def gymnasiums_pilot(seen):
    """Gymnasium's heuristic, which lands."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    return int(heuristic(LunarLander(), seen))


def test_a_landing_is_kept_for_the_explorer_step_by_step():
    block = landing(gymnasiums_pilot, title="The heuristic of Gymnasium", seed=3, every=4)
    env = LunarLander()
    seen, _ = env.reset(seed=3)
    earned, ended, number, frames = 0.0, False, 0, [env.lander]
    while not ended:
        seen, reward, ended, _, _ = env.step(gymnasiums_pilot(seen))
        earned, number = earned + reward, number + 1
        if ended or number % 4 == 0:
            frames.append(env.lander)
    assert (block["steps"], block["ended"]) == (number, True)
    assert block["return"] == pytest.approx(earned, abs=0.06)
    assert earned > 200
    np.testing.assert_allclose(block["ground"], frames[0].terrain, rtol=1e-3)
    assert len(block["frames"]) == len(frames)
    for kept, state in zip(block["frames"], frames, strict=True):
        for place, body in zip(np.reshape(kept[:9], (3, 3)), bodies(state), strict=True):
            x, y, angle = np.array(place) / block["fine"]
            expected = (body.place.centre.x, body.place.centre.y, body.place.angle)
            np.testing.assert_allclose((x, y, angle), expected, atol=0.0051)
        assert kept[9] == state.right.on_ground + 2 * state.left.on_ground
    assert block["frames"][-1][9] == 3  # both legs stand
    assert {frame[10] for frame in block["frames"]} <= {0, 1, 2, 3}
    for shipped in exhibits()[1:]:
        assert [*shipped] == [*block]


def bodies(state):
    return state.hull, state.right.motion, state.left.motion


def test_a_lander_is_there_from_the_first_reset_on():
    with pytest.raises(gymnasium.error.ResetNeeded, match="`reset` must be called before `lander`"):
        _ = LunarLander().lander
    with pytest.raises(ValueError, match=r"`action` must be .*, got 9"):
        landing(lambda seen: 9, title="no pilot")
