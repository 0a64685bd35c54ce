"""Environments side by side: each as if it were alone, in processes that end with their parent."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from mellowmax.environments.fleet.fleet import Fleet

# Box2D warns of itself when it is imported, and crashes where warnings are errors.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__")


def alone(name, seed, actions):
    """All that Gymnasium's own environment says, until its episode ends."""
    env = gymnasium.make(name)
    said = [(env.reset(seed=seed)[0], 0.0, False, False)]
    for action in actions:
        said.append(env.step(int(action))[:4])
        if said[-1][2] or said[-1][3]:
            break
    env.close()
    return said


def among_others(fleet, seeds, actions, pauses):
    """What each environment of a fleet returns, where one that ended rests, and others at times."""
    observations, info = fleet.reset(seed=seeds)
    assert info == {}
    said = [[(seen, 0.0, False, False)] for seen in observations]
    while True:
        steps = np.array([len(one) - 1 for one in said])
        over = np.array([one[-1][2] or one[-1][3] for one in said])
        left = ~over & (steps < actions.shape[1])
        if not left.any():
            return said
        moving = left & ~next(pauses)
        chosen = actions[np.arange(len(said)), np.minimum(steps, actions.shape[1] - 1)]
        outcome = fleet.step(np.where(moving, chosen, -1))[:4]
        for i, (one, *now) in enumerate(zip(said, *outcome, strict=True)):
            if moving[i]:
                one.append(tuple(now))
            else:  # where it was, and nothing earned
                np.testing.assert_array_equal(now[0], one[-1][0])
                assert now[1:] == [0.0, *one[-1][2:]]


def random_pauses(n, seed=0):
    rng = np.random.default_rng(seed)
    while True:
        yield rng.random(n) < 0.3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("name", "n_actions", "length"), [("CartPole-v1", 2, 60), ("LunarLander-v3", 4, 120)]
)
def test_an_environment_does_what_it_does_alone(name, n_actions, length, workers):
    seeds = [3, 0, 2**31 - 1, 3, 8]
    actions = np.random.default_rng(1).integers(n_actions, size=(5, length))
    with contextlib.closing(Fleet(name, 5, workers=workers)) as fleet:
        assert fleet.single_action_space == gymnasium.spaces.Discrete(n_actions)
        assert fleet.observation_space.shape == (5, *fleet.single_observation_space.shape)
        said = among_others(fleet, seeds, actions, random_pauses(5))
    ends = []
    for got, seed, own in zip(said, seeds, actions, strict=True):
        expected = alone(name, seed, own)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            assert one[0].dtype == other[0].dtype
            assert one[1:] == other[1:]
        ends.append(expected[-1][2])
    assert any(ends)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_reset_begins_an_episode_only_where_it_is_wanted(workers):
    actions = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1]])
    own = [alone("CartPole-v1", seed, row) for seed, row in zip((5, 6, 7), actions, strict=True)]
    with contextlib.closing(Fleet("CartPole-v1", 3, workers=workers)) as fleet:
        fleet.reset(seed=5)  # and 6 and 7
        for t in (0, 1):
            fleet.step(actions[:, t])
        mask = np.array([False, True, False])
        seen, _ = fleet.reset(seed=[90, 91, 92], options={"reset_mask": mask})
        for i, expected in enumerate((own[0][2], alone("CartPole-v1", 91, ())[0], own[2][2])):
            np.testing.assert_array_equal(seen[i], expected[0])
        again = alone("CartPole-v1", 91, actions[1, 2:])
        for t in (2, 3):
            seen, rewards, *_ = fleet.step(actions[:, t])
            for i, expected in enumerate((own[0][t + 1], again[t - 1], own[2][t + 1])):
                np.testing.assert_array_equal(seen[i], expected[0])
            np.testing.assert_array_equal(rewards, 1.0)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_episode_that_has_ended_stays_so_until_a_reset(workers):
    with contextlib.closing(Fleet("CartPole-v1", 2, workers=workers)) as fleet:
        fleet.reset(seed=0)
        while not (ended := fleet.step(np.array([-1, 1]))[2]).any():
            pass
        resting = np.array([-1, -1])
        for _ in range(2):
            _, rewards, terminated, truncated, _ = fleet.step(resting)
            np.testing.assert_array_equal(terminated, ended)
            np.testing.assert_array_equal(truncated, False)
            np.testing.assert_array_equal(rewards, 0.0)
        assert ended.tolist() == [False, True]
        fleet.reset(seed=0)
        np.testing.assert_array_equal(fleet.step(resting)[2], False)


def test_seeds_that_are_not_given_are_drawn():
    with contextlib.closing(Fleet("CartPole-v1", 2)) as fleet:
        one, two = fleet.reset()[0], fleet.reset()[0]
        mixed = fleet.reset(seed=[None, 4])[0]
    assert (one != two).all()
    assert len({row.tobytes() for row in (*one, *two, *mixed)}) == 6
    np.testing.assert_array_equal(mixed[1], alone("CartPole-v1", 4, ())[0][0])


def odd_one(at_step=None, error=None, says=None, fails_elsewhere_than=None):
    """What makes an environment that shows its process, and can print and fail.

    It is local, so that a process gets it by value and need not import this file.
    """

    class Odd(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, np.inf, (1,), np.float64)
        action_space = gymnasium.spaces.Discrete(2)

        def _now(self):
            if says is not None:
                print(says, flush=True)
                os.write(1, says.encode())
            return np.array([os.getpid()], np.float64)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return self._now(), {}

        def step(self, action):
            self.steps += 1
            if self.steps == at_step:
                raise error
            return self._now(), 1.0, False, False, {}

    def make():
        if fails_elsewhere_than not in (None, os.getpid()):
            raise OSError("no display\nin this process")
        return Odd()

    return make


def processes(fleet):
    return {int(pid) for pid in fleet.reset(seed=0)[0][:, 0]}


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_processes_are_those_that_were_asked_for_until_they_are_closed():
    with contextlib.closing(Fleet(odd_one(), 5, workers=2)) as fleet:
        pids = processes(fleet)
        assert len(pids) == 2
        assert os.getpid() not in pids
        assert all(map(is_there, pids))
    assert not any(map(is_there, pids))
    with contextlib.closing(Fleet(odd_one(), 3, workers=0)) as fleet:
        assert processes(fleet) == {os.getpid()}


def test_there_are_no_more_processes_than_environments():
    with contextlib.closing(Fleet(odd_one(), 2, workers=5)) as fleet:
        assert len(processes(fleet)) == 2
        np.testing.assert_array_equal(fleet.step(np.array([1, -1]))[1], [1.0, 0.0])


def test_an_environment_that_fails_says_why_in_one_line():
    fleet = Fleet(odd_one(at_step=2, error=KeyError("no such wheel")), 4, workers=2)
    with contextlib.closing(fleet):
        pids = processes(fleet)
        fleet.step(np.array([0, 0, -1, -1]))
        with pytest.raises(RuntimeError) as error:
            fleet.step(np.array([-1, 0, -1, -1]))
        assert str(error.value) == "an environment failed: KeyError: 'no such wheel'"
    assert not any(map(is_there, pids))
    raised = ValueError("no\nwheel")
    with contextlib.closing(Fleet(odd_one(at_step=1, error=raised), 1)) as fleet:
        fleet.reset(seed=0)
        with pytest.raises(
            RuntimeError, match=r"^an environment failed: ValueError: no wheel$"
        ) as e:
            fleet.step(np.array([0]))
        assert e.value.__cause__ is raised  # in this process, with its traceback


def wrong_one(**wrong):
    """What makes an environment that declares `Box(4,)`, and returns something else in a step."""

    class Wrong(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (4,))
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(4, np.float32), {}

        def step(self, action):
            right = {"seen": np.zeros(4), "reward": 1, "terminated": np.bool_(0), "truncated": 0}
            return *(right | wrong).values(), {}

    return Wrong


SHAPE = "return observations of numbers with the shape (4,), as its observation space says, got "


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"seen": 0.5}, f"{SHAPE}0.5"),
        ({"seen": np.zeros(1)}, f"{SHAPE}an array of float64 with the shape (1,)"),
        ({"seen": np.zeros((1, 4))}, f"{SHAPE}an array of float64 with the shape (1, 4)"),
        ({"seen": [[1], [2, 3]]}, f"{SHAPE}[[1], [2, 3]]"),
        ({"reward": "1.5"}, "return a number as `reward`, got '1.5'"),
        ({"reward": 10**400}, "return a number as `reward`, got 1000"),
        ({"terminated": "False"}, "return True or False as `terminated`, got 'False'"),
        ({"truncated": None}, "return True or False as `truncated`, got None"),
        (
            {"sixth": 1},
            "return an observation, a reward, `terminated`, `truncated` and `info` from ",
        ),
    ],
    ids=repr,
)
def test_what_an_environment_has_not_declared_is_one_sentence(wrong, rule, workers):
    with contextlib.closing(Fleet(wrong_one(**wrong), 2, workers=workers)) as fleet:
        fleet.reset(seed=0)
        with pytest.raises(RuntimeError) as error:
            fleet.step(np.array([0, 1]))
    assert str(error.value).startswith(f"`environment` must {rule}")
    assert len(str(error.value).splitlines()) == 1


def test_numbers_and_flags_of_any_kind_are_taken():
    right = {"seen": [1, 2, 3, 4], "reward": np.float32(1.5), "terminated": np.array(True)}
    with contextlib.closing(Fleet(wrong_one(**right), 1)) as fleet:
        fleet.reset(seed=0)
        seen, rewards, terminated, truncated, _ = fleet.step(np.array([0]))
    assert seen.tolist() == [[1, 2, 3, 4]]
    assert (rewards[0], terminated[0], truncated[0]) == (1.5, True, False)


def test_an_environment_that_cannot_be_made_in_its_process_says_why():
    """And the processes that had begun are ended, or Python would warn of them."""
    with pytest.raises(RuntimeError) as error:
        Fleet(odd_one(fails_elsewhere_than=os.getpid()), 2, workers=2)
    assert str(error.value) == "an environment failed: OSError: no display in this process"
    del error  # and with it what was made
    gc.collect()


def test_a_process_that_is_killed_is_an_error_and_the_others_are_closed():
    with contextlib.closing(Fleet(odd_one(), 2, workers=2)) as fleet:
        one, other = fleet.reset(seed=0)[0][:, 0].astype(int).tolist()
        os.kill(one, signal.SIGKILL)
        os.waitid(os.P_PID, one, os.WEXITED | os.WNOWAIT)
        with pytest.raises(RuntimeError) as error:
            fleet.step(np.array([0, 0]))
        assert str(error.value) == "an environment failed: its process has ended"
    assert not any(map(is_there, (one, other)))


def test_the_processes_end_when_their_parent_is_killed():
    """They hold the other end of the pipe that is read here to its end."""
    code = """
import time
from mellowmax.environments.fleet import Fleet
fleet = Fleet("CartPole-v1", 2, workers=2)
fleet.reset(seed=0)
print("ready", flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(signal.SIGKILL)
        parent.communicate(timeout=30)
        assert parent.returncode == -signal.SIGKILL


def test_what_an_environment_prints_is_not_taken_for_an_answer(capfd):
    with contextlib.closing(Fleet(odd_one(says=".!rs" * 50), 2, workers=1)) as fleet:
        fleet.reset(seed=0)
        for _ in range(3):
            seen, rewards, *_ = fleet.step(np.array([0, 1]))
            np.testing.assert_array_equal(rewards, 1.0)
            assert seen[0] == seen[1]
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count(".!rs" * 50) == 2 * 2 * 4  # printed twice, by two, four times


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("CartPole-v1", 0), "`num_envs` must be a whole number of at least 1, got 0"),
        (("CartPole-v1", 1.5), "`num_envs` must be a whole number of at least 1, got 1.5"),
    ],
)
def test_a_bad_argument_is_one_sentence(arguments, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Fleet(*arguments)
    assert str(error.value) == message


def test_a_bad_number_of_processes_or_id_is_one_sentence():
    with pytest.raises(
        ValueError, match=r"^`workers` must be a whole number of at least 0, got -1"
    ):
        Fleet("CartPole-v1", 2, workers=-1)
    with pytest.raises(ValueError, match=r"^`environment` must be the id of .*, got 'CartPole-v9'"):
        Fleet("CartPole-v9", 2)
    rule = "`environment` must be the id of a Gymnasium environment with its version"
    with pytest.raises(ValueError, match=f"^{rule}, such as 'CartPole-v1', got 'CartPole'$"):
        Fleet("CartPole", 2)
    with pytest.raises(ValueError, match=f"^{rule}, such as 'gymnasium:CartPole-v1', got 'gym"):
        Fleet("gymnasium:CartPole", 2)
