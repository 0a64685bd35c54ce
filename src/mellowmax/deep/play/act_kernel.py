"""The actions of many policies at once: on a GPU in one kernel.

An action takes little arithmetic: the products of a small network, an inverse temperature, a
choice. XLA makes some thirty kernels of it, and launching them takes longer than running them.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..._rows.libraries.pallas import in_kernel
from ..._typing import PyTree
from ...policies import choose
from ...softmax import OTHERS
from ..network import Network, Policy

__all__ = ["act", "act_in_kernel"]

BLOCK = 32
"""The number of slots of a program of the kernel: the number of threads that run in step."""
MOST_NUMBERS = 512
"""The largest number of weights of a policy in a kernel, which holds them all in registers."""


def act(policies: Policy, uniforms: jax.Array, observations: PyTree) -> jax.Array:
    """The actions that uniform random numbers in [0, 1) choose.

    Args:
        policies: one for each slot, with an axis of slots first.
        uniforms: `[P]`
        observations: `[P, D]`, or a tree of arrays with an axis of slots first
    """
    arguments = (policies, uniforms, observations)
    if jax.default_backend() == "cpu" or not _fits(policies, observations):
        return _one_by_one(*arguments)
    return lax.platform_dependent(*arguments, cuda=act_in_kernel, default=_one_by_one)


def _one_by_one(policies: Policy, uniforms: jax.Array, observations: PyTree) -> jax.Array:
    return jax.vmap(Policy.act)(policies, uniforms, observations)


def _fits(policies: Policy, observations: PyTree) -> bool:
    """Can a kernel hold such policies? All sizes must be powers of two, and the weights few."""
    kind, library = type(policies.softmax), __name__.partition(".")[0]
    tried = kind.__module__.partition(".")[0] == library and kind not in OTHERS.values()
    tried = tried and getattr(policies.softmax, "prior", None) is None
    network = policies.network
    tried = tried and type(network) is Network and _is_known(network)
    tried = tried and isinstance(observations, jax.Array) and observations.ndim == 2
    arrays = jax.tree.leaves((policies, observations))
    sizes = [n for x in arrays for n in x.shape[1:]]
    numbers = sum(math.prod(x.shape[1:]) for x in arrays)
    return (
        tried
        and all(x.dtype == jnp.float32 for x in arrays)
        and all(n & (n - 1) == 0 for n in sizes)
        and numbers <= MOST_NUMBERS
    )


def _is_known(network: Network) -> bool:
    """Are its outputs those that `_outputs` computes?"""
    return network.activation == "relu" and not network.duelling


def act_in_kernel(
    policies: Policy, uniforms: jax.Array, observations: jax.Array, *, interpret: bool = False
) -> jax.Array:
    """`act`, in a kernel.

    Args:
        policies: as for `act`.
        uniforms: as for `act`.
        observations: as for `act`.
        interpret: run it without a GPU, slowly, as a test does?
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    arrays, structure = jax.tree.flatten((policies, uniforms, observations))
    count = uniforms.shape[0]
    blocks = -(-count // BLOCK)

    def kernel(*references: jax.Ref) -> None:
        *sources, target = references
        slot = pl.program_id(0) * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32)
        within = jnp.minimum(slot, count - 1)
        block = [
            source[_entries(array.shape[1:], within)]
            for source, array in zip(sources, arrays, strict=True)
        ]
        policy, uniform, observation = jax.tree.unflatten(structure, block)
        with in_kernel():
            assert isinstance(policy.network, Network)
            values = _outputs(policy.network, observation)
            chosen = choose(policy.softmax.policy(values, axis=0), uniform, axis=0)
        target[slot] = chosen.astype(jnp.int32)

    actions: jax.Array = pl.pallas_call(
        kernel,
        grid=(blocks,),
        out_shape=jax.ShapeDtypeStruct((blocks * BLOCK,), jnp.int32),
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name="act",
    )(*(x.reshape(-1) for x in arrays))
    return actions[:count]


def _entries(shape: tuple[int, ...], slot: jax.Array) -> jax.Array:
    """The indices of the numbers of slots in a flat array `[P, *shape]`, with the slots last."""
    entries = (slot * math.prod(shape)).reshape((1,) * len(shape) + slot.shape)
    for axis, size in enumerate(shape):
        along = [1] * (len(shape) + 1)
        along[axis] = size
        number = jnp.arange(size, dtype=jnp.int32) * math.prod(shape[axis + 1 :])
        entries = entries + number.reshape(along)
    return entries


def _outputs(network: Network, observations: jax.Array) -> jax.Array:
    """The outputs of networks, with an axis of slots last in all arrays."""
    x = observations
    for layer in network.layers[:-1]:
        x = jax.nn.relu(_times(layer, x))
    return _times(network.layers[-1], x)


def _times(layer: eqx.nn.Linear, x: jax.Array) -> jax.Array:
    """A product, as a sum: Triton has no products of small matrices."""
    assert layer.bias is not None
    return jnp.sum(layer.weight * x[None], axis=1) + layer.bias
