"""Planning: from an MDP and a softmax to values, with a proof of how good they are.

**The equation.** Planning with a softmax looks for the fixed point of the Bellman operator that has
the softmax's operator `f` in place of the maximum (section 4 of the paper):

    q = T q,    (T q)(s, a) = r(s, a) + discount * sum_t P(t | s, a) f(q(t, .)).

The maximum gives the optimal values, and a policy's own expectation gives the value of the policy
(`evaluate`). The policy of an attained softmax earns its value, `sum_a policy(a) q(s, a) =
f(q(s, .))`, so that a fixed point is also the exact value of the softmax's policy there. The value
of a regularised softmax has a bonus besides, and its fixed point is the value of its policy with
that bonus in every state: soft Q-learning's and G-learning's values are such fixed points. The
value of a terminal state is 0, whatever the softmax.

**The fixed point.** If `f` is a non-expansion, `|f(x) - f(y)| <= max |x - y|`, then `T` is a
contraction: there is one fixed point, and each sweep `q <- T q` shrinks the distance to it at least
by the discount (Littman and Szepesvari 1996). That holds for every softmax here but Boltzmann's,
which can have several fixed points, and whose sweeps can end in a cycle. The status of the solution
then says so, and `fixed_points` finds all fixed points of a small MDP.

**The methods**, each a module of `methods`:

- `in-place`: sweeps that replace one `q(s, a)` after the other, the paper's Algorithm 2.
- `synchronous`: sweeps that replace all of `q` together.
- `shifted`: sweeps of state values, each followed by a shift of all values by what the sweeps to
  come would add to them alike. Fast where no episode ends and the Markov chain mixes quickly.
- `newton`: before each sweep of state values a step of Newton's method, whose linear system is
  solved roughly. For the maximum that is modified policy iteration. It takes few iterations,
  whatever the discount. On a CPU the system is solved exactly where its matrix is quick to
  factorise, since it is small or banded (`linear`), and then nothing is compiled.
- `auto`: chooses among these, and the solution says why.

**The stopping rule.** An iteration is one sweep, with what comes before or after it. A solve has
converged when an iteration changes no value by more than `tolerance`; for `shifted` and `newton`
the change does not count a shift of all values where no episode ends, since that shift is known.
It also ends in a cycle, where the change is no more than rounding, after `max_iterations`, when
values overflow, or when the callback asks for it.

**The bounds.** Every solution, converged or not, has bounds that follow from its last sweep. Let
`rho` be the residual, `max |T q - q|`, and let no policy take more than `h` expected discounted
steps: `h = 1 / (1 - discount)` at most, and less where episodes end (`horizon`). Then

    max |q - fixed point| <= h rho,    optimum - value <= gap + h (2 rho + discount * gap + bonus),

where `gap` is how far `f` is below the maximum, and `bonus` how much more than the policy earns it
is. The first needs a non-expansion, the second holds for every softmax, and is cut at the range of
returns that these rewards allow; `bounds` has the proofs and what rounding adds.

References:
    Asadi and Littman (2017), An alternative softmax operator for reinforcement learning, ICML.
    Littman and Szepesvari (1996), A generalized reinforcement-learning model: convergence and
        applications, ICML.
    Puterman (2005), Markov decision processes, chapter 6.
    MacQueen (1966), A modified dynamic programming method for Markovian decision problems.
    Puterman and Brumelle (1979), On the convergence of policy iteration in stationary dynamic
        programming. Puterman and Shin (1978), Modified policy iteration algorithms for discounted
        Markov decision problems.
    Knoll and Keyes (2004), Jacobian-free Newton-Krylov methods. Van der Vorst (1992), Bi-CGSTAB.
    Brent (1980), An improved Monte Carlo factorization algorithm: the search for cycles.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from typing import Literal, overload

import jax
import numpy as np
from jax.sharding import Mesh

from .._common import checks
from .._common.shown import shown
from .._typing import ArrayLike, Floats
from ..mdp import MDP
from ..mdp.operator import Operator
from ..softmax import Softmax
from .arguments import check_callback, check_softmax, mesh_of
from .average_reward import AverageSolution, solve_average
from .bounds import Margins, error_bound, loss_bound
from .devices import mesh_of_one
from .finite_horizon import FiniteHorizonSolution, backward_induction
from .horizon import horizon as horizon_of
from .loop import Callback, StoppingRule, evidence_of
from .methods import METHODS, Choice, Task, as_asked, choose
from .sensitivity import sensitivity
from .solution import NotConvergedError, Solution, Status

__all__ = ["solve"]


@overload
def solve(
    mdp: MDP,
    softmax: Softmax,
    *,
    method: str = ...,
    initial: ArrayLike = ...,
    tolerance: float = ...,
    max_iterations: int = ...,
    throw: bool = ...,
    callback: Callback | None = ...,
    history: bool = ...,
    mesh: Mesh | None = ...,
) -> Solution: ...


@overload
def solve(
    mdp: MDP | Sequence[MDP],
    softmax: Softmax | Sequence[Softmax],
    *,
    horizon: int,
    final: ArrayLike = ...,
    callback: Callback | None = ...,
    mesh: Mesh | None = ...,
) -> FiniteHorizonSolution: ...


@overload
def solve(
    mdp: MDP,
    softmax: Softmax,
    *,
    average: Literal[True],
    tolerance: float = ...,
    max_iterations: int = ...,
    throw: bool = ...,
    callback: Callback | None = ...,
    history: bool = ...,
    mesh: Mesh | None = ...,
) -> AverageSolution: ...


def solve(
    mdp: MDP | Sequence[MDP],
    softmax: Softmax | Sequence[Softmax],
    *,
    horizon: int | None = None,
    final: ArrayLike = 0.0,
    average: bool = False,
    method: str = "auto",
    initial: ArrayLike = 0.0,
    tolerance: float = 1e-8,
    max_iterations: int = 100_000,
    throw: bool = True,
    callback: Callback | None = None,
    history: bool = False,
    mesh: Mesh | None = None,
) -> Solution | FiniteHorizonSolution | AverageSolution:
    """Values of an MDP under a softmax: the fixed point of `q = r + discount * P f(q)`.

    With a `horizon` there is no fixed point to find, but the values of each of that many steps
    (`finite_horizon`). Then only `final`, `callback` and `mesh` matter of the further arguments.
    With `average` it is the reward of a step on average, without the discount (`average_reward`).
    Then `method` and `initial` have no part.

    Args:
        mdp: the MDP; with a horizon, a list may have one for each step.
        softmax: any pair; each state can have a parameter of its own. With a horizon, a list may
            have one for each step.
        horizon: the number of steps; None for no end but that of episodes.
        final: with a horizon, what each state is worth after the last step, a number or `[S]`.
        average: find the average reward instead of discounted values? The solve then ends when
            it is known to within `tolerance`.
        method: `"in-place"` is the paper's Algorithm 2, `"synchronous"` its simultaneous form,
            `"shifted"` adds to each sweep what a shift of all values can add, `"newton"` is
            modified policy iteration and Newton-Krylov; `"auto"` chooses and says why.
        initial: the values to start from, a number or `[S, A]`. An action that cannot be taken may
            have any, so that the `q` of another solution will do.
        tolerance: the solve ends when an iteration changes no value by more than this (for shifted
            sweeps and Newton, apart from a shift of all values).
        max_iterations: the most iterations to take.
        throw: raise where it does not converge? Otherwise the solution's status says so.
        callback: called about four times a second with a `SolveProgress`; the solve stops if it
            returns True.
        history: keep the change of each iteration?
        mesh: the devices to spread the states over, a mesh with the one axis `"states"`; None for
            JAX's default device, or on a CPU for main memory where that is faster. Processes that
            are joined by `jax.distributed` call this together.

    Returns:
        A `Solution`, with a horizon a `FiniteHorizonSolution`, or for the average reward an
        `AverageSolution`, in float64 whatever JAX's flags say.

    Raises:
        NotConvergedError: where it did not converge, and `throw` is True.
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> from mellowmax.planning import solve
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> print(solution.q[0].round(4), solution.status)
        [0.4005 0.4516] converged

        With three steps to go, two, one and none, in the first state:

        >>> print(solve(two_state(), Mellowmax(16.55), horizon=3).value[:, 0].round(4))
        [0.2091 0.1593 0.0926 0.    ]

        What a step earns on average in a chain whose last state pays:

        >>> from mellowmax.mdp import chain
        >>> print(round(solve(chain(5), Mellowmax(16.55), average=True).gain, 4))
        0.847
    """
    began = time.perf_counter()
    checks.one_of("method", method, ("auto", *METHODS))
    tolerance = checks.real("tolerance", tolerance, 0.0, infinite=True)
    max_iterations = checks.whole("max_iterations", max_iterations, 1)
    check_callback(callback)
    if horizon is not None or average:
        criterion = "for an average reward" if horizon is None else "with a horizon"
        if method != "auto":
            raise ValueError(f"`method` must not be given {criterion}, got {method!r}")
        _check_not_given("initial", initial, criterion)
    if horizon is not None:
        if average:
            got = shown(horizon)
            raise ValueError(f"`horizon` must not be given for an average reward, got {got}")
        return backward_induction(mdp, softmax, horizon, final=final, callback=callback, mesh=mesh)
    _check_not_given("final", final, "without a horizon")
    checks.instance("mdp", mdp, MDP, "an MDP")
    assert isinstance(mdp, MDP)  # as mypy does not know by now
    check_softmax(softmax, mdp)
    assert isinstance(softmax, Softmax)
    devices = _mesh(mesh, method)
    movable = mesh is None and devices.devices.flat[0].platform == "cpu"
    rule = StoppingRule(tolerance, max_iterations, callback, began)
    if average:
        options = {"throw": throw, "history": history, "movable": movable}
        return solve_average(mdp, softmax, rule, mesh=devices, **options)
    mdp.check_ends()
    if method == "in-place" and isinstance(mdp.probabilities, Operator):
        raise ValueError(f"`method` must be another one for an operator, got {method!r}")
    start = _initial(initial, mdp)
    with jax.enable_x64(True):
        task = Task(mdp, softmax, devices, movable)
        if method == "auto":
            choice = choose(task, rule, start)
        else:
            choice = as_asked(method, task, rule, start)
        solution = _solution(choice, history, began)
    if throw and not solution.converged:
        raise NotConvergedError(solution, tolerance)
    return solution


def _solution(choice: Choice, history: bool, began: float) -> Solution:
    """Where a run has come to, and what is proved about it."""
    method, reason, run, problem = choice
    mdp, softmax = problem.mdp, problem.softmax
    evidence = evidence_of(method, problem, run.state)
    margins = Margins.of(evidence)
    kappa, steps = horizon_of(problem)
    error = error_bound(margins, steps, mdp.n_branches)
    assert run.status is not None  # a run without a limit has ended
    status = run.status if math.isfinite(margins.size) else Status.OVERFLOW
    converged = status is Status.CONVERGED
    several = problem.mesh if problem.mesh is not None and problem.mesh.size > 1 else None
    q = problem.fetch(method.action_values(run.state), margins.shift)
    value = problem.fetch(evidence.value)
    return Solution(
        q=q if mdp.allowed is None else np.where(mdp.allowed, q, -np.inf),
        value=value,
        converged=converged,
        status=status,
        iterations=run.iterations,
        residual=margins.residual,
        error_bound=error if softmax.non_expansion else None,
        suboptimality_bound=loss_bound(margins, steps, kappa, mdp, softmax, q, value),
        method=method.name,
        reason=reason,
        softmax=softmax,
        seconds=time.perf_counter() - began,
        history=np.concatenate(run.changes) if history else None,
        allowed=mdp.allowed,
        state_labels=mdp.state_labels,
        action_labels=mdp.action_labels,
        cycle_period=run.report.period if status is Status.LIMIT_CYCLE else None,
        _sensitivity=functools.partial(sensitivity, mdp, softmax, several, value, converged),
    )


def _check_not_given(name: str, value: ArrayLike, when: str) -> None:
    """Raise unless it is 0, the default."""
    array = checks.numbers(name, value)
    if array.size != 1 or array.any():
        raise ValueError(f"`{name}` must not be given {when}, got {shown(value)}")


def _initial(initial: ArrayLike, mdp: MDP) -> float | Floats:
    """A finite number, or `[S, A]` with finite numbers for the actions that can be taken."""
    array = checks.numbers("initial", initial)
    shape = mdp.probabilities.shape[:2]
    if array.shape not in ((), shape):
        raise ValueError(f"`initial` must be a number or have the shape {shape}, got {array.shape}")
    if array.ndim == 0:
        return checks.real("initial", float(array))
    array = np.where(mdp.available, array, 0.0)
    checks.finite("initial", array)
    return array


def _mesh(mesh: Mesh | None, method: str) -> Mesh:
    """The mesh of the solve: an accelerator gains nothing where entry follows entry."""
    if mesh is None and method == "in-place":
        return mesh_of_one(jax.local_devices(backend="cpu")[0])
    mesh = mesh_of(mesh)
    if mesh.size > 1 and method == "in-place":
        raise ValueError("`mesh` must have one device for in-place sweeps, which go state by state")
    return mesh
