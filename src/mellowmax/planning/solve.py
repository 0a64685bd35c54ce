"""From an MDP and a softmax to its values, by any method, with a proof of how good they are."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from ..mdp import MDP
from ..softmax import Max, Softmax
from . import bounds
from .drive import Callback, Drive
from .evaluate import FixedPolicy
from .loop import Iteration
from .solution import NotConvergedError, Solution
from .sweep import STATES, fetch

__all__ = ["Choice", "evaluate", "solve"]

METHODS = ("auto", "in-place", "synchronous", "shifted", "newton")
STEPS_OF_THE_HORIZON = 100_000
"""Newton's steps, at most, for the expected length of an episode."""
TRIAL, TRIAL_OF_A_LARGE_MODEL = 12, 4
"""Shifted sweeps after which `auto` decides."""
FEW_SWEEPS = 40
"""It goes on with them if it expects no more than these."""


def solve(
    mdp: MDP,
    softmax: Softmax,
    *,
    method: str = "auto",
    initial: Any = 0.0,
    tolerance: float = 1e-8,
    max_iterations: int = 100_000,
    throw: bool = True,
    callback: Callback | None = None,
    history: bool = False,
    mesh: Mesh | None = None,
) -> Solution:
    """Values of an MDP under a softmax: the fixed point of `q = r + discount * P f(q)`.

    Args:
        mdp: the MDP.
        softmax: any pair; each state can have a parameter of its own.
        method: `"in-place"` is the paper's Algorithm 2, `"synchronous"` its simultaneous form,
            `"shifted"` adds to each sweep what a shift of all values can add, `"newton"` is
            modified policy iteration and Newton-Krylov; `"auto"` chooses and says why.
        initial: the values to start from, a number or `[S, A]`.
        tolerance: the solve ends when an iteration changes no value by more than this (for shifted
            sweeps and Newton, apart from a shift of all values).
        max_iterations: the most iterations to take.
        throw: raise where it does not converge? Otherwise the solution's status says so.
        callback: called about four times a second with a `Progress`; the solve stops if it returns
            True.
        history: keep the change of each iteration?
        mesh: the devices to spread the states over, a mesh with the one axis `"states"`; None for
            JAX's default device. Processes joined by `jax.distributed` call this together.

    Returns:
        A `Solution`, in float64 whatever JAX's flags say.

    Raises:
        NotConvergedError: where it did not converge, and `throw` is True.
        ValueError: for an argument that is not as above.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> from mellowmax.planning import solve
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> print(solution.q[0].round(4), solution.status)
        [0.4005 0.4516] converged
    """
    began = time.perf_counter()
    _check(mdp, softmax, method, tolerance, max_iterations, mesh)
    start = _initial(initial, mdp)
    with jax.enable_x64(True):
        mesh = _default_mesh(method) if mesh is None else mesh
        drive = Drive(mdp, softmax, mesh, tolerance, max_iterations, callback)
        if method == "auto":
            choice = _choose(drive, start)
        else:
            choice = Choice(method, "as asked", drive.take(method, start))
        solution = _solution(drive, choice, history, began)
    if throw and not solution.converged:
        raise NotConvergedError(solution, tolerance)
    return solution


class Choice(NamedTuple):
    """A method, why it was taken, and where it ended."""

    method: str
    reason: str
    end: Iteration


def _choose(drive: Drive, start: Any) -> Choice:
    """Take the method that promises most."""
    if not drive.softmax.non_expansion:
        reason = "no method is sure to converge here, and plain sweeps show what happens"
        return Choice("synchronous", reason, drive.take("synchronous", start))
    if not drive.model.endless:
        reason = "episodes end, so a shift of all values gains nothing"
        return Choice("newton", reason, drive.take("newton", start))
    if drive.greedy:
        reason = "one action a state makes up the derivative of a maximum, so its steps are cheap"
        return Choice("newton", reason, drive.take("newton", start))
    trial = TRIAL_OF_A_LARGE_MODEL if drive.model.large else TRIAL
    state = drive.take("shifted", start, limit=trial)
    if drive.status:
        end = "were enough" if drive.status == "converged" else "were all there was time for"
        return Choice("shifted", f"the first {drive.iterations} sweeps {end}", state)
    before, last = np.concatenate(drive.changes)[-2:]
    rate = min(last / before, 1 - 1e-9)
    more = math.ceil(math.log(max(drive.tolerance, 1e-300) / last) / math.log(rate))
    speed = f"a shifted sweep leaves {rate:.2g} of the change"
    if more <= FEW_SWEEPS:
        return Choice("shifted", f"{speed}: about {more} more to go", drive.take("shifted", state))
    reason = f"{speed}: over {FEW_SWEEPS} more would be needed"
    return Choice("newton", reason, drive.take("newton", state))


def _solution(drive: Drive, choice: Choice, history: bool, began: float) -> Solution:
    mdp, softmax = drive.mdp, drive.softmax
    evidence = drive.evidence(choice.end)
    kappa, horizon = _horizon(drive)
    error = bounds.error_bound(evidence, horizon, mdp.n_branches)
    status = drive.status if math.isfinite(evidence.size) else "overflow"
    return Solution(
        q=fetch(evidence.q, drive.model, mdp.n_states, evidence.shift),
        value=fetch(evidence.value, drive.model, mdp.n_states),
        converged=status == "converged",
        status=status,
        iterations=drive.iterations,
        residual=max(evidence.high, -evidence.low),
        error_bound=error if softmax.non_expansion else None,
        suboptimality_bound=bounds.loss_bound(evidence, horizon, kappa, mdp.n_branches),
        method=choice.method,
        reason=choice.reason,
        softmax=softmax,
        seconds=time.perf_counter() - began,
        history=np.concatenate(drive.changes) if history else None,
        allowed=mdp.allowed,
    )


def _horizon(drive: Drive) -> tuple[float, float]:
    """`kappa`, and a bound on the expected discounted number of steps of any policy."""
    kappa = drive.mdp.discount * drive.continuation()
    if kappa < 1:
        return kappa, 1 / (1 - kappa)
    # Every policy ends. The largest expected number of steps is itself a fixed point, of the
    # maximum with a reward of 1 a step; h >= 1 + P h proves h to be no less.
    mdp = drive.mdp
    steps = np.broadcast_to(np.where(mdp.terminal, 0.0, 1.0)[:, None], mdp.probabilities.shape[:2])
    counted = dataclasses.replace(mdp, rewards=steps)
    drive = Drive(counted, Max(), drive.mesh, 1e-3, STEPS_OF_THE_HORIZON, None)
    evidence = drive.evidence(drive.take("newton", 0.0))
    most = max(float(fetch(evidence.q, drive.model, mdp.n_states).max()), 1.0)
    return kappa, most / (1 - evidence.high) if evidence.high < 1 else math.inf


def evaluate(mdp: MDP, policy: Any, **options: Any) -> Solution:
    """The exact value of a policy: what it earns, state by state.

    Args:
        mdp: the MDP.
        policy: `[S, A]`, the probability of each action in each state.
        **options: those of `solve`, such as `tolerance`.

    Returns:
        A `Solution` whose `value` and `q` are those of the policy, with their error bound.

    Examples:
        The fixed point of a softmax is the value of its own policy:

        >>> from mellowmax import Mellowmax
        >>> from mellowmax.mdp import two_state
        >>> solution = solve(two_state(), Mellowmax(16.55))
        >>> earned = evaluate(two_state(), solution.policy)
        >>> print(solution.value.round(6), earned.value.round(6))
        [0.43134 0.     ] [0.43134 0.     ]
    """
    _check_mdp(mdp)
    weights = np.asarray(policy, np.float64)
    shape = mdp.probabilities.shape[:2]
    if weights.shape != shape:
        raise ValueError(f"`policy` must have the shape {shape}, got {weights.shape}")
    sums = np.where(weights >= 0, weights, np.nan).sum(1)
    bad = ~(abs(sums - 1) <= 1e-6)
    if bad.any():
        state = int(bad.argmax())
        raise ValueError(f"`policy` must be a distribution, got {weights[state]} in state {state}")
    if mdp.allowed is not None and weights[~mdp.allowed].any():
        state = int((weights * ~mdp.allowed).any(1).argmax())
        raise ValueError(
            f"`policy` must take allowed actions, got {weights[state]} in state {state}"
        )
    return solve(mdp, FixedPolicy(weights / sums[:, None]), **options)


def _check_mdp(mdp: Any) -> None:
    if not isinstance(mdp, MDP):
        raise TypeError(f"`mdp` must be an MDP, got {mdp!r}")


def _check(
    mdp: Any, softmax: Any, method: str, tolerance: float, max_iterations: int, mesh: Mesh | None
) -> None:
    _check_mdp(mdp)
    if not isinstance(softmax, Softmax):
        raise TypeError(f"`softmax` must be a Softmax such as Mellowmax(5.0), got {softmax!r}")
    for leaf in jax.tree.leaves(softmax):
        if np.ndim(leaf) and len(leaf) != mdp.n_states:
            raise ValueError(
                f"`softmax` must have one parameter, or one for each of the {mdp.n_states} states, "
                f"got the shape {np.shape(leaf)}"
            )
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(METHODS)}, got {method!r}")
    if not tolerance >= 0:
        raise ValueError(f"`tolerance` must be at least 0, got {tolerance}")
    if not (isinstance(max_iterations, int | np.integer) and max_iterations >= 1):
        raise ValueError(f"`max_iterations` must be a whole number from 1, got {max_iterations!r}")
    if mesh is not None and mesh.axis_names != (STATES,):
        raise ValueError(f"`mesh` must have the one axis {STATES!r}, got {mesh.axis_names}")
    if mesh is not None and mesh.size > 1 and method == "in-place":
        raise ValueError("`mesh` must have one device for in-place sweeps, which go state by state")


def _initial(initial: Any, mdp: MDP) -> Any:
    """A number, or `[S, A]`."""
    if isinstance(initial, float) and math.isfinite(initial):
        return initial
    array = np.asarray(initial, np.float64)
    shape = mdp.probabilities.shape[:2]
    if array.shape not in ((), shape):
        raise ValueError(f"`initial` must be a number or have the shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"`initial` must be finite, got {bad}")
    return float(array) if array.ndim == 0 else array


def _default_mesh(method: str) -> Mesh:
    device = jax.config.jax_default_device or jax.local_devices()[0]
    if method == "in-place":  # an accelerator gains nothing where entry follows entry
        device = jax.local_devices(backend="cpu")[0]
    return _mesh_of(device)


@functools.cache
def _mesh_of(device: Any) -> Mesh:
    return Mesh(np.array([device]), (STATES,))
