"""What a demonstrator was seen to do, checked and in arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from .._common import checks
from .._common.shown import shown
from .._typing import ArrayLike, Bools, Floats, Integers
from ..mdp import MDP
from ..mdp.labels import named

__all__ = ["Demonstrations"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Demonstrations:
    """Decisions: in which state which action was taken.

    `from_arrays`, `from_counts`, `from_episodes` and `simulate` make them.

    Examples:
        >>> Demonstrations.from_arrays([0, 0, 1], [1, 1, 0])
        Demonstrations(decisions=3, episodes=1)
    """

    states: Integers
    """`[N]`."""
    actions: Integers
    """`[N]`."""
    weights: Floats
    """`[N]`, how often each was seen."""
    episodes: Integers
    """`[N]`, the number of the episode that each belongs to."""

    @classmethod
    def from_arrays(
        cls, states: ArrayLike, actions: ArrayLike, *, episodes: ArrayLike | None = None
    ) -> Self:
        """Decisions one by one.

        Args:
            states: `[N]`, the state of each decision.
            actions: `[N]`, the action that was taken.
            episodes: `[N]`, a number for the episode of each; None for one episode.
        """
        at = checks.integers("states", states)
        if at.ndim != 1 or not at.size:
            raise ValueError(f"`states` must have at least one decision, got the shape {at.shape}")
        taken = checks.integers("actions", actions, at.shape)
        given = np.zeros(at.shape, np.int32) if episodes is None else episodes
        of = checks.integers("episodes", given, at.shape)
        return cls(at, taken, np.ones(at.shape), of)

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> Self:
        """How often each action was taken in each state, `[S, A]`."""
        given = checks.numbers("counts", counts)
        if given.ndim != 2:
            raise ValueError(f"`counts` must have the shape (states, actions), got {given.shape}")
        checks.raise_where(
            ~(np.isfinite(given) & (given >= 0)), "`counts` must be at least 0", given
        )
        states, actions = (index.astype(np.int32) for index in np.nonzero(given))
        if not states.size:
            raise ValueError("`counts` must have at least one decision, got 0 everywhere")
        return cls(states, actions, given[states, actions], np.zeros(states.size, np.int32))

    @classmethod
    def from_episodes(cls, episodes: Iterable[Sequence[tuple[int, int]]]) -> Self:
        """Episodes, each a list of pairs of a state and an action."""
        rule = "lists of pairs of a state and an action"
        each = checks.instances("episodes", episodes, Iterable, rule)
        try:
            listed = [[tuple(pair) for pair in episode] for episode in each]
        except TypeError:
            raise TypeError(f"`episodes` must be {rule}, got {shown(episodes)}") from None
        pairs = [pair for episode in listed for pair in episode]
        if not pairs:
            raise ValueError("`episodes` must have at least one decision, got none")
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"`episodes` must be {rule}, got {shown(episodes)}")
        table = checks.integers("episodes", pairs)
        of = np.repeat(np.arange(len(listed)), [len(episode) for episode in listed])
        return cls.from_arrays(table[:, 0], table[:, 1], episodes=of)

    @classmethod
    def simulate(cls, policy: ArrayLike, mdp: MDP, steps: int, **options: Any) -> Self:
        """What a policy does in an MDP; the arguments are those of `planning.simulate`."""
        from ..planning import simulate

        seen = simulate(policy, mdp, steps, **options)
        states, actions = seen.states[..., : seen.actions.shape[-1]], seen.actions
        paths = np.broadcast_to(np.arange(len(states))[:, None], states.shape)
        live = actions >= 0
        return cls.from_arrays(states[live], actions[live], episodes=paths[live])

    def __repr__(self) -> str:
        episodes = len(np.unique(self.episodes))
        return f"Demonstrations(decisions={self.weights.sum():.10g}, episodes={episodes})"

    def counts(self, mdp: MDP) -> Floats:
        """`[S, A]`, how often each action was taken in each state of an MDP.

        Raises:
            ValueError: for a decision that the MDP does not have; it names the episode and step.
        """
        checks.instance("mdp", mdp, MDP, "an MDP")
        for kind, given, limit in (
            ("state", self.states, mdp.n_states),
            ("action", self.actions, mdp.n_actions),
        ):
            self._raise_where((given < 0) | (given >= limit), _out_of_range(kind, given, limit))
        names = mdp.state_labels, mdp.action_labels

        def of(i: int) -> str:
            return named("state", int(self.states[i]), names[0])

        self._raise_where(
            mdp.terminal[self.states],
            lambda i: f"must have no decisions in terminal states, got one in {of(i)}",
        )
        self._raise_where(
            ~mdp.available[self.states, self.actions],
            lambda i: (
                f"must have actions that their states allow, got "
                f"{named('action', int(self.actions[i]), names[1])} in {of(i)}"
            ),
        )
        result = np.zeros(mdp.probabilities.shape[:2])
        np.add.at(result, (self.states, self.actions), self.weights)
        return result

    def _raise_where(self, bad: Bools, rule: Callable[[int], str]) -> None:
        """Raise for the first bad decision, with its episode and step."""
        if bad.any():
            i = int(bad.argmax())
            episode = self.episodes[i]
            step = int((self.episodes[:i] == episode).sum())
            raise ValueError(f"`demonstrations` {rule(i)} in step {step} of episode {episode}")


def _out_of_range(kind: str, given: Integers, limit: int) -> Callable[[int], str]:
    rule = f"must have {kind}s below {limit} and of at least 0"
    return lambda i: f"{rule}, got {shown(int(given[i]))}"
