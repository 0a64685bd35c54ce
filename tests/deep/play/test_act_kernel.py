"""Actions in a kernel, run without a GPU, beside those of one policy at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mellowmax import Boltzmann, Mellowmax, Softmax
from mellowmax.deep import HeldTemperature, Network, Policy
from mellowmax.deep.play import act_kernel
from mellowmax.experiments.items.fig11.softmax import BoltzmannOrMellowmax

COUNT = act_kernel.BLOCK + 7  # two programs, the second one not full


def some(softmax, sizes=(8, 16, 4), count=COUNT):
    """Policies, random numbers and observations."""
    keys = jax.random.split(jax.random.key(3), count)
    networks = jax.vmap(lambda key: Network.init(key, sizes))(keys)
    networks = jax.tree.map(lambda x: 4 * x, networks)  # not all actions alike
    uniforms = jax.random.uniform(jax.random.key(4), (count,), jnp.float32)
    observations = jax.random.normal(jax.random.key(5), (count, sizes[0]), jnp.float32)
    return Policy(networks, softmax), uniforms, observations


def parameters():
    return jnp.linspace(0.1, 30.0, COUNT, dtype=jnp.float32)


def of_either():
    kinds, falls_back = ((jnp.arange(COUNT) // every % 2).astype(jnp.float32) for every in (1, 2))
    return BoltzmannOrMellowmax(parameters(), kinds, jnp.ones(COUNT, jnp.float32), falls_back)


@pytest.mark.parametrize(
    "softmax",
    [
        lambda: Mellowmax(parameters()),
        lambda: Boltzmann(parameters()),
        lambda: HeldTemperature(parameters()),
        of_either,
    ],
    ids=["mellowmax", "boltzmann", "held temperature", "either"],
)
def test_actions_of_a_kernel_are_those_of_each_policy(softmax):
    policies, uniforms, observations = some(softmax())
    assert act_kernel._fits(policies, observations)
    actions = act_kernel.act_in_kernel(policies, uniforms, observations, interpret=True)
    one_by_one = [
        int(jax.tree.map(lambda x, i=i: x[i], policies).act(uniforms[i], observations[i]))
        for i in range(COUNT)
    ]
    assert actions.dtype == jnp.int32
    np.testing.assert_array_equal(actions, one_by_one)
    assert len(np.unique(actions)) == 4


def test_a_kernel_is_known_to_the_compiler_of_a_gpu():
    arguments = some(of_either())
    traced = jax.jit(act_kernel.act_in_kernel).trace(*arguments)
    try:
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    except RuntimeError as error:
        if "GPU" not in str(error):
            raise
        pytest.skip("this JAX makes kernels where there is a GPU alone")
    assert "triton" in text


class OwnSoftmax(Mellowmax):
    """Nobody knows what its policy is made of."""


@pytest.mark.parametrize(
    ("softmax", "sizes"),
    [
        (lambda: OwnSoftmax(parameters()), (8, 16, 4)),
        (lambda: Mellowmax(parameters()), (6, 16, 4)),
        (lambda: Mellowmax(parameters()), (8, 16, 3)),
        (lambda: Mellowmax(parameters()), (8, 64, 4)),
    ],
    ids=["own softmax", "observations", "actions", "large network"],
)
def test_what_a_kernel_cannot_hold_is_left_to_xla(softmax, sizes):
    made = softmax()
    assert isinstance(made, Softmax)
    policies, uniforms, observations = some(made, sizes)
    assert not act_kernel._fits(policies, observations)
    expected = jax.vmap(Policy.act)(policies, uniforms, observations)
    np.testing.assert_array_equal(act_kernel.act(policies, uniforms, observations), expected)
