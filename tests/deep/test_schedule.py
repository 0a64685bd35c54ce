"""Parameters that change while a run learns."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.trainings import assert_same
from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.cli.describe import describe_training
from mellowmax.deep import dqn, linear, load_policy, mlp, ppo, reinforce, sac, train
from mellowmax.environments import two_state

LEARNERS = {
    "reinforce": lambda softmax, rate: reinforce(softmax, rate, batch=4, network=mlp(4, 1)),
    "dqn": lambda softmax, rate: dqn(
        softmax, rate, network=mlp(4, 1), capacity=50, minibatch=8, learning_starts=10
    ),
}
RATES = linear(0.02, 0.01, 4)


def trained(algorithm, softmax, rate, episodes=16, **options):
    options = {"max_steps": 16, **options}
    return train(
        LEARNERS[algorithm](softmax, rate), two_state.params(), episodes=episodes, **options
    )


def test_it_changes_evenly_and_then_no_more():
    softmax = linear(Boltzmann(2.0), Boltzmann(6.0), 8)
    got = [float(softmax.at(jnp.uint32(n)).beta) for n in (0, 2, 8, 100)]
    np.testing.assert_allclose(got, [2, 3, 6, 6])


@pytest.mark.parametrize("algorithm", ["dqn", pytest.param("reinforce", marks=pytest.mark.release)])
def test_one_that_stays_is_a_constant(algorithm):
    """Up to rounding; and one that changes learns something else."""
    one, changing = Boltzmann(2.0), linear(Boltzmann(2.0), Boltzmann(2.0), 3)
    rates = (0.02, linear(0.02, 0.02, 3))
    still, also = (trained(algorithm, *pair) for pair in zip((one, changing), rates, strict=True))
    moved = trained(algorithm, linear(Boltzmann(2.0), Boltzmann(9.0), 3), RATES)
    leaves = [jax.tree.leaves(result.policies.network)[-1:] for result in (still, also, moved)]
    np.testing.assert_allclose(leaves[0][0], leaves[1][0], rtol=1e-3, atol=1e-5)
    assert abs(np.asarray(leaves[0][0]) - leaves[2][0]).max() > 1e-3


def test_a_run_is_resumed_in_the_middle_of_a_change(tmp_path):
    """Two settings at a time; the policy has the softmax of the last update."""
    softmax = linear(Boltzmann(1.0), Boltzmann([3.0, 5.0]), 8)
    whole = trained("reinforce", softmax, RATES, 16)
    for episodes in (8, 16):
        part = trained("reinforce", softmax, RATES, episodes, checkpoint=tmp_path)
    assert_same(part, whole)
    np.testing.assert_allclose(whole.policies.softmax.beta[:, 0], [2.0, 3.0])  # after 4 updates
    rows = dict(describe_training([tmp_path / "runs-00000.npz"]).rows)
    assert rows["learning rate"] == "changes with updates"
    assert load_policy(tmp_path, softmax=Boltzmann(2.0)).policy.softmax == Boltzmann(2.0)
    with pytest.raises(
        ValueError, match="`softmax` must be of the class of the training, linear B"
    ):
        load_policy(tmp_path)
    other = linear(Boltzmann(1.0), Boltzmann([3.0, 5.5]), 8)
    with pytest.raises(ValueError, match="a training with the same settings, got another"):
        trained("reinforce", other, RATES, 16, checkpoint=tmp_path)


def test_the_targets_have_the_softmax_of_their_update(rng):
    learner = dqn(linear(Mellowmax(1.0), Mellowmax(9.0), 4), network=mlp(4, 1))
    constant = dataclasses.replace(learner, softmax=Mellowmax(5.0))
    state = learner.init(jax.random.key(0), 3, 2)
    state = dataclasses.replace(state, updates=jnp.uint32(2))
    step = rng.normal(size=(5, 3)).astype(np.float32)
    replay = state.replay
    for row in step:
        replay = replay.add((row, 1, 0.5, False, row))
    steps = replay.sample(jax.random.key(1), 8)
    np.testing.assert_allclose(
        learner.targets(state, steps), constant.targets(state, steps), rtol=1e-5
    )


def test_actor_critics_change_with_their_updates():
    """Those of SAC are counted by the steps of the run, of which an actor knows."""
    softmax = linear(Boltzmann(1.0), Boltzmann(2.0), 10)
    learner = sac(softmax, network=mlp(4, 1), learning_starts=10, train_frequency=4)
    for steps in (0, 9, 11, 12, 40):
        made = sum(n % 4 == 0 and n >= 10 for n in range(1, steps + 1))
        assert int(learner._updates(jnp.uint32(steps))) == made
    for each in (learner, ppo(softmax, RATES, network=mlp(4, 1))):
        state = each.init(jax.random.key(0), 3, 2)
        state = dataclasses.replace(state, updates=jnp.uint32(5))
        np.testing.assert_allclose(each.policy(state).softmax.beta, 1.5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (Boltzmann(1.0), Mellowmax(1.0), 5),
            ValueError,
            "`end` must be a Boltzmann, as `start` is",
        ),
        ((1.0, Boltzmann(1.0), 5), TypeError, "`end` must be"),
        ((1.0, 2.0, 0), ValueError, r"`updates` must be in \[1, inf\], got 0"),
    ],
)
def test_what_cannot_change_is_refused(arguments, error, message):
    with pytest.raises((error, ValueError), match=message):
        linear(*arguments)


def test_a_schedule_of_the_wrong_kind_is_refused():
    with pytest.raises(TypeError, match=r"`softmax` must be a Softmax .*, got 0\.1"):
        dqn(linear(0.1, 0.2, 3))
    with pytest.raises(TypeError, match=r"`learning_rate` must be a number, got Boltzmann"):
        dqn(Max(), linear(Boltzmann(1.0), Boltzmann(2.0), 3))
    with pytest.raises(ValueError, match="got Max"):
        reinforce(linear(Max(), Max(), 3))
