"""Planning: the right values by every method, the paper's algorithm, and every way to end."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re

import gymnasium
import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
from jax.sharding import Mesh

from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax, Softmax
from mellowmax.mdp import MDP, garnet, grid_world, two_state
from mellowmax.planning import NotConvergedError, SolveProgress, Status, evaluate, loop, solve

METHODS = ("auto", "in-place", "synchronous", "shifted", "newton")
MESH = Mesh(np.array(jax.devices("cpu")[:1]), ("states",))
"""On a mesh all is compiled; without one Newton's method runs in main memory, as does "auto"."""
WAYS = {name: {"method": name, "mesh": MESH} for name in METHODS}
WAYS |= {"newton in memory": {"method": "newton"}}
methods = pytest.mark.parametrize("method", WAYS)


def masked(*, dense):
    """Rewards of each transition, actions that are not there, and a terminal state."""
    rng = np.random.default_rng(1)
    transitions = rng.dirichlet(np.full(12, 0.3), (12, 3)) * (rng.random((12, 3, 12)) < 0.7)
    transitions[..., 0] += 0.01
    transitions /= transitions.sum(-1, keepdims=True)
    rewards = rng.normal(size=transitions.shape)
    allowed = rng.random((12, 3)) < 0.6
    allowed[~allowed.any(1), 1] = True
    terminal = np.arange(12) == 7
    if dense:
        return MDP.from_arrays(transitions, rewards, 0.95, allowed=allowed, terminal=terminal)
    matrices = [scipy.sparse.csr_array(transitions[:, a]) for a in range(3)]
    earned = [scipy.sparse.csr_array(rewards[:, a]) for a in range(3)]
    return MDP.from_sparse(matrices, earned, 0.95, allowed=allowed, terminal=terminal)


def ladder():
    """Up one to four rungs, surely, until the top; what a step earns differs."""
    s, a = np.ogrid[:16, :4]
    successors = np.repeat(np.minimum(s + 1 + a, 16)[..., None], 3, -1)
    probabilities = np.broadcast_to([1.0, 0.0, 0.0], (16, 4, 3))
    return MDP(successors, probabilities, np.sin(3 * s + a), 1.0)


def hazard():
    """Every step ends the episode with a probability of at least 0.05."""
    rng = np.random.default_rng(2)
    probabilities = np.append(
        rng.dirichlet(np.ones(2), (16, 4)) * 0.95, np.full((16, 4, 1), 0.05), 2
    )
    successors = np.append(rng.integers(17, size=(16, 4, 2)), np.full((16, 4, 1), 16), 2)
    return MDP(successors, probabilities, rng.normal(size=(16, 4)), 1.0)


def corridor(discount):
    """A walk to and fro that forgets slowly where it began; at one end there is something to earn.

    It has the shape of "garnet", and so its programs.
    """
    s, a = np.ogrid[:40, :3]
    moves = [s + a - 1, s + 0 * a, s + 1 + 0 * a, s - 1 + 0 * a, s + 0 * a]
    successors = np.clip(np.stack(moves, -1), 0, 39)
    probabilities = np.broadcast_to([0.6, 0.1, 0.1, 0.1, 0.1], (40, 3, 5))
    return MDP(successors, probabilities, (s == 39) - 0.1 * (a != 1), discount)


# A program is compiled for a shape, a kind of softmax and a method, so tests share a few of these:
# a number as the parameter on "garnet", where no episode ends; a parameter for each state on
# "masked" and "dense", of an operator that is quick to compile (`test_bounds` has mellowmax there).
# "myopic" and "corridor" have the shape of "garnet"; "ladder" and "hazard" that of "FrozenLake".
MODELS = {
    "FrozenLake": lambda: MDP.from_gymnasium("FrozenLake-v1", 0.99),
    "Taxi": lambda: MDP.from_gymnasium("Taxi-v4", 0.95),
    "garnet": lambda: garnet(40, 3, 5, seed=0, discount=0.98),
    "corridor": lambda: corridor(0.97),
    "masked": lambda: masked(dense=False),
    "dense": lambda: masked(dense=True),
    "myopic": lambda: garnet(40, 3, 5, seed=1, discount=0.0),
    "ladder": ladder,
    "hazard": hazard,
}
ENVIRONMENTS = {
    "FrozenLake": "FrozenLake-v1",
    "Taxi": "Taxi-v4",
}
OWN = EpsilonGreedy(np.where(np.arange(12) % 2 == 1, 0.1, 0.6))
"""A parameter for each state of "masked" and "dense"."""
WITH_ALL_METHODS = ("FrozenLake", "ladder", "hazard", "garnet", "myopic", "corridor")
CORRECTED = ("auto", "shifted", "newton", "newton in memory")
"""For "masked" and "dense". Plain sweeps are those of Algorithm 2 on "masked", too, and those of
dense models those of `planning.batch`."""


@functools.cache
def model(name):
    return MODELS[name]()


def kind(case):
    """What a test is called after."""
    return type(case).__name__ if isinstance(case, Softmax) else str(case)


def there(mdp):
    return np.ones(mdp.rewards.shape[:2], bool) if mdp.allowed is None else mdp.allowed


def table(name):
    """`[A]` matrices `[S, S]` and rewards `[S, A]`, -inf where there is no action.

    For Gymnasium's they are read from its own table; what ends an episode has no column.
    """
    mdp = model(name)
    if name not in ENVIRONMENTS:
        transitions, rewards = mdp.to_scipy()
        matrices = [transitions[a :: mdp.n_actions] for a in range(mdp.n_actions)]
        return matrices, np.where(there(mdp), rewards, -np.inf)
    branches = gymnasium.make(ENVIRONMENTS[name]).unwrapped.P
    transitions = np.zeros((mdp.n_actions, mdp.n_states, mdp.n_states))
    rewards = np.zeros((mdp.n_states, mdp.n_actions))
    for s, actions in branches.items():
        for a, outcomes in actions.items():
            for probability, successor, reward, ends in outcomes:
                rewards[s, a] += probability * reward
                transitions[a, s, successor] += 0.0 if ends else probability
    return [scipy.sparse.csr_array(matrix) for matrix in transitions], rewards


@functools.cache
def policy_iteration(name):
    """The optimal values of pairs, as QuantEcon finds them: a linear system for each policy."""
    (matrices, rewards), discount = table(name), model(name).discount
    states = np.arange(len(rewards))
    policy = rewards.argmax(1)
    while True:
        rows = scipy.sparse.vstack([matrices[a][[s]] for s, a in enumerate(policy)])
        system = (scipy.sparse.eye_array(len(states)) - discount * rows).tocsc()
        v = scipy.sparse.linalg.spsolve(system, rewards[states, policy])
        q = rewards + discount * np.stack([matrix @ v for matrix in matrices], 1)
        better = np.where(q.max(1) > q[states, policy] + 1e-11, q.argmax(1), policy)
        if (better == policy).all():
            return q
        policy = better


def value_iteration(name):
    """The optimal values of states, as MDPtoolbox finds them: `[A]` matrices `[S, S]`, sweeps."""
    (matrices, rewards), discount = table(name), model(name).discount
    v, change = np.zeros(len(rewards)), math.inf
    while change > 1e-12:
        new = np.max([r + discount * p @ v for p, r in zip(matrices, rewards.T, strict=True)], 0)
        v, change = new, np.abs(new - v).max()
    return v


def linear_program(name):
    """The optimal values of states: the least that no action improves on (SciPy's HiGHS)."""
    (matrices, rewards), discount = table(name), model(name).discount
    rows = [discount * matrix - scipy.sparse.eye_array(len(rewards)) for matrix in matrices]
    finite = np.isfinite(rewards.T.ravel())
    result = scipy.optimize.linprog(
        np.ones(len(rewards)),
        A_ub=scipy.sparse.vstack(rows).tocsr()[finite],
        b_ub=-rewards.T.ravel()[finite],
        bounds=(None, None),
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return result.x


def sweep(mdp, softmax, q):
    """One synchronous sweep with NumPy."""
    transitions, rewards = mdp.to_numpy()
    return rewards + mdp.discount * transitions @ softmax.value(q, where=mdp.allowed)


def residual_of(mdp, softmax, q):
    """How far a sweep moves the values of actions that are allowed."""
    return np.abs(sweep(mdp, softmax, q) - q)[there(mdp)].max()


def attained(policy, q):
    """The policy's mean of the action values."""
    return (policy * np.where(policy > 0, q, 0)).sum(1)


def value_of(mdp, policy):
    """What a policy earns, by `numpy.linalg.solve`."""
    transitions, rewards = mdp.to_numpy()
    along = np.einsum("sa,sat->st", policy, transitions)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * along, (policy * rewards).sum(1))


# Values.


@pytest.mark.parametrize("name", MODELS)
def test_three_references_agree(name):
    best = policy_iteration(name).max(1)
    np.testing.assert_allclose(value_iteration(name), best, atol=1e-9)
    np.testing.assert_allclose(linear_program(name), best, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *itertools.product(WITH_ALL_METHODS, WAYS),
        *itertools.product(("masked", "dense"), CORRECTED),
        ("Taxi", "auto"),
        ("Taxi", "newton in memory"),
    ],
)
def test_under_the_maximum_the_values_are_optimal(name, method):
    solution = solve(model(name), Max(), **WAYS[method], tolerance=1e-11)
    if method != "auto":
        assert solution.method == WAYS[method]["method"]
        assert solution.reason.startswith("as asked")
    best = policy_iteration(name)
    np.testing.assert_allclose(solution.value, best.max(1), atol=1e-8, rtol=0)
    counts = np.isfinite(best)
    np.testing.assert_allclose(solution.q[counts], best[counts], atol=1e-8, rtol=0)
    assert np.all(solution.q[~counts] == -np.inf)
    earned = value_of(model(name), solution.policy)
    np.testing.assert_allclose(earned, best.max(1), atol=1e-8, rtol=0)


@pytest.mark.parametrize(
    ("name", "softmax"),
    [
        ("garnet", Mellowmax(-2.0)),
        ("garnet", Boltzmann(0.5)),
        ("masked", OWN),
    ],
    ids=kind,
)
def test_under_a_softmax_all_methods_find_the_value_of_its_own_policy(name, softmax):
    mdp = model(name)
    first = solve(mdp, softmax, tolerance=1e-11)
    for method, way in WAYS.items():
        solution = solve(mdp, softmax, **way, tolerance=1e-11)
        residual = residual_of(mdp, softmax, solution.q)
        assert residual <= solution.residual + 1e-13 <= 2e-11, method
        np.testing.assert_allclose(
            solution.value, softmax.value(solution.q, where=mdp.allowed), rtol=1e-13
        )
        policy = solution.policy
        np.testing.assert_allclose(attained(policy, solution.q), solution.value, atol=1e-11)
        assert np.all(policy[~there(mdp)] == 0)
        np.testing.assert_allclose(value_of(mdp, policy), solution.value, atol=2e-9)
        np.testing.assert_allclose(solution.q, first.q, atol=2e-9)


def test_values_travel_over_a_grid_in_any_direction():
    """If the first of tied actions were always taken, it would be a state a step: 75 steps."""
    mdp = grid_world((60, 60))
    solution = solve(mdp, Max(), method="newton")
    assert solution.iterations <= 30
    transitions, rewards = mdp.to_scipy()
    v = np.zeros(3600)
    for _ in range(1500):
        v = (rewards + mdp.discount * (transitions @ v).reshape(rewards.shape)).max(1)
    np.testing.assert_allclose(solution.value, v, rtol=0, atol=solution.error_bound + 1e-4)


@pytest.mark.parametrize("name", ["garnet", "masked"])
def test_a_policy_is_evaluated_exactly(name, rng):
    mdp = model(name)
    policy = rng.random(mdp.rewards.shape[:2]) * there(mdp)
    policy /= policy.sum(1, keepdims=True)
    expected = value_of(mdp, policy)
    method = "auto" if name == "garnet" else "shifted"  # `test_bounds` has "auto" for a mask, too
    solution = evaluate(policy, mdp, tolerance=1e-12, method=method)
    assert np.abs(solution.value - expected).max() <= solution.error_bound <= 1e-8
    np.testing.assert_allclose(attained(policy, solution.q), solution.value, atol=1e-12)
    np.testing.assert_allclose(solution.softmax.value(solution.q), solution.value, atol=1e-12)
    np.testing.assert_allclose(solution.policy, policy, rtol=1e-14)


def test_a_policy_in_single_precision_is_rescaled(rng):
    """Its rows are off 1 by 1e-7, which a discount of 0.9999 would turn into 1e-3."""
    mdp = dataclasses.replace(model("garnet"), discount=0.9999)
    policy = rng.dirichlet([1.0, 1.0, 1.0], 40).astype(np.float32)
    rows = policy.astype(np.float64)
    expected = value_of(mdp, rows / rows.sum(1, keepdims=True))
    solution = evaluate(policy, mdp, tolerance=1e-12, throw=False)
    assert np.abs(solution.value - expected).max() <= solution.error_bound


@pytest.mark.parametrize(
    ("softmax", "method"), [*((Max(), method) for method in CORRECTED), (OWN, "shifted")], ids=kind
)
def test_dense_and_sparse_are_the_same_model(softmax, method):
    dense, sparse = (
        solve(model(name), softmax, **WAYS[method], tolerance=1e-11) for name in ("dense", "masked")
    )
    np.testing.assert_allclose(dense.q, sparse.q, atol=1e-9)
    assert dense.method == sparse.method


@methods
def test_one_parameter_for_each_state(method):
    """States with the parameter 0.1 and states with 0.6: their values, each by its own operator."""
    mdp = model("masked")
    odd = np.arange(mdp.n_states) % 2 == 1
    solution = solve(mdp, OWN, **WAYS[method], tolerance=1e-11)
    values = [EpsilonGreedy(x).value(solution.q, where=mdp.allowed) for x in (0.1, 0.6)]
    np.testing.assert_allclose(solution.value, np.where(odd, *values), atol=1e-13)
    transitions, rewards = mdp.to_numpy()
    again = rewards + mdp.discount * transitions @ np.where(odd, *values)
    np.testing.assert_allclose(solution.q[there(mdp)], again[there(mdp)], atol=2e-11)


def costs():
    """Rewards are costs, and an action that is not allowed would be the cheapest at 0."""
    mdp = model("masked")
    return dataclasses.replace(mdp, rewards=-1 - abs(mdp.expected_rewards))


def test_an_action_that_is_not_allowed_is_worth_minus_infinity(tmp_path):
    """So that those who look for the best action in `q` never find it."""
    mdp = costs()
    counts = there(mdp)
    solution = solve(mdp, Max(), tolerance=1e-11)
    assert (np.isneginf(solution.q) == ~counts).all()
    best = solution.q.argmax(1)
    assert counts[np.arange(mdp.n_states), best].all()
    np.testing.assert_allclose(value_of(mdp, np.eye(3)[best]), solution.value, atol=1e-8)
    policy = Boltzmann(3.0).policy(solution.q)
    np.testing.assert_allclose(policy, Boltzmann(3.0).policy(solution.q, where=counts), rtol=1e-14)
    assert (policy[~counts] == 0).all()
    solution.save(tmp_path / "solution.npz")
    with np.load(tmp_path / "solution.npz") as saved:
        assert (saved["q"] == solution.q).all()
        assert (saved["allowed"] == counts).all()


@methods
def test_the_values_of_a_solution_start_another_one(method):
    mdp = costs()
    first = solve(mdp, OWN, method="synchronous", tolerance=1e-11)
    again = solve(mdp, OWN, **WAYS[method], initial=first.q, tolerance=1e-11)
    assert again.iterations <= 4 < first.iterations
    np.testing.assert_allclose(again.q, first.q, atol=1e-9)
    assert np.isfinite([again.residual, again.error_bound, again.suboptimality_bound]).all()
    wrong = np.where(there(mdp), first.q, 0.0)
    wrong[:, 1] = -np.inf
    with pytest.raises(ValueError, match="`initial` must be finite, got -inf in state "):
        solve(mdp, OWN, **WAYS[method], initial=wrong)


# Algorithm 2.


def plain(softmax):
    """The operators on a list of numbers, from their formulas."""

    def boltzmann(row):
        weights = [math.exp(softmax.beta * (x - max(row))) for x in row]
        return sum(w * x for w, x in zip(weights, row, strict=True)) / sum(weights)

    def mellowmax(row):
        total = sum(math.exp(softmax.omega * (x - max(row))) for x in row)
        return max(row) + math.log(total / len(row)) / softmax.omega

    def epsilon_greedy(row):
        return softmax.epsilon * sum(row) / len(row) + (1 - softmax.epsilon) * max(row)

    kinds = {Max: max, Boltzmann: boltzmann, Mellowmax: mellowmax, EpsilonGreedy: epsilon_greedy}
    return kinds[type(softmax)]


def algorithm_2(mdp, softmax, start, *, in_place):
    """Algorithm 2, line by line, or its simultaneous form: `Q` and the change after each sweep."""
    transitions, rewards = (array.tolist() for array in mdp.to_numpy())
    counts = there(mdp)
    states, actions = range(mdp.n_states), range(mdp.n_actions)
    operators = [
        plain(jax.tree.map(lambda x, s=s: float(x[s]) if np.ndim(x) else x, softmax))
        for s in states
    ]
    q = [
        [start[s][a] * bool(counts[s, a] and not mdp.terminal[s]) for a in actions] for s in states
    ]

    def value(rows, s):
        return operators[s]([x for x, counted in zip(rows[s], counts[s], strict=True) if counted])

    while True:
        change = 0.0
        before = [list(row) for row in q]
        for s in states:
            for a in actions:
                seen = q if in_place else before
                expected = sum(p * value(seen, t) for t, p in enumerate(transitions[s][a]) if p)
                q[s][a] = rewards[s][a] + mdp.discount * expected
                change = max(change, abs(q[s][a] - before[s][a]))
        yield np.where(counts, q, -np.inf), change


@pytest.mark.parametrize("method", ["in-place", "synchronous"])
@pytest.mark.parametrize(
    ("name", "softmax"),
    [
        ("masked", OWN),
        ("FrozenLake", Max()),
        ("garnet", Mellowmax(5.0)),
        ("garnet", Boltzmann(2.0)),
    ],
    ids=kind,
)
def test_sweeps_are_those_of_algorithm_2(name, softmax, method, rng):
    mdp = dataclasses.replace(model(name), discount=0.9)
    start = rng.normal(size=mdp.rewards.shape[:2])
    run = functools.partial(solve, mdp, softmax, **WAYS[method], initial=start, throw=False)
    by_hand = algorithm_2(mdp, softmax, start, in_place=method == "in-place")
    sweeps = [next(by_hand) for _ in range(8)]
    for n, (q, _) in enumerate(sweeps, 1):
        solution = run(tolerance=0.0, max_iterations=n)
        assert solution.iterations == n
        np.testing.assert_allclose(solution.q, q, atol=1e-13, rtol=0)
    changes = [change for _, change in sweeps]
    np.testing.assert_allclose(
        run(tolerance=0.0, max_iterations=8, history=True).history, changes, atol=1e-13, rtol=0
    )
    while changes[-1] > 1e-4:
        changes.append(next(by_hand)[1])
    assert run(tolerance=1e-4).iterations == len(changes)


# Options, and ways to end.


@methods
def test_a_solve_can_start_anywhere(method, rng):
    """From values of pairs too; `test_bounds` has those where no episode ends."""
    for mdp, softmax in ((model("garnet"), Mellowmax(2.0)), (model("masked"), OWN)):
        best = solve(mdp, softmax, tolerance=1e-12)
        pairs = (rng.normal(size=mdp.rewards.shape[:2]), best.q) if softmax is OWN else ()
        for initial in (100.0, -3, *pairs):
            solution = solve(mdp, softmax, **WAYS[method], initial=initial, tolerance=1e-11)
            np.testing.assert_allclose(solution.q, best.q, atol=1e-9)
    assert solution.iterations <= 2  # from the solution itself
    few = solve(mdp, softmax, **WAYS[method], initial=1e6, max_iterations=1, throw=False)
    assert np.abs(few.q).max() > 1e4  # a start is not ignored


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Damped(Softmax):
    """A pair of a user's own, which promises nothing: a shift of all actions moves it by half."""

    def value(self, q, *, axis=-1, where=None):
        return Max().value(q, axis=axis, where=where) / 2

    def policy(self, q, *, axis=-1, where=None):
        return Max().policy(q, axis=axis, where=where)

    def log_policy(self, q, *, axis=-1, where=None):
        return Max().log_policy(q, axis=axis, where=where)

    def gradient(self, q, *, axis=-1, where=None):
        return Max().gradient(q, axis=axis, where=where) / 2


@pytest.mark.parametrize("method", ["shifted", "newton", "newton in memory"])
@pytest.mark.parametrize("softmax", [Max(), Boltzmann(2.0), Damped()], ids=str)
def test_the_residual_is_that_of_a_sweep_wherever_a_solve_stops(method, softmax, rng):
    mdp = model("garnet")
    for limit, level in itertools.product((1, 2, 4), (-1000, 0, 1000)):
        solution = solve(
            mdp,
            softmax,
            **WAYS[method],
            initial=level + 10 * float(rng.normal()),
            max_iterations=limit,
            tolerance=1e-3,
            throw=False,
            history=True,
        )
        residual = residual_of(mdp, softmax, solution.q)
        assert residual <= solution.residual * (1 + 1e-12) + 1e-12
        if not isinstance(softmax, Damped):  # a shift leaves half the range of the last change
            left = mdp.discount * solution.history[-1]
            assert solution.residual == pytest.approx(left, rel=1e-9, abs=1e-9)


@methods
def test_the_tolerance_is_kept_and_costs_iterations(method):
    taken = []
    for tolerance in (1e-2, 1e-5, 1e-8):
        solution = solve(model("masked"), OWN, **WAYS[method], tolerance=tolerance, history=True)
        assert solution.converged
        assert solution.status == "converged"
        assert solution.residual <= tolerance
        assert len(solution.history) == solution.iterations
        assert solution.history[-1] <= tolerance < solution.history[:-1].min()
        taken.append(solution.iterations)
    assert taken == sorted(taken)
    assert taken[0] < taken[-1] or method == "newton in memory"  # whose last steps are exact


def test_the_changes_of_synchronous_sweeps_shrink_by_the_discount():
    mdp = model("garnet")
    for softmax in (Max(), Mellowmax(3.0)):
        history = solve(mdp, softmax, method="synchronous", history=True).history
        assert len(history) > 500
        ratios = history[1:] / history[:-1]
        assert ratios.max() <= mdp.discount * (1 + 1e-6)
        assert ratios[-1] == pytest.approx(mdp.discount, rel=1e-3)
    assert solve(mdp, Max()).history is None


def test_the_history_of_many_calls_is_one():
    """More sweeps than one compiled loop takes."""
    mdp = dataclasses.replace(model("garnet"), discount=0.998)
    solution = solve(mdp, Mellowmax(3.0), method="synchronous", tolerance=1e-6, history=True)
    assert len(solution.history) == solution.iterations > 2048
    assert np.all(np.diff(solution.history[100:]) < 0)


@methods
@pytest.mark.parametrize("limit", [1, 4])
def test_iterations_are_limited(method, limit):
    way = WAYS[method] | {"tolerance": 1e-30, "max_iterations": limit}
    with pytest.raises(NotConvergedError) as error:
        solve(model("garnet"), Mellowmax(3.0), **way)
    solution = error.value.solution
    assert solution.status == "out of iterations"
    assert not solution.converged
    assert solution.iterations == limit
    assert "enough" not in solution.reason
    assert str(error.value) == (
        f"{solution.method} under Mellowmax(omega=3.0) did not converge: out of iterations after "
        f"{limit} iterations, with a residual of {solution.residual:.3g} (tolerance 1e-30); "
        "`throw=False` returns it as it is"
    )
    assert np.abs(sweep(model("garnet"), Mellowmax(3.0), solution.q) - solution.q).max() <= (
        solution.residual * (1 + 1e-9)
    )


def test_the_trial_of_auto_counts():
    for limit in (12, 13, 16):
        options = {"tolerance": 1e-30, "max_iterations": limit, "throw": False, "mesh": MESH}
        solution = solve(corridor(0.99), Mellowmax(3.0), **options)
        assert solution.iterations == limit
        assert solution.status == "out of iterations"


@methods
@pytest.mark.parametrize(
    ("name", "softmax"),
    [
        ("garnet", Max()),
        ("garnet", Mellowmax(3.0)),
        ("garnet", Boltzmann(0.5)),
        ("masked", OWN),
    ],
    ids=kind,
)
def test_rounding_ends_a_solve_that_asks_for_more(method, name, softmax):
    """A solve that cannot get nearer ends; at times it does reach a change of 0."""
    solution = solve(model(name), softmax, **WAYS[method], tolerance=0.0, throw=False)
    assert solution.status in ("limited by rounding", "converged")
    assert solution.residual <= 1e-14 * np.abs(solution.q).max()


@methods
@pytest.mark.parametrize("softmax", [Max(), Mellowmax(3e-13), Boltzmann(5e-14)], ids=str)
def test_rounding_is_relative_to_the_size_of_rewards(method, softmax):
    """Values near 1e15, of which neighbouring numbers differ by 0.1."""
    mdp = model("garnet")
    scaled = dataclasses.replace(mdp, rewards=1e13 * mdp.rewards)
    solution = solve(scaled, softmax, **WAYS[method], throw=False)
    assert solution.status in ("limited by rounding", "converged")
    if method in ("shifted", "newton"):  # plain sweeps arrive at a change of 0
        assert solution.status == "limited by rounding"
        with pytest.raises(NotConvergedError, match="limited by rounding"):
            solve(scaled, softmax, **WAYS[method])
    usual = jax.tree.map(lambda x: 1e13 * x, softmax)
    np.testing.assert_allclose(
        solution.q, 1e13 * solve(mdp, usual, tolerance=1e-12).q, rtol=0, atol=1e4
    )


@pytest.mark.parametrize("softmax", [Max(), Mellowmax(2.0)], ids=str)
def test_where_rounding_ends_newton_its_residual_is_rounding(softmax):
    """Its change leaves a shift of all values out; the residual does not."""
    mdp = corridor(0.99999)
    solution = solve(mdp, softmax, method="newton", tolerance=0.0, throw=False)
    assert solution.status == "limited by rounding"
    assert solution.residual <= 1e-14 * np.abs(solution.q).max()


def test_values_that_overflow_are_reported():
    mdp = dataclasses.replace(model("garnet"), rewards=1e307 * (3 + model("garnet").rewards))
    for method, way in WAYS.items():
        solution = solve(mdp, Max(), **way, tolerance=0, throw=False)  # a whole number
        assert not solution.converged
        assert solution.status == "overflow", method


def ring(length):
    """Go on for nothing, or stay for -1; of the five states some form a ring, others lead to it."""
    states = np.arange(5)
    onwards = np.where(states < length, (states + 1) % length, 0)
    successors = np.stack([onwards, states], 1)[..., None]
    return MDP(successors, np.ones_like(successors), [[0.0, -1.0]] * 5, 0.98)


CYCLES = {
    "2, synchronous": (ring(2), 3.0, "synchronous", 2),
    "3, synchronous": (ring(3), 3.0, "synchronous", 3),
    "5, synchronous": (ring(5), 2.0, "synchronous", 5),
    "2, chosen by auto": (ring(2), 2.0, "auto", 2),
    "2, negative beta": (dataclasses.replace(ring(2), rewards=-ring(2).rewards), -3.0, "auto", 2),
    "2, in place": (
        MDP(
            [[[1], [2]], [[1], [2]], [[0], [0]], [[0], [0]], [[0], [0]]],
            np.ones((5, 2, 1)),
            [[0.6, -0.6], [-0.4, 1.0], [0.4, -0.8], [0.4, -0.8], [0.4, -0.8]],
            0.98,
        ),
        2.0,
        "in-place",
        2,
    ),
}


@pytest.mark.parametrize("name", CYCLES)
def test_boltzmann_can_end_in_a_cycle(name):
    mdp, beta, method, period = CYCLES[name]
    start = np.zeros((mdp.n_states, 2))
    start[0, 0] = 0.1
    solution = solve(mdp, Boltzmann(beta), method=method, initial=start, throw=False)
    assert (solution.status, solution.cycle_period) == (Status.LIMIT_CYCLE, period)
    said = f"limit cycle of period {period} after {solution.iterations} iterations"
    assert dict(solution.rows())["status"] == said
    assert str(NotConvergedError(solution, 1e-8)).count(said) == 1
    assert solution.fields()["status"] == f"limit cycle of period {period}"
    assert not solution.converged
    assert solution.residual > 0.1
    assert solution.error_bound is None
    by_hand = algorithm_2(mdp, Boltzmann(beta), start, in_place=method == "in-place")
    sweeps = [next(by_hand) for _ in range(2500)]
    assert min(change for _, change in sweeps[-period:]) > 0.1
    returns = [np.abs(sweeps[-1][0] - sweeps[-1 - p][0]).max() for p in range(1, period + 1)]
    assert min(returns[:-1]) > 0.1
    assert returns[-1] < 1e-12
    cycle = [np.abs(solution.q - q).max() for q, _ in sweeps[-period:]]
    assert min(cycle) < 1e-10


def test_a_mellowmax_of_the_same_ring_converges():
    start = np.zeros((5, 2))
    start[0, 0] = 0.1
    assert solve(ring(2), Mellowmax(3.0), method="synchronous", initial=start).converged


def test_boltzmann_converges_where_it_does():
    mdp = model("garnet")
    solution = solve(mdp, Boltzmann(0.5), tolerance=1e-12)
    assert solution.converged
    assert np.abs(sweep(mdp, Boltzmann(0.5), solution.q) - solution.q).max() <= 2e-12
    assert solution.error_bound is None
    assert "not proved" in str(solution)


@pytest.fixture
def two_sweeps_a_call(monkeypatch):
    """Compiled loops of two sweeps of "garnet", so that a solve takes several."""
    work = 2 * model("garnet").probabilities.size
    monkeypatch.setattr(loop, "WORK_OF_A_CALL", work)
    monkeypatch.setattr(loop, "WORK_OF_A_CALL_ON_AN_ACCELERATOR", work)


@methods
def test_a_solve_in_many_calls_is_the_solve_in_one(method, request):
    options = WAYS[method] | {"tolerance": 1e-11, "history": True}
    whole = solve(model("garnet"), Mellowmax(3.0), **options)
    request.getfixturevalue("two_sweeps_a_call")
    parts = solve(model("garnet"), Mellowmax(3.0), **options)
    assert (parts.method, parts.iterations) == (whole.method, whole.iterations)
    np.testing.assert_allclose(parts.history, whole.history, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(parts.q, whole.q, rtol=0, atol=1e-11)


@methods
@pytest.mark.usefixtures("two_sweeps_a_call")
def test_a_callback_hears_and_stops(method):
    heard = []
    mdp, softmax = model("garnet"), Mellowmax(3.0)
    options = WAYS[method] | {"tolerance": 1e-11, "throw": False}
    solution = solve(mdp, softmax, callback=heard.append, **options)
    assert all(isinstance(progress, SolveProgress) for progress in heard)
    iterations = [progress.iterations for progress in heard]
    assert len(heard) >= 2
    assert iterations == sorted(set(iterations))
    assert iterations[-1] < solution.iterations
    assert {progress.tolerance for progress in heard} == {1e-11}
    assert {progress.method for progress in heard} == {solution.method}
    assert all(progress.change > 1e-11 for progress in heard)
    seconds = [progress.seconds for progress in heard]
    assert seconds == sorted(seconds)

    stopped = solve(mdp, softmax, callback=lambda _: True, **options)
    assert stopped.status == "stopped"
    assert stopped.iterations == iterations[0]
    assert np.array_equal(stopped.q, solve(mdp, softmax, callback=lambda _: True, **options).q)
    with pytest.raises(NotConvergedError, match="stopped"):
        solve(mdp, softmax, callback=lambda _: True, **options | {"throw": True})


def test_auto_does_not_call_a_stopped_trial_enough():
    options = {"callback": lambda _: True, "throw": False, "mesh": MESH}
    solution = solve(corridor(0.99), Mellowmax(3.0), **options)
    assert (solution.method, solution.status) == ("shifted", "stopped")
    assert "enough" not in solution.reason


def test_auto_says_what_it_chose_and_why():
    def chosen(mdp, softmax, **options):
        solution = solve(mdp, softmax, mesh=MESH, **options)
        return solution.method, solution.reason

    mixing = model("garnet")
    method, reason = chosen(mixing, Mellowmax(3.0), tolerance=1e-7)
    history = solve(mixing, Mellowmax(3.0), tolerance=1e-7, history=True, mesh=MESH).history
    assert method == "shifted"
    assert reason.startswith(
        f"a shifted sweep leaves {history[11] / history[10]:.2g} of the change"
    )
    assert reason.endswith("more to go")
    method, reason = chosen(corridor(0.999), Mellowmax(3.0))
    assert method == "newton"
    assert reason.startswith("a shifted sweep leaves ")
    assert reason.endswith("over 40 more would be needed")
    method, reason = chosen(mixing, Mellowmax(3.0), tolerance=0.1)
    assert method == "shifted"
    assert re.fullmatch(r"the first \d+ sweeps were enough", reason)
    assert chosen(mixing, Max()) == (
        "newton",
        "one action a state makes up the derivative of a maximum, so its steps are cheap",
    )
    for ending in (
        model("masked"),
        model("ladder"),
    ):  # by a terminal state, and by branches that end
        assert chosen(ending, Max()) == (
            "newton",
            "episodes end, so a shift of all values gains nothing",
        )
    assert chosen(mixing, Boltzmann(0.5)) == (
        "synchronous",
        "no method is sure to converge here, and plain sweeps show what happens",
    )


# What a solve leaves behind.


@pytest.mark.parametrize(
    ("name", "softmax", "method"),
    [
        *(("masked", OWN, method) for method in WAYS),
        *(("garnet", Boltzmann(0.5), method) for method in ("in-place", "synchronous")),
    ],
    ids=kind,
)
def test_solves_repeat_bit_by_bit_and_leave_the_model_and_the_start_alone(
    name, softmax, method, rng
):
    mdp = MODELS[name]()
    before = {field.name: np.array(getattr(mdp, field.name)) for field in dataclasses.fields(mdp)}
    start = rng.normal(size=mdp.rewards.shape[:2])
    kept = start.copy()
    first, second = (
        solve(mdp, softmax, **WAYS[method], initial=start, history=True) for _ in range(2)
    )
    for result in ("q", "value", "policy", "history", "residual", "suboptimality_bound"):
        assert np.array_equal(getattr(first, result), getattr(second, result))
    assert np.array_equal(start, kept)
    for field, values in before.items():
        assert np.array_equal(getattr(mdp, field), values)
    first.q[:] = np.nan  # the results are the caller's
    assert np.array_equal(solve(mdp, softmax, **WAYS[method], initial=start).q, second.q)


@pytest.mark.parametrize(
    ("name", "softmax"), [("masked", OWN), ("garnet", Boltzmann(0.5))], ids=kind
)
def test_a_saved_solution_has_the_same_numbers(name, softmax, tmp_path):
    solution = solve(model(name), softmax)
    solution.save(tmp_path / "solution.npz")
    with np.load(tmp_path / "solution.npz", allow_pickle=False) as saved:
        for field in ("q", "value", "policy"):
            assert np.array_equal(saved[field], getattr(solution, field))
        fields = ("converged", "status", "iterations", "residual", "method", "reason")
        for field in (*fields, "suboptimality_bound"):
            assert saved[field].item() == getattr(solution, field)
        assert saved["softmax"].item() == str(softmax)
        if solution.error_bound is None:
            assert "error_bound" not in saved
        else:
            assert saved["error_bound"].item() == solution.error_bound


def test_a_solution_says_what_it_is():
    solution = solve(model("garnet"), Mellowmax(3.0))
    lines = [line.split(None, 1) for line in str(solution).splitlines()]
    assert lines[:5] == [
        ["operator", "Mellowmax(omega=3.0)"],
        ["method", f"{solution.method}: {solution.reason}"],
        ["status", f"converged after {solution.iterations} iterations"],
        ["residual", f"{solution.residual:.3g}"],
        ["error", f"{solution.error_bound:.3g} at most"],
    ]
    assert f"below optimum  {solution.suboptimality_bound:.3g} at most" in str(solution)
    assert 0 < solution.seconds < 100


def test_float64_whatever_the_flag_says():
    """Here it is set for the tests; `test_devices` has a process in which it is not."""
    mdp = model("garnet")
    policy = np.full((40, 3), 1 / 3)

    def results():
        solutions = [solve(mdp, Mellowmax(3.0), **way) for way in WAYS.values()]
        return [*solutions, evaluate(policy, mdp)]

    assert jax.config.jax_enable_x64
    on = results()
    with jax.enable_x64(False):
        off = results()
        assert not jax.config.jax_enable_x64
        assert jax.numpy.arange(3.0).dtype == np.float32
    for one, other in zip(on, off, strict=True):
        assert other.q.dtype == other.value.dtype == other.policy.dtype == np.float64
        assert (one.iterations, one.residual) == (other.iterations, other.residual)
        assert np.array_equal(one.q, other.q)


# Wrong arguments.


def rejected(kind, message, mdp=None, softmax=None, **options):
    with pytest.raises(kind) as error:
        solve(two_state() if mdp is None else mdp, Max() if softmax is None else softmax, **options)
    assert str(error.value).startswith(message), str(error.value)
    assert "\n" not in str(error.value)


def test_wrong_arguments_give_one_sentence():
    rejected(TypeError, "`mdp` must be an MDP, got 3", mdp=3)
    needed = "`softmax` must be a Softmax such as Mellowmax(5.0), got "
    rejected(TypeError, f"{needed}'max'", softmax="max")
    rejected(TypeError, needed, softmax=Max)
    names = "auto, in-place, synchronous, shifted, newton"
    for method, error in (("vi", ValueError), (None, TypeError), (3, TypeError)):
        rejected(error, f"`method` must be one of {names}, got {method!r}", method=method)
    for tolerance in (-1e-3, math.nan):
        message = f"`tolerance` must be a number of at least 0, got {tolerance}"
        rejected(ValueError, message, tolerance=tolerance)
    rejected(TypeError, "`tolerance` must be a number of at least 0, got 'x'", tolerance="x")
    for limit in (0, -5, 2.5, None):
        rejected(
            TypeError if limit is None else ValueError,
            f"`max_iterations` must be a whole number of at least 1, got {limit!r}",
            max_iterations=limit,
        )
    for initial in (np.zeros(2), np.zeros((2, 3))):
        message = f"`initial` must be a number or have the shape (2, 2), got {initial.shape}"
        rejected(ValueError, message, initial=initial)
    rejected(ValueError, "`initial` must be a finite number, got nan", initial=math.nan)
    rejected(ValueError, "`initial` must be a finite number, got inf", initial=np.inf)
    message = "`initial` must be finite, got nan in state 0, action 1"
    rejected(ValueError, message, initial=[[0.0, math.nan], [0.0, 0.0]])
    for omega in (np.ones(3), np.ones(1)):
        rejected(
            ValueError,
            "`softmax` must have one parameter, or one for each of the 2 states, got the shape "
            f"({len(omega)},)",
            softmax=Mellowmax(omega),
        )
    rejected(
        ValueError,
        "`mesh` must have the one axis 'states', got ('x',)",
        mesh=Mesh(np.array(jax.devices()[:1]), ("x",)),
    )


def test_wrong_policies_give_one_sentence():
    cases = [
        (two_state(), np.ones((3, 2)), "`policy` must have the shape (2, 2), got (3, 2)"),
        (two_state(), [1.0, 0.0], "`policy` must have the shape (2, 2), got (2,)"),
        (two_state(), [[1.0, 0.0], [0.5, 0.6]], "must be a distribution, got [0.5 0.6] in state 1"),
        (two_state(), [[1.5, -0.5]] * 2, "must be a distribution, got [ 1.5 -0.5] in state 0"),
        (two_state(), [[math.nan, 1.0]] * 2, "must be a distribution, got [nan  1.] in state 0"),
        (masked(dense=True), np.full((12, 3), 1 / 3), "`policy` must take allowed actions, got "),
    ]
    for mdp, policy, message in cases:
        with pytest.raises(ValueError, match="`policy` must") as error:
            evaluate(policy, mdp)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_the_arguments_of_evaluate_the_wrong_way_round_give_one_sentence():
    policy = np.full((2, 2), 0.5)
    message = r"`policy` must come first, as in evaluate\(policy, mdp\), got the MDP there$"
    with pytest.raises(TypeError, match=message):
        evaluate(two_state(), policy)
    with pytest.raises(TypeError, match=r"`mdp` must be an MDP, got 3$"):
        evaluate(policy, 3)
