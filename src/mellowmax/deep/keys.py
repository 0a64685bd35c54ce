"""Every random key of deep reinforcement learning, each made by one function.

A key is a path in this tree, whose branches have the numbers in brackets. Two keys are equal only
if their paths are, so it is enough to compare the branches of each node. Numbers that count
something begin at 0, and branches that exist once have the last numbers of 32 bits.

    seed or key of the setting
    |
    +-- run [number, from 0 up; an evaluation has lanes from 2^32 - 1 down]      run_keys
        |
        +-- first weights [2^32 - 1]                                             first_weights
        |   +-- REINFORCE, PPO, SAC: the networks of the policy [0] and of the
        |   |   baseline or the critics [1, 2]                                   networks
        |   +-- a layer of a network [number]                                    layers
        |
        +-- learning from steps [2^32 - 2]                                       learning
        |   +-- minibatch [steps that the run has taken]                         minibatch
        |
        +-- learning from segments [2^32 - 2]                                    learning
        |   +-- segment [number]                                                 segment
        |       +-- order of the steps in an epoch [number]                      epoch
        |
        +-- batch [number], of a learner of whole episodes                       batches
        |   |
        |   +-- learning [2^32 - 1]                                              learning_batch
        |   |   +-- order of the steps in an epoch [number]                      epoch
        |   |
        |   +-- functional: episode [number]                                     episodes
        |   |
        |   +-- Gymnasium: seeds of the environments [0]                         seeds
        |   +-- Gymnasium: actions [1]
        |       +-- some steps [number]                                          actions
        |
        +-- episode [number], of a learner of single steps                       episode
        |
        +-- environment [number], of a learner of segments                       environments
            +-- episode [number]                                                 episode

    episode
    +-- functional: reset [0]                                                    reset
    |   +-- launch [0], the first of the two keys of the reset                   launch
    +-- functional: step [number + 1]
    |   +-- action [0], step of the environment [1]                              step
    +-- Gymnasium: seed of the environment [0]                                   seeds
    +-- Gymnasium: action [number + 1]                                           action, uniforms

Where two branches of a node have the same number, they belong to different kinds of learners or
environments, and a run has one kind of each. One key is used twice: an environment with a `launch`
begins with the step -1, the second half of its reset, and the path of that step is the path of the
reset. The action of that step is drawn with the key of the launch, and has no effect.

The keys of runs are made by `_common.runs`, for tabular learning too. `watch` draws from NumPy
instead, with its own seed.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from .._common.runs import evaluation_keys, run_keys

__all__ = [
    "action",
    "actions",
    "batches",
    "environments",
    "episode",
    "episodes",
    "epoch",
    "evaluation_keys",
    "first_weights",
    "launch",
    "layers",
    "learning",
    "learning_batch",
    "minibatch",
    "networks",
    "reset",
    "run_keys",
    "seeds",
    "segment",
    "step",
    "uniforms",
]

FIRST_WEIGHTS = 2**32 - 1
LEARNING = 2**32 - 2
LEARNING_BATCH = 2**32 - 1
SEEDS, ACTIONS = 0, 1


def first_weights(run: jax.Array) -> jax.Array:
    """The key of a run's first weights."""
    return jax.random.fold_in(run, FIRST_WEIGHTS)


def networks(first: jax.Array, count: int = 2) -> jax.Array:
    """The keys of the policy's network and of others, `[count]`: a baseline or critics."""
    return jax.random.split(first, count)


def layers(network: jax.Array, count: int) -> jax.Array:
    """The keys of the layers of a network, `[count]`."""
    return jax.random.split(network, count)


def learning(run: jax.Array) -> jax.Array:
    """The key of all that is random in learning from single steps or from segments."""
    return jax.random.fold_in(run, LEARNING)


def minibatch(of_learning: jax.Array, steps: jax.Array) -> jax.Array:
    """The key that draws a minibatch.

    Args:
        of_learning: `learning(run)`.
        steps: how many steps the run has taken.
    """
    return jax.random.fold_in(of_learning, steps)


def segment(of_learning: jax.Array, number: jax.Array) -> jax.Array:
    """The key of all that is random in learning from a segment.

    Args:
        of_learning: `learning(run)`.
        number: of the segment.
    """
    return jax.random.fold_in(of_learning, number)


def batches(runs: jax.Array, numbers: jax.Array) -> jax.Array:
    """The keys of a batch of each run, `[runs]`, from the numbers of the batches."""
    return jax.vmap(jax.random.fold_in)(runs, numbers)


def learning_batch(batch: jax.Array) -> jax.Array:
    """The key of all that is random in learning from a batch of episodes."""
    return jax.random.fold_in(batch, LEARNING_BATCH)


def epoch(of_learning: jax.Array, number: jax.Array) -> jax.Array:
    """The key that shuffles the steps of a batch or of a segment for an epoch.

    Args:
        of_learning: `learning_batch(batch)`, or the key of the segment.
        number: of the epoch.
    """
    return jax.random.fold_in(of_learning, number)


def episodes(batch: jax.Array, count: int) -> jax.Array:
    """The keys of a batch's episodes in a functional environment, `[count]`."""
    return jax.random.split(batch, count)


def environments(run: jax.Array, count: int) -> jax.Array:
    """The keys of the environments of a learner of segments, `[count]`."""
    numbers = jnp.arange(count, dtype=jnp.uint32)
    return jax.vmap(jax.random.fold_in, (None, 0))(run, numbers)


def episode(run: jax.Array, number: jax.Array) -> jax.Array:
    """The key of an episode of a learner of single steps, or of one of segments.

    Args:
        run: the key of the run; of a learner of segments that of one of its environments.
        number: of the episode.
    """
    return jax.random.fold_in(run, number)


def reset(of_episode: jax.Array) -> jax.Array:
    """The key with which an episode of a functional environment begins."""
    return jax.random.fold_in(of_episode, 0)


def launch(of_reset: jax.Array) -> jax.Array:
    """The key of an environment's `launch`: the first of the two that a reset makes of its key."""
    return jax.random.split(of_reset)[0]


def step(of_episode: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The keys of the action and of the environment at a step of a functional environment.

    Args:
        of_episode: the key of the episode.
        number: of the step: from 0 on, or -1 for the step that ends a reset.
    """
    of_action, of_environment = jax.random.split(jax.random.fold_in(of_episode, number + 1))
    return of_action, of_environment


def action(of_episode: jax.Array, number: jax.Array) -> jax.Array:
    """The key of the action at a step in Gymnasium, of a learner of single steps or segments."""
    return jax.random.fold_in(of_episode, number + 1)


def uniforms(of_episode: jax.Array, number: jax.Array, count: int) -> jax.Array:
    """Uniform random numbers for the actions of some steps in Gymnasium, `[count]`.

    Args:
        of_episode: the key of the episode.
        number: of the first of the steps.
        count: how many steps.
    """

    def one(number: jax.Array) -> jax.Array:
        return jax.random.uniform(action(of_episode, number), dtype=jnp.float32)

    return jax.vmap(one)(number + jnp.arange(count, dtype=number.dtype))


def actions(batch: jax.Array, part: int | jax.Array) -> jax.Array:
    """The key of the actions of a batch in Gymnasium, for some steps of all episodes.

    Args:
        batch: the key of the batch.
        part: number of these steps, counted in parts of `CHUNK`.
    """
    return jax.random.fold_in(jax.random.fold_in(batch, ACTIONS), part)


@functools.partial(jax.jit, static_argnums=1)
def seeds(keys: jax.Array, count: int) -> jax.Array:
    """The seeds of environments in Gymnasium, `[keys, count]`: whole numbers of 31 bits.

    Args:
        keys: of batches, or of episodes, which have one seed each.
        count: how many seeds of each key.
    """

    def draw(key: jax.Array) -> jax.Array:
        bits = jax.random.bits(jax.random.fold_in(key, SEEDS), (count,), jnp.uint32)
        return (bits >> 1).astype(jnp.int32)

    return jax.vmap(draw)(keys)
