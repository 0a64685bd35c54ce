"""A reading as numbers of a learner is the reading as arguments of `reinforce`."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from mellowmax import (
    Boltzmann,
    boltzmann_log_policy,
    boltzmann_policy,
    mellowmax,
    mellowmax_log_policy,
    mellowmax_policy,
    mellowmax_temperature,
)
from mellowmax.deep import Episodes, mlp, reinforce
from mellowmax.experiments.items.fig11.readings import READINGS, Weighing, learner_of
from mellowmax.experiments.items.fig11.softmax import BoltzmannOrMellowmax

BATCH, HIDDEN = 3, 4
WORDS = {
    "reward to go": {},
    "whole return": {"reward_to_go": False},
    "normalised": {"normalise": True},
    "others as baseline": {"baseline": "leave-one-out"},
}


def one_of(reading, policy="boltzmann", parameter=2.0):
    """The learner of one row of the table of readings."""
    row = {"policy": policy, "parameter": parameter, "discount": reading.discount}
    row |= {"learning_rate": reading.learning_rate, **reading.weighing._asdict()}
    learner = learner_of(pd.DataFrame([row]).assign(batch=BATCH), HIDDEN)
    return jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float32), learner)


def with_boltzmann(learner, **others):
    """The same with a softmax whose gradient is quick to compile."""
    inner = dataclasses.replace(learner.learner, softmax=Boltzmann(2.0), **others)
    return dataclasses.replace(learner, learner=inner)


@pytest.fixture(scope="module")
def episodes():
    rng = np.random.default_rng(0)
    shape, lengths = (256, BATCH), np.array([9, 40, 130], np.int32)
    return Episodes(
        rng.normal(size=(*shape, 5)).astype(np.float32),
        rng.integers(3, size=shape, dtype=np.int32),
        rng.normal(size=shape).astype(np.float32),
        lengths,
    )


stepped = jax.jit(lambda learner, state, episodes: learner.update(state, episodes))


@pytest.mark.parametrize(
    "reading",
    READINGS,
    ids=lambda reading: f"{reading.name} {reading[1]}",
)
def test_a_reading_is_what_its_words_say(reading, episodes):
    """The advantages; a mean over steps, a sum over ten episodes and a scale are in them too."""
    words = reading.name.split(", ")
    options = {"reward_to_go": True} | {
        k: v for word in words for k, v in WORDS.get(word, {}).items()
    }
    plain = reinforce(Boltzmann(2.0), discount=reading.discount, batch=BATCH, **options)
    factors = {
        "mean over steps": BATCH / episodes.lengths.sum(),
        "sum over episodes": 10.0,
        "divided by 100": 0.01,
    }
    factor = np.prod([factors.get(word, 1.0) for word in words])
    state = plain.init(jax.random.key(1), 5, 3)
    got = one_of(reading).advantages(episodes)
    expected = factor * np.asarray(plain.advantages(state, episodes))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())
    assert (reading.weighing.two_layers == 1.0) == ("two hidden layers" in words)


def test_one_hidden_layer_is_a_second_one_that_stays_as_it_is(episodes):
    learner = with_boltzmann(one_of(READINGS[0]), network=mlp(HIDDEN, 2))
    plain = reinforce(
        Boltzmann(2.0), discount=0.99, batch=BATCH, network=mlp(HIDDEN, 1), reward_to_go=False
    )
    state = learner.init(jax.random.key(1), 5, 3)
    first, second, last = state.network.layers
    np.testing.assert_array_equal(second.weight, np.eye(HIDDEN))
    one = plain.init(jax.random.key(2), 5, 3)
    one = dataclasses.replace(one, network=dataclasses.replace(one.network, layers=(first, last)))
    for _ in range(3):
        state, one = (stepped(x, y, episodes) for x, y in ((learner, state), (plain, one)))
    got, kept, end = state.network.layers
    np.testing.assert_array_equal(kept.weight, np.eye(HIDDEN))
    np.testing.assert_array_equal(kept.bias, 0.0)
    for layer, expected in zip((got, end), one.network.layers, strict=True):
        np.testing.assert_allclose(layer.weight, expected.weight, rtol=1e-5, atol=1e-6)
    assert (np.asarray(got.weight) != np.asarray(first.weight)).any()


def test_two_hidden_layers_learn(episodes):
    learner = one_of(READINGS[0]._replace(weighing=Weighing(two_layers=1.0)))
    learner = with_boltzmann(learner)
    state = learner.init(jax.random.key(1), 5, 3)
    new = stepped(learner, state, episodes)
    for before, after in zip(state.network.layers, new.network.layers, strict=True):
        assert (np.asarray(before.weight) != np.asarray(after.weight)).all()


def test_a_search_that_overflows_falls_back_on_omega():
    """Rows on either side of where `exp(500 (mm - min q))` is the largest double."""
    q = np.array([0.0, 0.3, 0.9, 1.2])
    for scale in (1.0, 2.0):
        q = scale * q
        mm = float(mellowmax(q, 5.0))
        with np.errstate(over="ignore"):
            overflows = np.isinf(np.exp(500 * (mm - q.min())))
        own = mellowmax_policy(q, 5.0)
        expected = boltzmann_policy(q, 5.0) if overflows else own
        got = BoltzmannOrMellowmax(5.0, 1.0, 1.0, 1.0).policy(jnp.asarray(q))
        np.testing.assert_allclose(got, expected, rtol=1e-5)
        np.testing.assert_allclose(
            BoltzmannOrMellowmax(5.0, 1.0, 1.0, 0.0).policy(jnp.asarray(q)), own, rtol=1e-5
        )
        np.testing.assert_allclose(
            BoltzmannOrMellowmax(5.0, 0.0, 1.0, 1.0).policy(jnp.asarray(q)),
            boltzmann_policy(q, 5.0),
            rtol=1e-5,
        )
        assert overflows == (scale == 2.0)


def test_both_policies_as_one_softmax():
    """Boltzmann's, mellowmax's, and mellowmax's with its temperature held: one program for all."""
    parameters, kinds = np.array([3.0, 5.0, 5.0]), np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    q = np.random.default_rng(0).normal(size=4)

    @jax.jit
    @jax.vmap
    def log_policy(parameter, kind):
        one = BoltzmannOrMellowmax(parameter, kind[0], kind[1])
        return one.log_policy(jnp.asarray(q)), jax.grad(lambda q: one.log_policy(q)[1])(q)

    values, slopes = log_policy(parameters, kinds)
    expected = [boltzmann_log_policy(q, 3.0), *[mellowmax_log_policy(q, 5.0)] * 2]
    np.testing.assert_allclose(values, expected, rtol=1e-12)

    def differences(function, step=1e-6):
        return [(function(q + d)[1] - function(q - d)[1]) / (2 * step) for d in step * np.eye(4)]

    held = mellowmax_temperature(q, 5.0)
    for got, function in zip(
        slopes,
        (
            lambda q: boltzmann_log_policy(q, 3.0),
            lambda q: mellowmax_log_policy(q, 5.0),
            lambda q: boltzmann_log_policy(q, held),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(got, differences(function), rtol=1e-7, atol=1e-8)
    assert abs(slopes[1] - slopes[2]).max() > 0.01
