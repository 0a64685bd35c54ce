"""Tabular learners, which learn from one transition.

A learner has a table of action values and, after the action `a` in the state `s` has earned the
reward `r` and led to the state `s'`, moves one entry towards a target:

    q(s, a) <- q(s, a) + learning_rate * (r + discount * bootstrap - q(s, a)).

The learners differ in what they bootstrap from. With `a'` the next action,

| learner | bootstrap |
| --- | --- |
| `sarsa` | q(s', a'), and the softmax's bonus for `a'` |
| `expected_sarsa` | the softmax's value of q(s', .): what `a'` is worth on average |
| `q_learning` | max q(s', .) |

All of them act by the softmax's own policy. `sarsa` with a Boltzmann policy is the paper's
Algorithm 1; expected SARSA has the fixed points of planning with the same softmax.

The softmaxes of the paper have no bonus. That of `LogSumExp` for an action is
`-log policy(a') / beta`, and expected SARSA with it is soft Q-learning (Haarnoja et al. 2017). With
the prior `rho` of a `FreeEnergy` the bonus is `-log(policy(a') / rho(a')) / beta`, and expected
SARSA is G-learning (Fox, Pakman and Tishby 2016).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._common import checks
from .._rows.arguments import check_parameter
from .._typing import ArrayLike, Scalar
from ..operators import maximum
from ..policies import choose
from ..softmax import Softmax

__all__ = ["Learned", "Learner", "Update", "expected_sarsa", "q_learning", "sarsa"]


Behaviour: TypeAlias = Softmax | Callable[[Any], Softmax]
"""A softmax, or a schedule: a function of the number of updates that gives one."""
Rate: TypeAlias = ArrayLike | Callable[[Any], jax.Array]
"""A learning rate, or a schedule of it."""
Bootstrap: TypeAlias = Callable[[Softmax, jax.Array, Scalar, jax.Array | None], jax.Array]


class Update(NamedTuple):
    """The result of an update: the new table, and the TD error."""

    q: jax.Array
    td_error: jax.Array


class Learned(NamedTuple):
    """The result of `Learner.learn`: an `Update`, and the next action."""

    q: jax.Array
    td_error: jax.Array
    action: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Learner:
    """A tabular learner; made by `sarsa`, `expected_sarsa` or `q_learning`.

    Its methods are pure functions of one run; `train` maps them over many.
    """

    softmax: Behaviour
    """Its policy is the behaviour. Or a schedule: a function of the number of updates."""
    learning_rate: Rate
    """A number, or a schedule."""
    discount: ArrayLike | None
    """What the reward of the next step is worth; None for the environment's own."""
    initial: ArrayLike
    """The first action values: a number, or `[S, A]`."""
    bootstrap: Bootstrap = dataclasses.field(metadata={"static": True})
    """`bootstrap(softmax, row, action, where)`: what the next state is worth."""
    on_policy: bool = dataclasses.field(metadata={"static": True})
    """Does the bootstrap need the next action? Then that one is chosen before the update."""

    def at(self, step: Scalar) -> Learner:
        """The learner after `step` updates: its schedules replaced by their values then."""
        softmax, rate = self._softmax_at(step), self._rate_at(step)
        return dataclasses.replace(self, softmax=softmax, learning_rate=rate)

    def _softmax_at(self, step: Scalar) -> Softmax:
        if isinstance(self.softmax, Softmax):
            return self.softmax
        softmax = self.softmax(step)
        checks.instance("softmax", softmax, Softmax, "a schedule that gives a Softmax")
        return softmax

    def _rate_at(self, step: Scalar) -> Any:
        rate = self.learning_rate
        return rate(step) if callable(rate) else rate

    def init(self, n_states: int, n_actions: int) -> jax.Array:
        """The table to begin with, `[S, A]` in float32."""
        return jnp.broadcast_to(jnp.asarray(self.initial, jnp.float32), (n_states, n_actions))

    def act(
        self,
        uniform: Scalar,
        row: jax.Array,
        *,
        step: Scalar = 0,
        where: jax.Array | None = None,
    ) -> jax.Array:
        """An action by the softmax's policy.

        Args:
            uniform: a random number from 0 to 1, which decides.
            row: the action values of the state, `[A]`.
            step: how many updates there have been, for schedules.
            where: `[A]`, the actions that are allowed.

        Examples:
            >>> from mellowmax import Boltzmann
            >>> print(sarsa(Boltzmann(1.0)).act(0.3, jnp.array([0.0, 1.0])))
            1
        """
        policy = self._softmax_at(step).policy(row, where=where)
        return choose(policy, jnp.asarray(uniform, policy.dtype)).astype(jnp.int32)

    def update(
        self,
        q: jax.Array,
        state: Scalar,
        action: Scalar,
        reward: Scalar,
        discount: Scalar,
        next_state: Scalar,
        next_action: Scalar,
        *,
        step: Scalar = 0,
        where: jax.Array | None = None,
    ) -> Update:
        """Learn from one transition.

        Args:
            q: the table, `[S, A]`.
            state: where the action was taken.
            action: which one.
            reward: what it earned.
            discount: of this transition: the learner's or the environment's, and 0 where the
                episode ended.
            next_state: where it led; any state where the episode ended.
            next_action: what is done there; `sarsa` alone looks at it.
            step: how many updates there have been, for schedules.
            where: `[A]`, the actions that are allowed in the next state.

        Returns:
            The new table and the TD error.

        Examples:
            >>> from mellowmax import Boltzmann
            >>> learner = sarsa(Boltzmann(16.55), learning_rate=0.5)
            >>> q, td_error = learner.update(learner.init(2, 2), 0, 1, 1.0, 0.98, 0, 0)
            >>> print(td_error, q)
            1.0 [[0.  0.5]
             [0.  0. ]]
        """
        softmax, rate = self._softmax_at(step), self._rate_at(step)
        worth = self.bootstrap(softmax, q[next_state], next_action, where)
        td_error = jnp.asarray(reward + discount * worth - q[state, action])
        return Update(q.at[state, action].add(rate * td_error), td_error)

    def learn(
        self,
        q: jax.Array,
        state: Scalar,
        action: Scalar,
        reward: Scalar,
        discount: Scalar,
        next_state: Scalar,
        uniform: Scalar,
        *,
        step: Scalar = 0,
        where: jax.Array | None = None,
    ) -> Learned:
        """Learn from one transition and choose the next action, in the order of the algorithm.

        SARSA chooses first, since it learns from what it chose; the others learn first. After the
        end of an episode, all of them choose the first action of the next one by the updated table.

        Args:
            q: the table, `[S, A]`.
            state: where the action was taken.
            action: which one.
            reward: what it earned.
            discount: of this transition: the learner's or the environment's, and 0 where the
                episode ended.
            next_state: where it led; where the next episode begins if this one ended.
            uniform: a random number from 0 to 1, which decides the next action.
            step: how many updates there have been, for schedules.
            where: `[A]`, the actions that are allowed in the next state.

        Returns:
            The new table, the TD error and the next action.
        """
        now = self.at(step)
        moved = (state, action, reward, discount, next_state)
        if not self.on_policy:
            q, td_error = now.update(q, *moved, action, where=where)
            return Learned(q, td_error, now.act(uniform, q[next_state], where=where))
        # Of the updated table only one row matters here: that of the next state.
        row = q[next_state]
        last = q[state, action] + self._rate_at(step) * (reward - q[state, action])
        begins_here = jnp.logical_and(discount == 0, next_state == state)
        is_action = jnp.equal(jnp.arange(len(row), dtype=jnp.int32), action)
        row = jnp.where(begins_here & is_action, last, row)
        next_action = now.act(uniform, row, where=where)
        return Learned(*now.update(q, *moved, next_action, where=where), next_action)


def sarsa(
    softmax: Behaviour,
    learning_rate: Rate = 0.1,
    *,
    discount: ArrayLike | None = None,
    initial: ArrayLike = 0.0,
) -> Learner:
    """SARSA with any softmax; with `Boltzmann`, the paper's Algorithm 1 (section 2).

    The target is the value of the next action, and for a regularised softmax its bonus for that
    action (`Softmax.action_bonus`): on average the softmax's value.

    Args:
        softmax: its policy is the behaviour. Or a schedule: a function of the number of updates
            that gives one.
        learning_rate: from 0 to 1. Or a schedule, such as those of optax.
        discount: from 0 to 1; None for the environment's own, or 0.99 where it has none.
        initial: the first action values: a number, or `[S, A]`.

    Arrays of parameters, learning rates and discounts that broadcast against each other make a grid
    of settings, each of which `train` runs.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.environments import taxi
        >>> from mellowmax.learning import sarsa, train
        >>> train(sarsa(Boltzmann(1.5), 0.4), taxi.params(), steps=1000, runs=3, bins=10)
        TabularResult(q=(3, 264, 4), rewards=(3, 10))
    """
    return _learner(softmax, learning_rate, discount, initial, _value_of_the_action, on_policy=True)


def expected_sarsa(
    softmax: Behaviour,
    learning_rate: Rate = 0.1,
    *,
    discount: ArrayLike | None = None,
    initial: ArrayLike = 0.0,
) -> Learner:
    """Expected SARSA: the target is the softmax's value of the next state.

    That value is what the policy's actions are worth on average, with the softmax's bonus where it
    has one, so the update has the mean of SARSA's and less variance; its fixed points are those of
    planning with the same softmax. With `LogSumExp` it is soft Q-learning, with `FreeEnergy` and a
    prior it is G-learning.

    Args:
        softmax: as for `sarsa`.
        learning_rate: as for `sarsa`.
        discount: as for `sarsa`.
        initial: as for `sarsa`.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> learner = expected_sarsa(Mellowmax(5.0))
        >>> print(learner.update(learner.init(2, 3), 0, 2, 1.0, 0.9, 1, 0).td_error)
        1.0

    References:
        van Seijen, van Hasselt, Whiteson and Wiering, "A theoretical and empirical analysis of
        Expected Sarsa" (2009).
        Haarnoja, Tang, Abbeel and Levine, "Reinforcement learning with deep energy-based policies"
        (2017).
        Fox, Pakman and Tishby, "Taming the noise in reinforcement learning via soft updates"
        (2016).
    """
    return _learner(
        softmax, learning_rate, discount, initial, _value_of_the_softmax, on_policy=False
    )


def q_learning(
    softmax: Behaviour,
    learning_rate: Rate = 0.1,
    *,
    discount: ArrayLike | None = None,
    initial: ArrayLike = 0.0,
) -> Learner:
    """Q-learning: the target is the best value of the next state, whatever the behaviour.

    Args:
        softmax: as for `sarsa`.
        learning_rate: as for `sarsa`.
        discount: as for `sarsa`.
        initial: as for `sarsa`.

    Examples:
        >>> from mellowmax import EpsilonGreedy
        >>> learner = q_learning(EpsilonGreedy(0.1), initial=1.0)
        >>> print(learner.update(learner.init(2, 3), 0, 2, 1.0, 0.5, 1, 0).td_error)
        0.5

    References:
        Watkins and Dayan, "Q-learning" (1992).
    """
    return _learner(softmax, learning_rate, discount, initial, _largest_value, on_policy=False)


def _learner(
    softmax: Behaviour,
    learning_rate: Rate,
    discount: ArrayLike | None,
    initial: ArrayLike,
    bootstrap: Bootstrap,
    *,
    on_policy: bool,
) -> Learner:
    if isinstance(softmax, type) or not callable(softmax):
        rule = "a Softmax such as Mellowmax(5.0), or a function of the step that gives one"
        checks.instance("softmax", softmax, Softmax, rule)
    if not callable(learning_rate):
        check_parameter("learning_rate", learning_rate, 0.0, 1.0)
    if discount is not None:
        check_parameter("discount", discount, 0.0, 1.0)
    check_parameter("initial", initial)
    return Learner(softmax, learning_rate, discount, initial, bootstrap, on_policy)


def _value_of_the_action(
    softmax: Softmax, row: jax.Array, action: Scalar, where: jax.Array | None
) -> jax.Array:
    if softmax.attained:
        return row[action]
    return row[action] + softmax.action_bonus(row, where=where)[action]


def _value_of_the_softmax(
    softmax: Softmax, row: jax.Array, action: Scalar, where: jax.Array | None
) -> jax.Array:
    return softmax.value(row, where=where)


def _largest_value(
    softmax: Softmax, row: jax.Array, action: Scalar, where: jax.Array | None
) -> jax.Array:
    return maximum(row, where=where)
