"""Recorders by themselves: bins of any width, and sums that do not lose their small terms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax.learning.record import BLOCK, BinRecorder


@pytest.mark.parametrize(("n_bins", "width"), [(700, 1), (5, 128), (3, 200)])
def test_bins_are_means_whatever_their_width(n_bins, width):
    """Rewards come in blocks of 128 steps, wherever a bin ends."""
    n = n_bins * width
    rewards = np.random.default_rng(0).normal(size=-(-n // BLOCK) * BLOCK).astype(np.float32)
    recorder = BinRecorder(n_bins, width)
    record, absorb = recorder.begin(), jax.jit(recorder.absorb)
    for first in range(0, len(rewards), BLOCK):
        steps = first + np.arange(BLOCK)
        live = recorder.live(record, steps)
        emitted = recorder.observe(record, None, rewards[steps], None, live)[1]
        record = absorb(record, jnp.int32(first), emitted)
    got = recorder.result(record)["rewards"]
    expected = rewards[:n].astype(np.float64).reshape(n_bins, width).mean(1)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_mean_over_many_steps_is_not_rounded_away():
    """Half a million rewards of 0.1, which a running sum in float32 gets wrong by 1e-3."""
    n_blocks = 4000
    recorder = BinRecorder(1, n_blocks * BLOCK)
    rewards = jnp.full(BLOCK, 0.1, jnp.float32)

    @jax.jit
    def run():
        def absorb(i, record):
            return recorder.absorb(record, i * BLOCK, rewards)

        return recorder.result(jax.lax.fori_loop(0, n_blocks, absorb, recorder.begin()))

    np.testing.assert_allclose(run()["rewards"], 0.1, rtol=3e-6)
    plain = np.cumsum(np.full(n_blocks * BLOCK, 0.1, np.float32))[-1] / (n_blocks * BLOCK)
    assert abs(plain - 0.1) > 1e-4
