"""Evaluation of a policy: episodes without learning, and an episode as pictures."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Generator
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.compiled_programs import keep_compiled_programs
from .._common.evaluation import Evaluation
from .._common.threads import cores
from .._typing import Key
from .environment import PlayableEnvironment, observation_of
from .environment.argument import Environment, environment_of
from .episodes import Episodes
from .keys import evaluation_keys
from .log import EpisodeLog
from .network import Network, Policy
from .observation import Seen, in_arrays, unmasked
from .play import player_of
from .play.player import WIDTH
from .trainable import trainable

__all__ = ["EvaluateProgress", "Evaluation", "evaluate", "watch"]

BATCH = 8
"""How many episodes a lane plays at a time."""


@dataclasses.dataclass(frozen=True)
class EvaluateProgress:
    """How far an evaluation has come."""

    episodes: int
    """The number of episodes played so far."""
    total: int
    """The number of episodes to be played."""
    mean_return: float
    """The mean return of the episodes played so far; short episodes are over first."""
    seconds: float
    """The time since the start."""

    @property
    def share(self) -> float:
        """The part of the evaluation that is done, from 0 to 1."""
        return self.episodes / self.total


def evaluate(
    policy: Policy,
    environment: Environment,
    *,
    episodes: int = 100,
    seed: int | Key = 0,
    max_steps: int | None = None,
    workers: int | None = None,
    action_mask: bool = False,
    callback: Callable[[EvaluateProgress], None] | None = None,
) -> Evaluation:
    """Play episodes with a policy.

    Args:
        policy: such as one of `DeepResult.policies`, or `load_policy(checkpoint).policy`.
        environment: as for `train`; what the policy sees and does must have the same size there.
        episodes: how many episodes to play.
        seed: a whole number, or a JAX key. No episode of a training is played again.
        max_steps: as for `train`.
        workers: as for `train`.
        action_mask: as for `train`.
        callback: called with the progress whenever some episodes have been played.

    Returns:
        The return and the length of each episode. Returns are not discounted.

    Raises:
        ValueError: for an argument that does not fit.
        RuntimeError: when a Gymnasium environment fails, or returns what it has not declared.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import Network, Policy, evaluate
        >>> policy = Policy(Network.init(jax.random.key(0), (4, 16, 2)), Boltzmann(0.0))
        >>> result = evaluate(policy, "CartPole-v1", episodes=50, workers=0)
        >>> 15 < result.mean < 30  # a random policy
        True
    """
    keep_compiled_programs()
    policy = _playable(policy)
    episodes = checks.whole("episodes", episodes, 1)
    if callback is not None:
        checks.function("callback", callback, "a function or None")
    made = environment_of(
        environment, max_steps, workers, default_workers=cores(), action_mask=action_mask
    )
    _check_sizes(policy, made)
    keys = evaluation_keys(seed, 0, WIDTH)
    player = player_of("episodes", made)
    policies = jax.tree.map(lambda x: jnp.broadcast_to(x, (WIDTH, *np.shape(x))), policy)
    lanes = min(WIDTH, -(-episodes // BATCH))
    until = -(-episodes // (lanes * BATCH))
    log = EpisodeLog.empty(lanes, until * BATCH, BATCH)
    since = time.monotonic()
    rounds = player.episodes(lambda: policies, keys, [0] * lanes, until, BATCH)
    with contextlib.closing(rounds):
        for round in rounds:
            batch = round.episodes
            assert batch is not None
            log.add(round.lanes, np.asarray(_returns(batch)), np.asarray(batch.lengths))
            if callback is not None:
                count = min(int((log.lengths > 0).sum()), episodes)
                mean = float(np.nanmean(log.returns, dtype=np.float64))
                callback(EvaluateProgress(count, episodes, mean, time.monotonic() - since))
    return Evaluation(log.returns.reshape(-1)[:episodes], log.lengths.reshape(-1)[:episodes])


@functools.partial(jax.jit)
def _returns(episodes: Episodes) -> jax.Array:
    """The returns of the episodes of some lanes, `[L, B]`."""
    return jax.vmap(Episodes.returns)(episodes)


def _playable(policy: Policy) -> Policy:
    """The policy with a network that is arrays alone to JAX."""
    checks.instance("policy", policy, Policy, "a Policy")
    return Policy(trainable(cast(eqx.Module, policy.network)), policy.softmax)


def _check_sizes(policy: Policy, environment: PlayableEnvironment) -> None:
    """Raise unless a policy fits an environment."""
    wanted = (environment.n_observations, environment.n_actions)
    if isinstance(policy.network, Network):
        *axes, _, n_inputs = policy.network.layers[0].weight.shape
        if axes:
            raise ValueError(f"`policy` must be one policy, got many with the axes {tuple(axes)}")
        fits: tuple[object, object] = (n_inputs, policy.network.n_outputs)
    else:
        fits = (wanted[0], _outputs(policy, environment))
    if fits != wanted:
        raise ValueError(
            f"`policy` must be of {wanted[0]} observations and {wanted[1]} actions to play in "
            f"this environment, got one of {fits[0]} and {fits[1]}"
        )


def _outputs(policy: Policy, environment: PlayableEnvironment) -> object:
    """How many outputs a network of one's own has for an observation; their shape if not [A]."""
    seen = unmasked(observation_of(environment))
    try:
        outputs = jax.eval_shape(policy.network, seen)
    except (TypeError, ValueError) as error:
        rule = "`policy` must be one policy with a network for the observations of this environment"
        raise ValueError(f"{rule}, got one that fails: {' '.join(str(error).split())}") from error
    shape = getattr(outputs, "shape", None)
    return shape[0] if shape is not None and len(shape) == 1 else shape


def watch(
    policy: Policy,
    environment: str,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    action_mask: bool = False,
) -> Generator[tuple[npt.NDArray[np.uint8], float]]:
    """Play one episode of a Gymnasium environment, picture by picture.

    Args:
        policy: as for `evaluate`.
        environment: the id of an environment that can be rendered as an array.
        seed: the seed of the episode and of the actions.
        max_steps: as for `evaluate`.
        action_mask: as for `evaluate`.

    Returns:
        A generator of pictures, `[height, width, 3]`, each with the sum of the rewards up to it.

    Raises:
        ValueError: for an environment that cannot be rendered, or that the policy does not fit.
    """
    policy = _playable(policy)
    checks.instance("environment", environment, str, "the id of a Gymnasium environment")
    seed = checks.whole("seed", seed, 0)
    made = environment_of(environment, max_steps, action_mask=action_mask)
    from ..environments.fleet.flatten import make_discrete

    _check_sizes(policy, made)
    with contextlib.closing(make_discrete(environment)) as env:
        modes = env.metadata.get("render_modes", [])
    if "rgb_array" not in modes:
        rule = "`environment` must have the render mode 'rgb_array' to be watched"
        raise ValueError(f"{rule}, got {environment!r} with {modes}")
    return _pictures(policy, environment, seed, made)


def _pictures(
    policy: Policy, environment: str, seed: int, made: PlayableEnvironment
) -> Generator[tuple[npt.NDArray[np.uint8], float]]:
    from ..environments.fleet.flatten import make_discrete

    like = observation_of(made)
    masked = isinstance(like, Seen)
    with contextlib.closing(make_discrete(environment, masked, render_mode="rgb_array")) as env:
        act = jax.jit(Policy.act)
        draw = np.random.default_rng([1, seed]).random  # not the numbers that the environment draws
        observation, _ = env.reset(seed=seed)
        total = 0.0
        yield np.asarray(env.render()), total
        for _ in range(made.max_steps):
            action = act(policy, np.float32(draw()), in_arrays(like, observation))
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total += float(reward)
            yield np.asarray(env.render()), total
            if terminated or truncated:
                return
