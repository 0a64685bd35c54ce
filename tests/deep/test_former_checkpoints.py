"""Checkpoints that former versions wrote are read, and resumed to the numbers of a new training.

`files/reinforce_0_1.npz` was written by mellowmax 0.1.0, after 8 of the episodes below;
`files/dqn.npz` by 0.2.0 before its release, after 10.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from mellowmax import Boltzmann, Max, Mellowmax
from mellowmax.cli.describe import describe_training
from mellowmax.deep import dqn, load_policy, mlp, reinforce, train
from mellowmax.environments import two_state

FILES = Path(__file__).parent / "files"
REINFORCE = reinforce(
    Boltzmann(1.0), 0.05, batch=4, network=mlp(2, 1), baseline="leave-one-out", discount=1.0
)
DQN = dqn(
    Mellowmax(5.0),
    0.01,
    target=3,
    network=mlp(2, 1),
    capacity=8,
    minibatch=4,
    learning_starts=4,
    train_frequency=3,
    exploration_steps=50,
)


@pytest.mark.parametrize(
    ("file", "learner", "runs", "softmax"),
    [("reinforce_0_1.npz", REINFORCE, 2, Boltzmann(1.0)), ("dqn.npz", DQN, 1, Max())],
)
def test_a_former_checkpoint_is_resumed(file, learner, runs, softmax, tmp_path):
    """The weights up to rounding, which other processors do otherwise."""
    path = tmp_path / "runs-00000.npz"
    shutil.copy(FILES / file, path)
    options = {"environment": two_state.params(), "runs": runs, "max_steps": 8, "episodes": 40}
    with np.load(path) as before:
        done = int((before["lengths"][0] > 0).sum())
    assert 0 < done < 40
    assert load_policy(tmp_path).policy.softmax == softmax
    rows = dict(describe_training([path]).rows)
    assert "others" not in str(rows)
    resumed, anew = train(learner, checkpoint=tmp_path, **options), train(learner, **options)
    np.testing.assert_array_equal(resumed.lengths, anew.lengths)
    assert len({*anew.lengths.ravel()}) > 1
    for x, y in zip(*map(jax.tree.leaves, (resumed.policies, anew.policies)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    with np.load(path) as after:
        assert "others" not in str(after["settings"])
