"""The average reward of an endless task, by relative value iteration with bounds.

Without a discount the values of an endless task have no limit, but the average reward of a step has
one: the *gain* `g`. How much more a start in a state earns in total than the gain of each step is
the *bias* `h`, which is determined up to a constant. With a softmax's operator `f`,

    g + h(s) = f(q(s, .)),    q(s, a) = r(s, a) + sum_t P(t | s, a) h(t).

**The method.** A sweep `T h = f(r + P h)` changes `h` by `d = T h - h`, and `h` is good where `d`
is the same for all states. The next `h` is `h + 0.9 (d - c)`, with the middle `c` of `d`, which
keeps `h` from growing. With a whole step instead of 0.9, a chain that returns to a state only after
a multiple of two or more steps would make `d` repeat itself without end.

**The bounds.** Let `f` not fall when an action gets better, and move with a shift of all actions.
If `d >= low` then `T^n h >= h + n low`, so the gain is at least `low`, and likewise at most the
maximum of `d`. The policy of the softmax earns `f(q)` minus its bonus, and the optimum is the gain
of the maximum, whose sweep changes `h` by at most `d` and the gap of `f`. So

    min d <= gain <= max d,    optimum - gain of the policy <= max(d + gap) - min(d - bonus),

and the second needs nothing of `f`.

**Several gains.** A model is *unichain* if every policy comes to the same set of states from
everywhere. If it is not, the gain may depend on the first state. Two sets of states that nothing
leaves are found at once. If only some policies have two, and the softmax may choose among them, `d`
settles at different numbers, and these are the gains.

References:
    Puterman (2005), Markov decision processes, chapters 8 and 9. White (1963), Dynamic programming,
        Markov chains, and the method of successive approximations. Odoni (1969), On finding the
        maximal gain for Markov decision processes. Schweitzer (1971), Iterative solution of the
        functional equations of undiscounted Markov renewal programming.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from .._typing import Bools, Floats
from ..mdp import MDP, labels
from ..mdp.labels import Labels
from ..mdp.operator import Operator
from ..softmax import Softmax
from .bellman import action_values, values
from .bounds import Margins, error_bound
from .devices import STATES, largest, place_array, place_scalar, smallest
from .loop import (
    Check,
    Iteration,
    Report,
    State,
    Steps,
    StoppingRule,
    before_the_first_step,
    iterate,
    repeat,
)
from .picture import picture
from .problem import TOLERANCE, Model, Problem
from .solution import NotConvergedError, Status
from .table import columns, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["AverageSolution", "solve_average"]

STEP = 0.9
"""How much of the change of a sweep is taken."""
AT_REST = 1e-9
"""The part of the range of the change by which it may still differ from sweep to sweep when it has
settled."""
UNICHAIN = "`mdp` must be unichain for an average reward"


@dataclasses.dataclass(frozen=True, eq=False)
class AverageSolution:
    """The average reward under a softmax, and what is known about it."""

    gain: float
    """The average reward of a step, whatever the first state."""
    bias: Floats = dataclasses.field(repr=False)
    """`[S]`, how much more a start in each state earns in total than the gain of each step,
    relative to state 0."""
    q: Floats = dataclasses.field(repr=False)
    """`[S, A]`, the same for each first action; -inf for an action that is not allowed."""
    converged: bool
    """Is the gain known to within the tolerance?"""
    status: Status
    """How the solve has ended."""
    iterations: int
    """The number of sweeps."""
    residual: float
    """Half the range of the change of a sweep."""
    error_bound: float | None
    """A bound on the distance of `gain` to the exact gain; None for Boltzmann."""
    suboptimality_bound: float
    """A bound on how far `gain` and the exact gain of `policy` are below the optimum."""
    softmax: Softmax
    """The softmax that was asked for."""
    seconds: float
    """Wall-clock time of the whole solve, compiling included."""
    history: Floats | None = dataclasses.field(default=None, repr=False)
    """Half the range of the change of each sweep, where it was asked for."""
    allowed: Bools | None = dataclasses.field(default=None, repr=False)
    """`[S, A]`, the actions of each state; None for all."""
    state_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the states are called; None for their numbers."""
    action_labels: Labels = dataclasses.field(default=None, repr=False)
    """What the actions are called; None for their numbers."""

    method: ClassVar[str] = "relative value iteration"
    cycle_period: ClassVar[None] = None

    @functools.cached_property
    def policy(self) -> Floats:
        """`[S, A]`, the softmax's own policy at `q`; computed when first asked for."""
        return self.softmax.policy(self.q, where=self.allowed)

    def to_frame(self) -> DataFrame:
        """A pandas table with a row for each state and action."""
        return frame(columns(self, "bias", self.bias))

    def plot(self) -> Figure:
        """A Matplotlib figure: the bias, the policy, and the history where it was kept."""
        return picture(self, "bias", self.bias, self.history)


def solve_average(
    mdp: MDP, softmax: Softmax, rule: StoppingRule, *, throw: bool, history: bool, mesh: Mesh
) -> AverageSolution:
    """The gain and the bias: `solve(mdp, softmax, average=True)`, which has the details."""
    _check_never_ends(mdp)
    _check_one_closed_set(mdp)
    _check_moves_with_a_shift(mdp, softmax)
    with jax.enable_x64(True):
        solution = _solution(mdp, softmax, rule, history, mesh)
    if throw and not solution.converged:
        raise NotConvergedError(solution, rule.tolerance)
    return solution


def _solution(
    mdp: MDP, softmax: Softmax, rule: StoppingRule, history: bool, mesh: Mesh
) -> AverageSolution:
    problem = Problem.of(mdp, softmax, mesh)
    undiscounted = dataclasses.replace(problem.model, discount=place_scalar(1.0, mesh))
    problem = dataclasses.replace(problem, model=undiscounted)
    run = iterate(_RelativeValueIteration(), problem, rule, 0.0)
    outputs = (problem.model.pairs, P(STATES), P(STATES), P())
    q, value, change, numbers = problem.call(_last_sweep, outputs, run.state.x)
    low, high, least_earned, most_possible, size = np.asarray(numbers).tolist()
    status = run.status if np.isfinite(size) else Status.OVERFLOW
    assert status is not None  # a run without a limit has ended
    if status is Status.LIMIT_CYCLE:  # a change that is at rest, see `_at_rest`
        _raise_several_gains(mdp, problem.fetch(change))
    rounding = error_bound(Margins(0.0, 0.0, 0.0, 0.0, size), 1.0, mdp.n_branches)
    reference = float(problem.fetch(value)[0])
    by_pair = problem.fetch(q, -reference)
    return AverageSolution(
        gain=(low + high) / 2,
        bias=problem.fetch(value, -reference),
        q=by_pair if mdp.allowed is None else np.where(mdp.allowed, by_pair, -np.inf),
        converged=status is Status.CONVERGED,
        status=status,
        iterations=run.iterations,
        residual=(high - low) / 2,
        error_bound=(high - low) / 2 + rounding if softmax.non_expansion else None,
        suboptimality_bound=max(most_possible - min(low, least_earned), 0.0) + 2 * rounding,
        softmax=softmax,
        seconds=time.perf_counter() - rule.began,
        history=np.concatenate(run.changes) if history else None,
        allowed=mdp.allowed,
        state_labels=mdp.state_labels,
        action_labels=mdp.action_labels,
    )


class _LastChange(NamedTuple):
    """What one sweep remembers of the one before."""

    change: jax.Array  # [S]
    moved: jax.Array | float  # the largest difference to the change before


class _RelativeValueIteration(Iteration):
    """Sweeps of state values that are kept from growing."""

    name = AverageSolution.method

    def start(
        self, problem: Problem, initial: float | Floats, tolerance: float, limit: np.int32
    ) -> State:
        """The first sweeps, from equal values."""
        zeros = np.full(problem.mdp.n_states, initial)
        assert problem.mesh is not None
        x, change = (place_array(zeros.copy(), problem.mesh) for _ in range(2))
        state = before_the_first_step(x, _LastChange(change, np.float64(np.inf)))
        return self.advanced(problem, state, None, tolerance, limit)

    def steps(self, problem: Problem, last: Report | None) -> Steps:
        """Sweeps, whatever came before."""
        return _sweeps


def _sweeps(
    model: Model, softmax: Softmax, state: State, tolerance: ArrayLike, limit: ArrayLike
) -> State:
    def step(state: State) -> tuple[State, jax.Array]:
        change = values(model, softmax, action_values(model, state.x)) - state.x
        low, high = smallest(change), largest(change)
        moved = largest(jnp.abs(change - state.memory.change))
        x = state.x + STEP * (change - (low + high) / 2)
        return state._replace(x=x, memory=_LastChange(change, moved)), (high - low) / 2

    return repeat(step, state, tolerance, limit, large=model.large, check=_at_rest)


def _at_rest(state: State, change: jax.Array) -> Check:
    """Stop where the states change by different amounts, and each by the same in every sweep."""
    rest = state.memory.moved <= AT_REST * change
    rest &= change > AT_REST * largest(jnp.abs(state.x))  # or it is rounding
    return Check(stop=rest, period=jnp.where(rest, 2, 0))


def _last_sweep(
    model: Model, softmax: Softmax, x: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """`q`, its values, the change, and the numbers that the bounds follow from."""
    q = action_values(model, x)
    value = values(model, softmax, q)
    earned = value
    if not softmax.attained:
        earned = value - softmax.bonus(q, axis=model.axis, where=model.allowed)
    best = q if model.allowed is None else jnp.where(model.allowed, q, -jnp.inf)
    change = value - x
    low, high, least_earned = smallest(change), largest(change), smallest(earned - x)
    most_possible = largest(jnp.max(best, axis=model.axis) - x)
    size = largest(jnp.abs(q)) + largest(jnp.abs(x))
    return q, value, change, jnp.stack([low, high, least_earned, most_possible, size])


def _check_never_ends(mdp: MDP) -> None:
    rule = "`mdp` must go on forever for an average reward"
    if mdp.terminal.any():
        raise ValueError(
            f"{rule}, got the terminal {mdp.name_of_state(int(mdp.terminal.argmax()))}"
        )
    ends = mdp.available & (mdp.goes_on < 1 - TOLERANCE)
    if ends.any():
        state, action = divmod(int(ends.argmax()), mdp.n_actions)
        named = labels.named("action", action, mdp.action_labels)
        raise ValueError(f"{rule}, got an end in {mdp.name_of_state(state)}, {named}")


def _check_one_closed_set(mdp: MDP) -> None:
    """Raise if there are two sets of states that no action leaves, unless that is not known."""
    if isinstance(mdp.probabilities, Operator):
        return
    state, action, branch = np.nonzero(mdp.probabilities)
    lead = branch if mdp.successors is None else mdp.successors[state, action, branch]
    shape = (mdp.n_states, mdp.n_states)
    graph = scipy.sparse.csr_array((np.ones(len(state), np.bool_), (state, lead)), shape=shape)
    n_sets, of_state = connected_components(graph, directed=True, connection="strong")
    is_left = np.zeros(n_sets, np.bool_)
    is_left[of_state[state[of_state[state] != of_state[lead]]]] = True
    closed = np.flatnonzero(~is_left)
    if len(closed) > 1:
        one, other = sorted(int((of_state == number).argmax()) for number in closed[:2])
        names = f"with {mdp.name_of_state(one)} and with {mdp.name_of_state(other)}"
        raise ValueError(f"{UNICHAIN}, got two sets of states that nothing leaves, {names}")


def _check_moves_with_a_shift(mdp: MDP, softmax: Softmax) -> None:
    """Raise unless the value moves with a shift of all actions, as far as the rewards show."""
    if softmax.non_expansion:
        return
    rewards = mdp.expected_rewards
    shift = 1.0 + float(np.abs(rewards).max())
    values = [softmax.value(rewards + by, where=mdp.allowed) for by in (0.0, shift)]
    moved = np.asarray(values[1] - values[0])
    wrong = ~(np.abs(moved - shift) <= 1e-9 * shift)
    if wrong.any():
        raise ValueError(
            "`softmax` must move with a shift of all action values for an average reward, "
            f"got {softmax}, which a shift of {shift:.6g} moves by {moved[wrong][0]:.6g}"
        )


def _raise_several_gains(mdp: MDP, change: Floats) -> NoReturn:
    low, high = int(change.argmin()), int(change.argmax())
    least = f"{change[low]:.6g} from {mdp.name_of_state(low)}"
    most = f"{change[high]:.6g} from {mdp.name_of_state(high)}"
    raise ValueError(f"{UNICHAIN}, got {least} and {most}")
