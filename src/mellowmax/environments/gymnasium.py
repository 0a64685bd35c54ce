"""Gymnasium environments: any MDP, two MDPs of the paper, and the height of 2016.

Nothing here imports JAX: environments may run in processes of their own, which then start quickly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from .._common import checks
from .._common.extras import needed_by
from .._typing import ArrayLike
from ..mdp.generators import two_state
from ..mdp.model import MDP
from ..mdp.taxi import GRID, TaxiGrid, multi_passenger_taxi
from .initial_states import initial_states
from .render_modes import check_mode, check_started, needs_pillow, warn_of_no_mode

with needed_by("mellowmax.environments.gymnasium", "gymnasium"):
    import gymnasium

if TYPE_CHECKING:
    from .render import TaxiPicture

__all__ = ["Height2016", "MultiPassengerTaxi", "TabularEnv", "TwoState"]

Branch: TypeAlias = tuple[float, int, float, bool]
"""`(probability, next state, reward, terminated)`, as in Gymnasium's own tables."""
Action: TypeAlias = int | np.integer[Any]

HIGHLIGHT, PLAIN = "\x1b[1;30;43m", "\x1b[0m"
"""Bold black on yellow, which can be read on dark and on light."""


class TabularEnv(gymnasium.Env[Any, Action]):
    """An MDP as a Gymnasium environment, whose observations are the states.

    A transition to the index `S`, one past the last state, ends the episode and shows the state it
    ended in. `info` has the probability of what happened as `"prob"`. If the MDP does not allow
    every action, it also has those that the state allows, as `"action_mask"`.

    Args:
        mdp: the MDP.
        start: the state where episodes begin, or `[S]`, a probability for each state; None for
            every state that is not terminal, with equal probability.
        render_mode: `"ansi"` for a line of text, or None.

    Attributes:
        mdp: the MDP.
        discount: its discount.
        P: in the form of Gymnasium's own tables: `P[s][a]` is a list of `(probability, next_state,
            reward, terminated)`, empty where the action is not allowed;
            `MDP.from_gymnasium(env, discount)` reads it.
        state: the present state; None before the first `reset`.

    Raises:
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax.mdp import chain
        >>> env = TabularEnv(chain(5, success=1.0), start=2, render_mode="ansi")
        >>> env.reset(seed=0)
        (2, {'prob': 1.0})
        >>> env.step(1)
        (3, 0.0, False, False, {'prob': 1.0})
        >>> print(env.render())
        state 3, action 1, reward 0
        >>> env.step(2)
        Traceback (most recent call last):
        ...
        ValueError: `action` must be a whole number in [0, 1], got 2
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self, mdp: MDP, start: ArrayLike | None = None, render_mode: str | None = None
    ) -> None:
        checks.instance("mdp", mdp, MDP, "an MDP")
        self.mdp = mdp
        self.discount = mdp.discount
        self.render_mode = check_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = gymnasium.spaces.Discrete(mdp.n_states)
        self.action_space = gymnasium.spaces.Discrete(mdp.n_actions)
        self.P = _table(mdp)
        self.state: int | None = None
        self.last_action: Action | None = None
        self.last_reward = 0.0
        self._over = True
        self._masks = None if mdp.allowed is None else mdp.allowed.astype(np.int8)
        # For each list of branches, the cumulative probabilities that `bisect` finds a branch by.
        self._rows = [
            [(_cuts([branch[0] for branch in branches]), branches) for branches in row.values()]
            for row in self.P.values()
        ]
        states, probabilities = (values.tolist() for values in initial_states(mdp, start))
        self._starts = states, probabilities, _cuts(probabilities)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: the seed of the random numbers; None to continue with the generator as it is.
            options: not used.

        Returns:
            The state, and `info`.
        """
        super().reset(seed=seed)
        states, probabilities, cuts = self._starts
        at = bisect_right(cuts, self.np_random.random()) if cuts else 0
        self.state, self.last_action, self.last_reward, self._over = states[at], None, 0.0, False
        return self.state, self._info(probabilities[at])

    def step(self, action: Action) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Args:
            action: the number of the action.

        Returns:
            The next state, the reward, whether the episode ended, False, and `info`.

        Raises:
            ValueError: for an action that does not exist.
            gymnasium.error.ResetNeeded: if no episode is under way.
        """
        if self._over:
            rule = "`reset` must be called before `step`"
            raise gymnasium.error.ResetNeeded(f"{rule}, got no episode under way")
        assert self.state is not None
        try:
            cuts, branches = self._rows[self.state][action]
            known = action >= 0 and branches
        except (IndexError, TypeError):
            known = False
        if not known:
            self._refuse(action)
        at = bisect_right(cuts, self.np_random.random())
        probability, self.state, reward, self._over = branches[at]
        self.last_action, self.last_reward = action, reward
        return self.state, reward, self._over, False, self._info(probability)

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """The state as text or as a picture; a warning and None if `render_mode` is None."""
        if self.render_mode is None:
            warn_of_no_mode(self)
            return None
        check_started(self.state is not None)
        return self._ansi() if self.render_mode == "ansi" else self._rgb_array()

    def _ansi(self) -> str:
        return f"state {self.state}, {self._last()}"

    def _rgb_array(self) -> npt.NDArray[np.uint8]:
        raise NotImplementedError

    def _last(self, names: Sequence[str] | None = None) -> str:
        """The action and the reward of the last step, in words."""
        if self.last_action is None:
            return "start"
        name = self.last_action if names is None else names[int(self.last_action)]
        return f"action {name}, reward {self.last_reward:g}"

    def _info(self, probability: float) -> dict[str, Any]:
        if self._masks is None:
            return {"prob": probability}
        return {"prob": probability, "action_mask": self._masks[self.state].copy()}

    def _refuse(self, action: object) -> NoReturn:
        checks.whole("action", action, 0, self.mdp.n_actions - 1)
        raise ValueError(f"`action` must be allowed in state {self.state}, got {action!r}")


class TwoState(TabularEnv):
    """The MDP of figure 1: state 0 is s1, where an episode starts, state 1 is s2, where it ends.

    Args:
        printed: are the numbers those that the figure prints? See `mellowmax.mdp.two_state`.
        discount: in [0, 1].
        render_mode: `"ansi"` for a line of text, or None.

    Examples:
        >>> env = TwoState()
        >>> env.reset(seed=0)
        (0, {'prob': 1.0})
        >>> env.step(0)
        (0, 0.12211, False, False, {'prob': 0.65867})
    """

    def __init__(
        self, printed: bool = False, discount: float = 0.98, render_mode: str | None = None
    ) -> None:
        super().__init__(two_state(printed=printed, discount=discount), 0, render_mode)

    def _ansi(self) -> str:
        names = [" s1 ", " s2 "]
        if self.state is not None:
            names[self.state] = f"{HIGHLIGHT}[s{self.state + 1}]{PLAIN}"
        return f"{' '.join(names)}  {self._last('ab')}"


class MultiPassengerTaxi(TabularEnv):
    """The taxi of section 7.2: fetch passengers and bring them to the destination.

    `mellowmax.mdp.multi_passenger_taxi` says what it does and what the arguments are.

    Args:
        grid: rows of S (start), D (destination), F (passenger), # (wall) and . (free).
        slip: the probability that a move goes to a side, in [0, 1].
        rewards: what 0, 1, 2 and so on passengers are worth.
        discount: in [0, 1).
        render_mode: `"ansi"` for text, `"rgb_array"` for a picture (it needs Pillow), or None.

    Attributes:
        grid: the `mellowmax.mdp.taxi.TaxiGrid`, which says what a state is.

    Examples:
        >>> env = MultiPassengerTaxi(["S.F", "#.D"], slip=0.0, rewards=[0.0, 1.0])
        >>> state, info = env.reset(seed=0)
        >>> [env.step(action)[1:3] for action in (2, 2, 1)]
        [(0.0, False), (0.0, False), (1.0, True)]
        >>> env.grid.decode(env.state)
        (4, (0,))
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        grid: Sequence[str] | str = GRID,
        slip: float = 0.1,
        rewards: Sequence[float] = (0.0, 1.0, 3.0, 15.0),
        discount: float = 0.99,
        render_mode: str | None = None,
    ) -> None:
        mdp = multi_passenger_taxi(grid, slip=slip, rewards=rewards, discount=discount)
        self.grid = TaxiGrid.parse(grid)
        self._picture: TaxiPicture | None = None
        super().__init__(mdp, self.grid.start_state, render_mode)

    def _ansi(self) -> str:
        grid = self.grid
        assert self.state is not None
        taxi, picked = grid.decode(self.state)
        rows = [list(row) for row in grid.rows]
        for passenger in picked:
            row, column = grid.cells[grid.passengers[passenger]]
            rows[row][column] = "."
        row, column = grid.cells[taxi]
        rows[row][column] = f"{HIGHLIGHT}T{PLAIN}"
        last = self._last(("north", "south", "east", "west"))
        below = f"{len(picked)} of {grid.n_passengers} on board, {last}"
        return "\n".join([*("".join(marks) for marks in rows), below])

    def _rgb_array(self) -> npt.NDArray[np.uint8]:
        if self._picture is None:
            try:
                with needed_by("MultiPassengerTaxi.render", "gymnasium"):
                    from .render import TaxiPicture
            except ImportError as error:
                raise needs_pillow() from error
            self._picture = TaxiPicture(self.grid)
        assert self.state is not None
        return self._picture.draw(self.state)


class Height2016(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gymnasium's LunarLander-v3 with the observed height of LunarLander-v2 until August 2018.

    That is two thirds of today's. The reward changes with it, since it is computed from changes of
    the observation. The paper's experiment (section 7.3) was made in that version. For the
    functions of `mellowmax.environments.lunar_lander` it is `params(height="2016")`.

    Args:
        env: a LunarLander-v3 with discrete actions, with or without its limit of steps.

    Examples:
        >>> env = Height2016(gymnasium.make("LunarLander-v3"))
        >>> today, _ = env.env.reset(seed=0)
        >>> then, _ = env.reset(seed=0)
        >>> bool(np.isclose(then[1], today[1] * 2 / 3))
        True
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        checks.instance("env", env, gymnasium.Env, "a Gymnasium environment")
        super().__init__(env)
        self._distances = np.zeros(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        today, info = self.env.reset(seed=seed, options=options)
        then, self._distances = self._of_2016(today)
        return then, info

    def step(self, action: object) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        today, reward, terminated, truncated, info = self.env.step(action)
        then, distances = self._of_2016(today)
        change, self._distances = distances - self._distances, distances
        if not terminated:  # the last reward is 100 or -100 in both versions
            reward = float(reward) - 100 * float(change[1] - change[0])
        return then, reward, terminated, truncated, info

    def _of_2016(
        self, today: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        """The observation in 2016, and the distance to the helipad as observed today and then."""
        then = np.array(today)
        then[1] *= 2 / 3
        heights = np.array([today[1], then[1]], np.float64)
        return then, np.hypot(np.float64(today[0]), heights)


def _table(mdp: MDP) -> dict[int, dict[int, list[Branch]]]:
    """The table `P` of an MDP, in Python's numbers."""
    n_states, end = mdp.n_states, [*mdp.terminal.tolist(), True]
    shape = mdp.probabilities.shape
    successors = mdp.successors
    if successors is None:
        successors = np.broadcast_to(np.arange(n_states, dtype=np.int32), shape)
    rewards = mdp.rewards if mdp.rewards.ndim == 3 else mdp.rewards[..., None]
    rewards = np.broadcast_to(rewards, shape)
    table: dict[int, dict[int, list[Branch]]] = {
        s: {a: [(1.0, s, 0.0, True)] if end[s] else [] for a in range(mdp.n_actions)}
        for s in range(n_states)
    }
    at = np.nonzero(mdp.probabilities)
    entries = (mdp.probabilities[at], successors[at], rewards[at])
    columns: tuple[npt.NDArray[Any], ...] = (*at[:2], *entries)
    for s, a, p, successor, reward in zip(*(column.tolist() for column in columns), strict=True):
        following = s if successor == n_states else successor
        table[s][a].append((p, following, reward, end[successor]))
    return table


def _cuts(probabilities: list[float]) -> list[float]:
    """The cumulative probabilities without the last, so that rounding never leads past the end."""
    return list(accumulate(probabilities[:-1]))
