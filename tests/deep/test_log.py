"""What is kept of episodes is what was played, whatever the bins and the order of the runs."""

from __future__ import annotations

import numpy as np
import pytest

from mellowmax.deep.log import EpisodeLog

RUNS, EPISODES, BATCH = 3, 240, 10


def played(seed=0, low=0.0):
    rng = np.random.default_rng(seed)
    returns = rng.normal(low, 100.0, (RUNS, EPISODES)).astype(np.float32)
    return returns, rng.integers(1, 1000, (RUNS, EPISODES), np.int32)


def add_all(log, returns, lengths, seed=0):
    """Batches of one or two runs at a time, in random order, with padding."""
    rng = np.random.default_rng(seed)
    done = [0] * RUNS
    while min(done) < EPISODES:
        some = [run for run in rng.permutation(RUNS)[:2].tolist() if done[run] < EPISODES]
        lanes = [*some, 99]
        batches = [
            np.concatenate([x[[run], done[run] : done[run] + BATCH] for run in some] + [x[:1, :10]])
            for x in (returns, lengths)
        ]
        log.add(np.array(lanes), *batches)
        for run in some:
            done[run] += BATCH


@pytest.mark.parametrize("bin", [1, 10, 40])
def test_a_bin_has_the_means_of_its_episodes(bin):
    returns, lengths = played()
    log = EpisodeLog.empty(RUNS, EPISODES, BATCH, bin)
    add_all(log, returns, lengths)
    for got, numbers in ((log.mean_returns(), returns), (log.mean_lengths(), lengths)):
        expected = numbers.reshape(RUNS, -1, bin).mean(-1, dtype=np.float64)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    np.testing.assert_allclose(log.last, returns[:, -BATCH:].mean(1), rtol=1e-6)


def test_a_bin_that_is_not_whole_is_missing():
    returns, lengths = played()
    log = EpisodeLog.empty(RUNS, EPISODES, BATCH, 40)
    for first in range(0, 50, BATCH):
        log.add([1], returns[[1], first : first + BATCH], lengths[[1], first : first + BATCH])
    assert np.isfinite(log.mean_returns()).tolist()[1] == [True] + [False] * 5
    assert (log.mean_lengths()[1] > 0).tolist() == [True] + [False] * 5
    assert not np.isfinite(log.mean_returns()[[0, 2]]).any()


@pytest.mark.parametrize("threshold", [0.0, 5.0, 15.0, 1e9])
def test_solved_after_the_first_hundred_episodes_in_a_row_above_the_threshold(threshold):
    returns, lengths = played(3, low=5.0)
    log = EpisodeLog.empty(RUNS, EPISODES, BATCH, 40, threshold)
    add_all(log, returns, lengths)
    for run in range(RUNS):
        means = [returns[run, i - 100 : i].mean(dtype=np.float64) for i in range(100, EPISODES + 1)]
        first = [100 + i for i, mean in enumerate(means) if mean > threshold]
        assert log.solved[run] == (first[0] if first else 0)
    assert (log.solved == 0).all() == (threshold == 1e9)
    assert threshold != 15.0 or len(set(log.solved.tolist())) > 1


def test_a_log_is_resumed_in_the_middle_of_a_bin():
    returns, lengths = played()
    half, whole = (EpisodeLog.empty(RUNS, n, BATCH, 40, 5.0) for n in (120, EPISODES))
    for first in range(0, 110, BATCH):  # in the middle of a bin
        half.add(range(RUNS), returns[:, first : first + BATCH], lengths[:, first : first + BATCH])
    whole.restore({name: array.copy() for name, array in half.arrays().items()})
    for first in range(110, EPISODES, BATCH):
        whole.add(range(RUNS), returns[:, first : first + BATCH], lengths[:, first : first + BATCH])
    at_once = EpisodeLog.empty(RUNS, EPISODES, BATCH, 40, 5.0)
    add_all(at_once, returns, lengths)
    for name, array in at_once.arrays().items():
        np.testing.assert_array_equal(whole.arrays()[name], array)
