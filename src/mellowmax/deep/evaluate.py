"""What a policy earns: episodes from which nothing is learned, and one of them to look at."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.evaluation import Evaluation
from .._common.runs import key_data, run_keys
from .._common.threads import cores
from ..environments.fleet.worker import flat
from .network import Policy
from .reinforce import State, reinforce
from .rollouts.gymnasium import Vector
from .rollouts.rollouts import WIDTH
from .train import source_of

__all__ = ["Evaluation", "check_sizes", "evaluate", "watch"]


OF_A_LANE = 8
"""How many episodes a lane plays at a time."""
OTHER_THAN_TRAINING = np.uint32(2**32 - 1)
"""Runs are numbered from 0 on, and so far from here: no episode of a training is played again."""


def evaluate(
    policy: Policy,
    environment: Any,
    *,
    episodes: int = 100,
    seed: Any = 0,
    max_steps: int | None = None,
    workers: int | None = None,
) -> Evaluation:
    """Let a policy play episodes.

    Args:
        policy: such as one of `Training.policies`, or `load_policy(checkpoint).policy`.
        environment: as for `train`; what the policy sees and does must have the same size there.
        episodes: how many.
        seed: a whole number, or a JAX key.
        max_steps: as for `train`.
        workers: as for `train`.

    Raises:
        ValueError: for an argument that does not fit.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import Network, Policy, evaluate
        >>> policy = Policy(Network.init(jax.random.key(0), (4, 16, 2)), Boltzmann(0.0))
        >>> result = evaluate(policy, "CartPole-v1", episodes=50, workers=0)
        >>> 15 < result.mean < 30  # a random policy
        True
    """
    if not isinstance(policy, Policy):
        raise ValueError(f"`policy` must be a Policy, got {policy!r}")
    episodes = checks.whole("episodes", episodes, 1)
    workers = cores() if workers is None else workers
    source = source_of(environment, max_steps, workers)
    check_sizes(policy, source.n_observations, source.n_actions)
    lanes = min(WIDTH, -(-episodes // OF_A_LANE))
    learner = reinforce(policy.softmax, 0.0, batch=OF_A_LANE)  # batches to learn nothing from
    state = State(policy.network, None, learner.optimiser.init((policy.network, None)))
    learners, states = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (WIDTH, *np.shape(x))), (learner, state)
    )
    data = np.tile(key_data(seed, ()), (WIDTH, 1))
    keys = run_keys(data, OTHER_THAN_TRAINING - np.arange(WIDTH, dtype=np.uint32))
    played: list[list[Any]] = [[] for _ in range(lanes)]
    with contextlib.closing(source):
        rounds = -(-episodes // (lanes * OF_A_LANE))
        for advance in source.advance(learners, states, keys, [0] * lanes, rounds):
            for lane, *of_lane in zip(advance.lanes, advance.returns, advance.lengths, strict=True):
                played[lane].append(of_lane)
    returns, lengths = (
        np.concatenate([np.concatenate([x[i] for x in lane]) for lane in played])[:episodes]
        for i in (0, 1)
    )
    return Evaluation(returns, lengths)


def check_sizes(policy: Policy, n_observations: int, n_actions: int) -> None:
    """Raise unless a policy fits an environment."""
    layers = policy.network.layers
    if axes := layers[0].weight.shape[:-2]:
        raise ValueError(f"`policy` must be one policy, got many with the axes {axes}")
    fits = (layers[0].weight.shape[-1], layers[-1].weight.shape[-2])
    if fits != (n_observations, n_actions):
        raise ValueError(
            f"`policy` must be of {n_observations} observations and {n_actions} actions to play in "
            f"this environment, got one of {fits[0]} and {fits[1]}"
        )


def watch(
    policy: Policy, environment: str, *, seed: int = 0, max_steps: int | None = None
) -> Generator[tuple[Any, float]]:
    """Play one episode of a Gymnasium environment, picture by picture.

    Args:
        policy: as for `evaluate`.
        environment: the id of one that can show itself as an array.
        seed: of the episode and of the actions.
        max_steps: as for `evaluate`.

    Yields:
        A picture, `[height, width, 3]`, and what has been earned up to it.

    Raises:
        ValueError: for an environment that cannot show itself, or that the policy does not fit.
    """
    with contextlib.closing(Vector(environment, max_steps=max_steps)) as source:
        check_sizes(policy, source.n_observations, source.n_actions)
    with contextlib.closing(flat(environment)) as env:
        modes = env.metadata.get("render_modes", [])
    if "rgb_array" not in modes:
        rule = "`environment` must have the render mode 'rgb_array' to be watched"
        raise ValueError(f"{rule}, got {environment!r} with {modes}")
    with contextlib.closing(flat(environment, render_mode="rgb_array")) as env:
        act = jax.jit(Policy.act)
        draw = np.random.default_rng([1, seed]).random  # not the numbers that the environment draws
        seen, _ = env.reset(seed=seed)
        earned = 0.0
        yield env.render(), earned
        for _ in range(source.max_steps):
            action = act(policy, np.float32(draw()), seen.astype(np.float32))
            seen, reward, terminated, truncated, _ = env.step(int(action))
            earned += float(reward)
            yield env.render(), earned
            if terminated or truncated:
                return
