"""The worlds, who acts in them, and what was seen of it.

A world is one of the paper's random MDPs (section 7.1), of 5 states and 3 actions, or an open grid
with a few prizes and traps. Its reward is one number for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from ...._typing import Bools, Floats
from ....mdp import MDP, grid_world, random_mdp
from ....planning import simulate
from ....softmax import Boltzmann, EpsilonGreedy, LogSumExp, Max, Mean, Mellowmax, Softmax
from .fits import plan

__all__ = ["DEMONSTRATORS", "KINDS", "STRENGTHS", "Seen", "Worlds", "losses", "make", "watch"]

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
"""The parameter of the demonstrators in a world: number i has the one of number i % 4."""
PATHS, STEPS = 50, 40
"""What is seen of a demonstrator: 2,000 decisions, and as many that are held out."""
EPSILON = 0.1

DEMONSTRATORS: dict[str, Callable[[Floats], Softmax]] = {
    "log-sum-exp": LogSumExp,
    "mellowmax": Mellowmax,
    "boltzmann": Boltzmann,
    "epsilon-greedy": lambda strength: EpsilonGreedy(np.full_like(strength, EPSILON)),
}
"""From strengths to the softmax by which a demonstrator plans and acts."""


def _random(rng: np.random.Generator) -> tuple[MDP, Floats]:
    """One of the paper's random MDPs, with rewards in a range of 0.5."""
    mdp = random_mdp(rng, n_states=5, n_actions=3, discount=0.98)
    return mdp, rng.uniform(0, 0.5, mdp.n_states)


def _grid(side: int) -> Callable[[np.random.Generator], tuple[MDP, Floats]]:
    """An open grid: one cell in ten earns 1, and as many -1."""

    def make(rng: np.random.Generator) -> tuple[MDP, Floats]:
        mdp = grid_world(["." * side] * side, slip=0.2, step_reward=0.0, discount=0.95)
        few = mdp.n_states // 10
        rewards = np.zeros(mdp.n_states)
        rewards[rng.permutation(mdp.n_states)[: 2 * few]] = np.repeat([1.0, -1.0], few)
        return mdp, rewards

    return make


KINDS: dict[str, Callable[[np.random.Generator], tuple[MDP, Floats]]] = {
    "random": _random,
    "grid 5x5": _grid(5),
    "grid 10x10": _grid(10),
}
"""By the names that the tables have for them."""


class Worlds(NamedTuple):
    """N worlds of a kind."""

    mdps: list[MDP]
    transitions: Floats
    """`[N, S, A, S]`, or `[1, S, A, S]` if all have the same."""
    rewards: Floats
    """`[N, S]`."""
    discount: float
    strengths: Floats
    """`[N]`."""


def make(kind: str, seed: Sequence[int], numbers: Sequence[int]) -> Worlds:
    """The worlds of some numbers."""
    drawn = [KINDS[kind](np.random.default_rng([*seed, number])) for number in numbers]
    mdps = [mdp for mdp, _ in drawn]
    each = mdps if kind == "random" else mdps[:1]
    return Worlds(
        mdps,
        np.stack([mdp.to_numpy()[0] for mdp in each]),
        np.stack([rewards for _, rewards in drawn]),
        mdps[0].discount,
        np.array([STRENGTHS[number % len(STRENGTHS)] for number in numbers]),
    )


class Seen(NamedTuple):
    """What a demonstrator did in each of N worlds."""

    counts: Floats
    """`[N, S, A]`, how often it took each action in each state."""
    held_out: Floats
    """The same counts on other paths, on which fits are tested."""
    converged: Bools
    """`[N]`, did its own sweeps settle? Otherwise it acts on the values after the last one."""


def watch(worlds: Worlds, demonstrator: str, seed: Sequence[int], numbers: Sequence[int]) -> Seen:
    """Let a demonstrator act in each world, from states that are equally probable."""
    softmax = DEMONSTRATORS[demonstrator](worlds.strengths)
    q, converged = plan(worlds.transitions, worlds.discount, worlds.rewards, softmax)
    policies = np.asarray(jax.tree.map(lambda x: x[:, None], softmax).policy(q))
    which = [*DEMONSTRATORS].index(demonstrator)
    counts = np.zeros((2, *q.shape))
    uniform = np.full(q.shape[1], 1 / q.shape[1])
    for i, (mdp, policy, number) in enumerate(zip(worlds.mdps, policies, numbers, strict=True)):
        drawn = simulate(
            policy, mdp, STEPS, paths=2 * PATHS, start=uniform, seed=[*seed, number, which]
        )
        for half, paths in zip(counts, (slice(PATHS), slice(PATHS, None)), strict=True):
            np.add.at(half[i], (drawn.states[paths, :-1], drawn.actions[paths]), 1.0)
    return Seen(counts[0], counts[1], converged)


def losses(worlds: Worlds, of: Sequence[int], q: Floats) -> Floats:
    """What the greedy policies at action values lose in the worlds `of`, `[N]`.

    As a share of what the best policy gains on the uniform one, in the mean over all states.
    """
    best, _ = plan(worlds.transitions, worlds.discount, worlds.rewards, Max())
    even, _ = plan(worlds.transitions, worlds.discount, worlds.rewards, Mean())
    best, even = best.max(-1).mean(-1), even.mean(-1).mean(-1)
    moves = np.broadcast_to(worlds.transitions, (len(best), *worlds.transitions.shape[1:]))
    states = np.arange(q.shape[1])
    result = np.empty(len(q))
    for i, (world, values) in enumerate(zip(of, q, strict=True)):
        chosen = moves[world, states, values.argmax(-1)]
        system = np.eye(len(states)) - worlds.discount * chosen
        result[i] = np.linalg.solve(system, worlds.rewards[world]).mean()
    return np.asarray((best[of] - result) / (best[of] - even[of]))
