"""Paths of an MDP under a policy, many at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._common import checks
from .._common.evaluation import check_policy
from .._common.shown import shown
from .._typing import ArrayLike, Floats, Integers
from ..mdp import MDP
from ..mdp.labels import Labels
from .arguments import arrays_of_each_step, of_each_step
from .table import called, frame

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..mdp.generators import Seed

__all__ = ["Simulation", "simulate"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Paths: the states, actions and rewards of each.

    A path may end before the last step, in a terminal state or at the end of the episode, which is
    the state `S`. It stays there, with the action -1 and the reward 0.
    """

    states: Integers
    """`[paths, steps + 1]`, the state before each step, and after the last."""
    actions: Integers
    """`[paths, steps]`, the action of each step; -1 after the end."""
    rewards: Floats
    """`[paths, steps]`, the reward of each step; 0 after the end."""
    returns: Floats
    """`[paths]`, the sum of the rewards, each times the discounts of the steps before it."""
    state_labels: Labels = None
    """What the states are called; None for their numbers."""
    action_labels: Labels = None
    """What the actions are called; None for their numbers."""

    @property
    def lengths(self) -> Integers:
        """`[paths]`, the number of steps before the end."""
        return (self.actions >= 0).sum(1)

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each step that was taken."""
        path, step = np.nonzero(self.actions >= 0)
        state, action = self.states[path, step], self.actions[path, step]
        return frame(
            {
                "path": path,
                "time": step,
                "state": called(self.state_labels, state),
                "action": called(self.action_labels, action),
                "reward": self.rewards[path, step],
            }
        )

    def __repr__(self) -> str:
        paths, steps = self.actions.shape
        return f"Simulation(paths={paths}, steps={steps}, mean_return={self.returns.mean():.4g})"


def simulate(
    policy: ArrayLike,
    mdp: MDP | Sequence[MDP],
    steps: int,
    *,
    paths: int = 1,
    start: int | ArrayLike = 0,
    seed: Seed = 0,
) -> Simulation:
    """Paths of an MDP under a policy, with their rewards and discounted returns.

    Args:
        policy: `[S, A]`, the probability of each action in each state, or `[T, S, A]`, those of
            each step.
        mdp: the MDP, or a list of one for each step.
        steps: the most steps of a path.
        paths: the number of paths.
        start: the state where every path starts, or `[S]`, the probability of each.
        seed: of the random numbers: the same seed gives the same paths.

    Returns:
        A `Simulation`.

    Raises:
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above.

    Examples:
        The mean of the returns is near the value:

        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> from mellowmax.planning import solve
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> drawn = simulate(solution.policy, two_state(), 1000, paths=10_000)
        >>> print(drawn.returns.mean().round(2), solution.value[0].round(2))
        0.44 0.43
        >>> print(drawn.states[0, :5], drawn.actions[0, :5], drawn.lengths[0])
        [0 0 0 0 0] [1 1 1 1 0] 11
    """
    if isinstance(policy, MDP):
        raise TypeError("`policy` must come first, as in simulate(policy, mdp, 100), got the MDP")
    steps = checks.whole("steps", steps, 1)
    paths = checks.whole("paths", paths, 1)
    mdps: list[MDP] = of_each_step("mdp", mdp, MDP, "an MDP", steps)
    given = arrays_of_each_step("policy", policy, 3, steps)
    if given[0] is policy and isinstance(mdp, MDP):  # the same at each step
        policies = [_checked(policy, mdp)] * steps
    else:
        policies = [_checked(one, model) for one, model in zip(given, mdps, strict=True)]
    random = checks.generator("seed", seed)

    states = np.empty((steps + 1, paths), np.int32)
    actions = np.full((steps, paths), -1, np.int32)
    rewards, returns = np.zeros((steps, paths)), np.zeros(paths)
    states[0] = random.choice(mdps[0].n_states, paths, p=_start(start, mdps[0]))
    discount = 1.0
    for t, (model, weights) in enumerate(zip(mdps, policies, strict=True)):
        state = states[t + 1] = states[t]
        going = np.flatnonzero(np.append(~model.terminal, False)[state])
        uniform = random.random((2, paths))[:, going]
        s = state[going]
        a = _drawn(weights[s], uniform[0])
        k = _drawn(model.probabilities[s, a], uniform[1])
        states[t + 1, going] = k if model.successors is None else model.successors[s, a, k]
        actions[t, going] = a
        earned = model.rewards[s, a] if model.rewards.ndim == 2 else model.rewards[s, a, k]
        rewards[t, going] = earned
        returns[going] += discount * earned
        discount *= model.discount
    names = mdps[0].state_labels, mdps[0].action_labels
    return Simulation(states.T, actions.T, rewards.T, returns, *names)


def _checked(policy: ArrayLike, mdp: MDP) -> Floats:
    shape = (mdp.n_states, mdp.n_actions)
    return check_policy(policy, shape, mdp.allowed, mdp.name_of_state)


def _drawn(probabilities: Floats, uniform: Floats) -> Integers:
    """An index for each row of probabilities, by a number in [0, 1) for each."""
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative /= cumulative[:, -1:]  # whose last is 1 then, and none of probability 0 is drawn
    return (cumulative <= uniform[:, None]).sum(1)


def _start(start: int | ArrayLike, mdp: MDP) -> Floats:
    """`[S]`, the probability of each state at the start."""
    if checks.array("start", start).ndim == 0:
        state = checks.whole("start", start, 0, mdp.n_states - 1)
        return np.eye(1, mdp.n_states, state)[0]
    given = checks.numbers("start", start)
    if given.shape != (mdp.n_states,):
        rule = f"`start` must be a state or {mdp.n_states} probabilities"
        raise ValueError(f"{rule}, got the shape {given.shape}")
    if not (given >= 0).all() or abs(given.sum() - 1) > 1e-6:
        raise ValueError(f"`start` must be a distribution, got {shown(start)}")
    return given / given.sum()
