"""MDPs: every way in gives the same one, and what is no MDP is an error that says where."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from mellowmax.mdp import MDP, chain, garnet
from mellowmax.mdp.validate import endless_pair

S, A = 5, 3


def random_tables(seed=0, n_states=S, n_actions=A):
    """Transitions with some entries 0, rewards by pair, rewards by transition."""
    rng = np.random.default_rng(seed)
    transitions = rng.random((n_states, n_actions, n_states))
    transitions *= rng.random(transitions.shape) < 0.6
    transitions[..., 0] += 0.1
    transitions /= transitions.sum(-1, keepdims=True)
    return transitions, rng.normal(size=transitions.shape[:2]), rng.normal(size=transitions.shape)


P, R, R3 = random_tables()
EXPECTED = np.sum(P * R3, axis=-1)
DENSE = MDP.from_arrays(P, R, 0.9)
INDICES = np.nonzero(P)
READ_ONLY = (P, R, R3, *INDICES)
for each in READ_ONLY:
    each.flags.writeable = False


def arrays_of(mdp):
    fields = {f.name: getattr(mdp, f.name) for f in dataclasses.fields(mdp)}
    return {name: values for name, values in fields.items() if isinstance(values, np.ndarray)}


def assert_same(mdp, other, rtol=1e-15):
    for ours, theirs in zip(mdp.to_numpy(), other.to_numpy(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-16)
    assert mdp.discount == other.discount
    np.testing.assert_array_equal(mdp.terminal, other.terminal)
    allowed = [np.ones((mdp.n_states, mdp.n_actions), bool) if m.allowed is None else m.allowed
               for m in (mdp, other)]  # fmt: skip
    np.testing.assert_array_equal(*allowed)


def backup(mdp, v):
    """`q` after one Bellman backup, branch by branch."""
    q = np.zeros((mdp.n_states, mdp.n_actions))
    for s, a, k in np.ndindex(mdp.probabilities.shape):
        successor = k if mdp.successors is None else mdp.successors[s, a, k]
        goes_on = successor < mdp.n_states and not mdp.terminal[successor]
        reward = mdp.rewards[s, a] if mdp.rewards.ndim == 2 else mdp.rewards[s, a, k]
        value = v[successor] if goes_on else 0.0
        q[s, a] += mdp.probabilities[s, a, k] * (reward + mdp.discount * value)
    return q


# Ways in.


def as_matrices(table):
    return [scipy.sparse.csr_array(table[:, a]) for a in range(A)]


def stacked(table):
    return scipy.sparse.coo_array(table.reshape(S * A, S))


STATES, ACTIONS = np.divmod(np.arange(S * A), A)
WAYS = {
    "constructor": lambda r, r3: MDP(None, P, r3 if r is None else r, 0.9),
    "padded": lambda r, r3: MDP(
        np.broadcast_to(np.arange(S), P.shape), P, r3 if r is None else r, 0.9
    ),
    "lists": lambda r, r3: MDP.from_arrays(P.tolist(), (r3 if r is None else r).tolist(), 0.9),
    "matrix": lambda r, r3: MDP.from_sparse(stacked(P), stacked(r3) if r is None else r, 0.9),
    "matrices": lambda r, r3: MDP.from_sparse(
        as_matrices(P), as_matrices(r3) if r is None else scipy.sparse.csr_matrix(r), 0.9
    ),
    "old matrices": lambda r, r3: MDP.from_sparse(
        [scipy.sparse.csc_matrix(P[:, a]) for a in range(A)],
        r3.swapaxes(0, 1) if r is None else r.tolist(),
        0.9,
    ),
    "dense matrix": lambda r, r3: MDP.from_sparse(
        P.reshape(S * A, S), r3.reshape(S * A, S) if r is None else r, 0.9
    ),
    "coo": lambda r, r3: MDP.from_coo(
        *INDICES, P[INDICES], r3[INDICES] if r is None else r[INDICES[:2]], 0.9
    ),
    "mdptoolbox": lambda r, r3: MDP.from_mdptoolbox(
        P.swapaxes(0, 1), r3.swapaxes(0, 1) if r is None else r, 0.9
    ),
    "mdptoolbox, sparse": lambda r, r3: MDP.from_mdptoolbox(
        as_matrices(P), as_matrices(r3) if r is None else r, 0.9
    ),
    "mdptoolbox, objects": lambda r, r3: MDP.from_mdptoolbox(
        np.array([*as_matrices(P), None], object)[:-1],
        r3.swapaxes(0, 1) if r is None else r,
        0.9,
    ),
    "mdptoolbox, mixed": lambda r, r3: MDP.from_mdptoolbox(
        P.swapaxes(0, 1), as_matrices(r3) if r is None else r, 0.9
    ),
    "function": lambda r, r3: MDP.from_function(
        lambda s, a: [(P[s, a, t], t, r3[s, a, t] if r is None else r[s, a]) for t in range(S)],
        S,
        A,
        0.9,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_mdp(way):
    by_pair, by_transition = WAYS[way](R, None), WAYS[way](None, R3)
    assert_same(by_pair, DENSE)
    assert by_pair.rewards.shape == (S, A)
    np.testing.assert_array_equal(by_pair.to_numpy()[0], P)
    np.testing.assert_array_equal(by_transition.to_numpy()[0], P)
    np.testing.assert_allclose(by_transition.expected_rewards, EXPECTED, rtol=1e-14)
    assert by_transition.rewards.ndim == 3
    v = np.random.default_rng(1).normal(size=S)
    np.testing.assert_allclose(backup(by_transition, v), EXPECTED + 0.9 * P @ v, rtol=1e-13)


@pytest.mark.parametrize("sparse", [False, True])
def test_pairs_of_a_state_and_an_action_as_quantecon_lists_them(sparse):
    order = np.random.default_rng(0).permutation(S * A)
    rows = P.reshape(S * A, S)[order]
    rows = scipy.sparse.csr_array(rows) if sparse else rows
    pairs = (STATES[order], ACTIONS[order])
    assert_same(MDP.from_state_actions(R.reshape(-1)[order], rows, 0.9, *pairs), DENSE)


def test_a_pair_that_is_not_listed_or_whose_reward_is_minus_infinity_is_not_allowed():
    rewards, rows = R.reshape(-1).copy(), P.reshape(S * A, S).copy()
    rewards[4] = -np.inf  # state 1, action 1
    rows[4] = np.nan
    kept = np.arange(S * A) != 8  # state 2, action 2
    mdp = MDP.from_state_actions(rewards[kept], rows[kept], 0.9, STATES[kept], ACTIONS[kept])
    allowed = np.ones((S, A), bool)
    allowed[1, 1] = allowed[2, 2] = False
    assert_same(mdp, MDP.from_arrays(P, R, 0.9, allowed=allowed))


def test_a_reward_of_minus_infinity_is_an_action_that_is_not_allowed_in_the_product_form_too():
    rewards, transitions = R.copy(), P.copy()
    rewards[1, 1] = rewards[2, 2] = -np.inf
    transitions[1, 1] = np.nan
    allowed = rewards > -np.inf
    expected = MDP.from_arrays(P, R, 0.9, allowed=allowed)
    assert_same(MDP.from_arrays(transitions, rewards, 0.9), expected)
    both = MDP.from_arrays(transitions, rewards, 0.9, allowed=np.arange(A) != [[0]] * S)
    np.testing.assert_array_equal(both.allowed, allowed & (np.arange(A) != 0))
    ends = np.arange(S) == 1
    rewards[1] = -np.inf
    assert MDP.from_arrays(P, rewards, 0.9, terminal=ends).terminal[1]


def test_rewards_by_state():
    transitions = P.swapaxes(0, 1)
    mdp = MDP.from_mdptoolbox(transitions, R[:, 0], 0.9)
    np.testing.assert_array_equal(mdp.rewards, np.tile(R[:, :1], A))
    assert_same(MDP.from_mdptoolbox(as_matrices(P), R[:, 0], 0.9), mdp)


def test_what_a_sparse_matrix_stores_twice_adds_up_and_what_it_does_not_store_is_0():
    transitions = scipy.sparse.coo_array(([0.25, 0.5, 0.25, 1.0], ([0, 0, 0, 1], [1, 0, 1, 0])))
    rewards = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    mdp = MDP.from_sparse(transitions, rewards, 0.9)
    np.testing.assert_array_equal(mdp.to_numpy()[0], [[[0.5, 0.5]], [[1.0, 0.0]]])
    np.testing.assert_array_equal(mdp.rewards[0], [[0.0, 3.0]])
    twice = scipy.sparse.csr_array(([1.0, 2.0], [1, 1], [0, 2, 2]), shape=(2, 2))
    assert_same(MDP.from_sparse(transitions, twice, 0.9), mdp)
    assert twice.nnz == 2  # as it was


def test_the_end_of_the_episode_is_one_past_the_last_state():
    mdp = MDP.from_coo([0, 0, 1], [0, 0, 0], [1, 2, 0], [0.5, 0.5, 1.0], [1, 5, 2], 0.9, n_states=2)
    np.testing.assert_array_equal(mdp.successors, [[[1, 2]], [[0, 1]]])
    np.testing.assert_allclose(backup(mdp, [10.0, 20.0]), [[12.0], [11.0]])
    np.testing.assert_array_equal(mdp.to_numpy()[0], [[[0.0, 0.5]], [[1.0, 0.0]]])
    np.testing.assert_array_equal(mdp.to_scipy()[0].toarray(), [[0.0, 0.5], [1.0, 0.0]])


def test_states_and_actions_without_transitions():
    mdp = MDP.from_coo([0, 0, 2], [0, 2, 1], [1, 2, 0], [1.0] * 3, [1.0] * 3, 0.9, n_states=4)
    np.testing.assert_array_equal(mdp.terminal, [False, True, False, True])
    allowed = [[True, False, True], [True] * 3, [False, True, False], [True] * 3]
    np.testing.assert_array_equal(mdp.allowed, allowed)
    further = MDP.from_coo(
        [0, 1], [0, 0], [1, 7], [1.0, 1.0], [1.0, np.nan], 0.9, n_states=8,
        terminal=np.arange(8) == 1,
    )  # fmt: skip
    np.testing.assert_array_equal(further.terminal, np.arange(8) > 0)
    nothing = MDP.from_coo([], [], [], [], [], 0.9, n_states=2, n_actions=1)
    assert nothing.terminal.all()


@st.composite
def transitions_with_repeats(draw):
    """Distributions cut into pieces, in any order, with a reward for each piece."""
    n_states, n_actions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    pairs = list(itertools.product(range(n_states), range(n_actions)))
    rows = []
    for s, a in draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True)):
        leads = draw(st.lists(st.integers(0, n_states), min_size=1, max_size=8))
        weights = [draw(st.integers(0, 4)) for _ in leads]
        weights[0] += 1
        for t, weight in zip(leads, weights, strict=True):
            reward = draw(st.sampled_from([-2.0, 0.0, 0.1, 3.0]))
            rows.append((s, a, t, weight / sum(weights), reward))
    return n_states, n_actions, draw(st.permutations(rows))


@settings(deadline=None, derandomize=True)
@given(transitions_with_repeats())
def test_transitions_in_any_order_with_repeats_are_what_adding_them_up_gives(case):
    n_states, n_actions, rows = case
    dense = np.zeros((n_states, n_actions, n_states + 1))
    earned = np.zeros((n_states, n_actions))
    for s, a, t, p, r in rows:
        dense[s, a, t] += p
        earned[s, a] += p * r
    sizes = {"n_states": n_states, "n_actions": n_actions}
    mdp = MDP.from_coo(*map(np.array, zip(*rows, strict=True)), 0.9, **sizes)
    listed = np.zeros((n_states, n_actions), bool)
    listed[[row[0] for row in rows], [row[1] for row in rows]] = True

    transitions, rewards = mdp.to_numpy()
    on = ~mdp.terminal
    np.testing.assert_allclose(transitions[on], dense[on, :, :-1], rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(rewards[on], earned[on], rtol=1e-13, atol=1e-15)
    allowed = listed if mdp.allowed is None else mdp.allowed
    np.testing.assert_array_equal(allowed[on], listed[on])
    for s in np.flatnonzero(mdp.terminal):  # no other state, nothing earned
        assert np.all(earned[s] == 0)
        assert np.all(np.delete(dense[s], [s, n_states], axis=-1) == 0)
    if np.all(mdp.probabilities > 0) and mdp.n_branches > 1:
        assert np.all(np.diff(mdp.successors, axis=-1) > 0)


def test_equal_rewards_stay_as_they_are_when_transitions_merge():
    n = 1000
    p = np.random.default_rng(0).dirichlet(np.ones(n))
    leads = np.arange(n) % 2
    mdp = MDP.from_coo([0] * n, [0] * n, leads, p, [0.1] * n, 0.9, n_states=2)
    assert mdp.n_branches == 2
    np.testing.assert_array_equal(mdp.rewards, [[0.1], [0.0]])
    huge = MDP.from_coo([0, 0], [0, 0], [0, 0], [0.5, 0.5], [1.7e308, -1.7e308], 0.9)
    np.testing.assert_array_equal(huge.rewards, [[0.0]])


def test_a_large_mdp_comes_back_from_its_transitions_in_any_order():
    big = garnet(100_000, 2, 5, seed=0)
    at = np.indices(big.probabilities.shape)
    order = np.random.default_rng(0).permutation(big.probabilities.size)
    columns = [
        values.reshape(-1)[order] for values in (at[0], at[1], big.successors, big.probabilities)
    ]
    mdp = MDP.from_coo(*columns, big.rewards[columns[0], columns[1]], big.discount)
    for name, values in arrays_of(big).items():
        np.testing.assert_array_equal(getattr(mdp, name), values)


# What an MDP holds.


@pytest.mark.parametrize("make", [lambda: DENSE, lambda: chain(4), lambda: WAYS["coo"](None, R3)])
def test_arrays_are_read_only_copies(make):
    for values in arrays_of(make()).values():
        assert not values.flags.writeable
        assert not any(np.shares_memory(values, each) for each in READ_ONLY)
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0


def test_inputs_are_not_changed_and_what_comes_out_is_new():
    allowed, terminal = np.ones((S, A), bool), np.arange(S) == 3
    allowed[0, 0] = allowed[3, 1] = False
    given = P * (1 + 1e-7), R3.copy(), allowed, terminal
    before = [values.copy() for values in given]
    mdp = MDP.from_arrays(*given[:2], 0.9, allowed=allowed, terminal=terminal)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)
    there = allowed & ~terminal[:, None]
    np.testing.assert_allclose(mdp.probabilities[there], P[there], rtol=1e-15)
    for values in DENSE.to_numpy():
        values[...] = 0  # a copy, to do with as one likes
    np.testing.assert_array_equal(DENSE.to_numpy()[0], P)


def test_a_sparse_mdp_has_its_branches_first_in_memory():
    mdp = WAYS["coo"](None, R3)
    for values in (mdp.successors, mdp.probabilities, mdp.rewards):
        inside = np.moveaxis(values, -1, 0)
        assert inside.flags.c_contiguous
        assert inside.ctypes.data % 64 == 0
    assert mdp.successors.dtype == np.int32


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int64])
def test_successors_of_any_integer_type(dtype):
    mdp = MDP(np.array([[[1]], [[0]]], dtype), np.ones((2, 1, 1)), np.ones((2, 1)), 0.9)
    assert mdp.successors.dtype == np.int32
    np.testing.assert_array_equal(mdp.successors, [[[1]], [[0]]])


def test_what_does_not_count_is_not_looked_at():
    """Rows of terminal states and actions that are not there, and rewards of what cannot happen."""
    junk = P.copy()
    junk[1, 2] = [np.inf, -np.inf, np.nan, 7.0, 0.0]
    junk[3] = np.nan
    rewards = np.where(P > 0, R3, np.nan)
    rewards[1, 2], rewards[3] = -np.inf, np.nan
    allowed, terminal = np.ones((S, A), bool), np.arange(S) == 3
    allowed[1, 2] = False
    mdp = MDP.from_arrays(junk, rewards, 0.9, allowed=allowed, terminal=terminal)
    there = allowed & ~terminal[:, None]
    np.testing.assert_array_equal(mdp.probabilities, np.where(there[..., None], P, 0.0))
    np.testing.assert_allclose(mdp.expected_rewards, np.where(there, EXPECTED, 0.0), rtol=1e-14)
    sparse = MDP.from_sparse(
        stacked(junk), stacked(rewards), 0.9, allowed=allowed, terminal=terminal
    )
    assert_same(sparse, mdp)


def test_terminal_states_are_found():
    """They stay or end, for nothing; a reward, a way out or an error makes a state ordinary."""
    rows = [
        (0, 0, 0, 1.0, 0.0), (0, 1, 6, 1.0, 0.0),  # stays, ends
        (1, 0, 1, 1.0, 0.0), (1, 1, 6, 1.0, 1.0),  # earns
        (2, 0, 2, 1.0, 0.0), (2, 1, 1, 1.0, 0.0),  # leaves
        (3, 0, 3, 0.5, 0.0), (3, 0, 6, 0.5, 0.0),  # stays or ends, one action
        (4, 0, 4, 0.5, 1.0), (4, 0, 4, 0.5, -1.0),  # earns nothing on average
    ]  # fmt: skip
    mdp = MDP.from_coo(*zip(*rows, strict=True), 0.9, n_states=6)
    np.testing.assert_array_equal(mdp.terminal, [True, False, False, True, True, True])
    impossible = MDP.from_arrays(np.eye(2)[:, None], [[[0.0, 1.0]], [[0.0, 0.0]]], 0.9)
    assert impossible.terminal.all()  # a reward for what cannot happen is none
    explicit = MDP.from_arrays([[[1.0]]], [[0.0]], 0.9, terminal=[False])
    assert not explicit.terminal.any()


def test_a_terminal_state_needs_no_action():
    terminal = np.arange(S) == 3
    allowed = np.ones((S, A), bool) & ~terminal[:, None]
    mdp = MDP.from_arrays(P, R, 0.9, allowed=allowed, terminal=terminal)
    assert mdp.allowed is None  # in every state that has any, all of them
    assert_same(mdp, MDP.from_arrays(P, R, 0.9, terminal=terminal))


def test_an_mdp_prints_what_it_is():
    assert repr(DENSE) == "MDP(states=5, actions=3, dense, discount=0.9)"
    assert repr(chain(3)) == "MDP(states=3, actions=2, branches=2, discount=0.99)"


# What is no MDP.


def one(values, at, new):
    changed = np.array(values, float)
    changed[at] = new
    return changed


def coo(at=None, **changes):
    """A small list of transitions with one entry, or a whole column, changed."""
    columns = {
        "states": [0, 0, 1], "actions": [0, 1, 0], "successors": [1, 0, 0],
        "probabilities": [1.0] * 3, "rewards": [1.0] * 3,
    }  # fmt: skip
    for name, value in changes.items():
        if name in columns and at is not None:
            columns[name] = [value if i == at else old for i, old in enumerate(columns[name])]
        else:
            columns[name] = value
    return MDP.from_coo(**columns, discount=0.9)


EYES = [np.eye(2), np.eye(2)]
ERRORS = [
    (lambda: MDP.from_arrays(one(P, (2, 1, 4), -0.25), R, 0.9),
     "`transitions` must be numbers in [0, 1], got -0.25 in state 2, action 1, branch 4"),
    (lambda: MDP.from_arrays(one(P, (2, 1, 4), np.nan), R, 0.9),
     "`transitions` must be numbers in [0, 1], got nan in state 2, action 1, branch 4"),
    (lambda: MDP.from_arrays(one(P, (2, 1, 4), np.inf), R, 0.9),
     "`transitions` must be numbers in [0, 1], got inf in state 2, action 1, branch 4"),
    (lambda: MDP.from_arrays(one(P, (2, 1), 0.0), R, 0.9),
     "`transitions` must sum to 1, got 0 in state 2, action 1"),
    (lambda: MDP.from_arrays([[[1.000002]]], [[1.0]], 0.9),
     "`transitions` must be numbers in [0, 1], got 1.000002 in state 0, action 0, branch 0"),
    (lambda: MDP.from_arrays([[[0.999998]]], [[1.0]], 0.9),
     "`transitions` must sum to 1, got 0.999998 in state 0, action 0"),
    (lambda: MDP.from_arrays([[[0.5]]], [[0.0]], 0.9),
     "`transitions` must sum to 1, got 0.5 in state 0, action 0"),
    (lambda: MDP.from_arrays([[[np.nan]]], [[0.0]], 0.9),
     "`transitions` must be numbers in [0, 1], got nan in state 0, action 0, branch 0"),
    (lambda: MDP.from_arrays([[[1.0], [0.0]]], [[0.0, 0.0]], 0.9),
     "`transitions` must sum to 1, got 0 in state 0, action 1"),
    (lambda: MDP.from_arrays(P, one(R, (1, 2), np.nan), 0.9),
     "`rewards` must be finite, got nan in state 1, action 2"),
    (lambda: MDP.from_arrays(P, one(R3, (1, 2, 0), -np.inf), 0.9),
     "`rewards` must be finite, got -inf in state 1, action 2, branch 0"),
    (lambda: MDP.from_arrays(P, R.T, 0.9),
     "`rewards` must have the shape (5, 3) or (5, 3, 5), got (3, 5)"),
    (lambda: MDP.from_arrays(P[0], R, 0.9),
     "`transitions` must have the shape (states, actions, states), got (3, 5)"),
    (lambda: MDP.from_arrays(P[..., :4], R, 0.9),
     "`transitions` must have the shape (states, actions, states), got (5, 3, 4)"),
    (lambda: MDP.from_arrays(np.ones((3, 5, 5)), R, 0.9),
     "`transitions` must have the shape (states, actions, states), got (3, 5, 5); "
     "`MDP.from_mdptoolbox` takes (actions, states, states)"),
    (lambda: MDP(EYES[0], EYES[0], R, 0.9),
     "`probabilities` must have the shape (states, actions, branches), got (2, 2)"),
    (lambda: MDP.from_arrays(np.ma.masked_array(P), R, 0.9),
     "`transitions` must be an array without a mask of its own, got a numpy.ma.MaskedArray"),
    (lambda: MDP.from_arrays(P, R, 0.9, allowed=np.ma.masked_array(R > 0)),
     "`allowed` must be an array without a mask of its own, got a numpy.ma.MaskedArray"),
    (lambda: MDP.from_arrays(P, np.where(np.arange(S)[:, None] == 2, -np.inf, R), 0.9),
     "`rewards` must leave an action that is not -inf, got 0 in state 2"),
    (lambda: MDP.from_arrays([[[1.0], [1.0, 0.0]]], R, 0.9),
     "`transitions` must be an array, got a ragged list"),
    (lambda: MDP.from_arrays(P.astype(str), R, 0.9),
     "`transitions` must be an array of numbers, got one of <U32"),
    (lambda: MDP(np.full((2, 1, 1), 1_234_567), np.ones((2, 1, 1)), np.ones((2, 1)), 0.9),
     "`successors` must be in [0, 2], got 1234567 in state 0, action 0, branch 0"),
    (lambda: MDP(np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1)), 0.9),
     "`successors` must be integers with the shape (2, 1, 1), got float64 with (2, 1, 1)"),
    (lambda: MDP.from_arrays(P, R, 1.5), "`discount` must be in [0, 1], got 1.5"),
    (lambda: MDP.from_arrays(P, R, np.nan), "`discount` must be in [0, 1], got nan"),
    (lambda: MDP.from_arrays(P, R, "0.9"), "`discount` must be in [0, 1], got '0.9'"),
    (lambda: MDP.from_arrays(P, R, 0.9j), "`discount` must be in [0, 1], got 0.9j"),
    (lambda: MDP.from_arrays(P, R, 0.9, terminal=[3]),
     "`terminal` must be boolean with the shape (5,), got int64 with (1,)"),
    (lambda: MDP.from_arrays(P, R, 0.9, allowed=np.arange(S)[:, None] != [3] * A),
     "`allowed` must leave an action, got 0 in state 3"),
    (lambda: coo(1, probabilities=-0.5),
     "`probabilities` must be numbers in [0, 1], got -0.5 in state 0, action 1, branch 0"),
    (lambda: coo(2, probabilities=np.nan),
     "`probabilities` must be numbers in [0, 1], got nan in state 1, action 0, branch 0"),
    (lambda: coo(1, probabilities=0.0),
     "`probabilities` must sum to 1, got 0 in state 0, action 1"),
    (lambda: coo(2, probabilities=0.0),
     "`probabilities` must sum to 1, got 0 in state 1, action 0"),
    (lambda: coo(1, rewards=np.inf), "`rewards` must be finite, got inf in state 0, action 1"),
    (lambda: coo(1, states=-1), "`states` must be in [0, 1], got -1 at position 1"),
    (lambda: coo(1, states=4, n_states=2), "`states` must be in [0, 1], got 4 at position 1"),
    (lambda: coo(2, actions=5, n_actions=2), "`actions` must be in [0, 1], got 5 at position 2"),
    (lambda: coo(2, successors=3, n_states=2),
     "`successors` must be in [0, 2], got 3 in state 1, action 0"),
    (lambda: coo(0, successors=-1), "`successors` must be in [0, 2], got -1 in state 0, action 0"),
    (lambda: coo(successors=[0.0, 1.0, 1.0]),
     "`successors` must be integers with the shape (3,), got float64 with (3,)"),
    (lambda: coo(actions=[0, 1]),
     "`actions` must be integers with the shape (3,), got int64 with (2,)"),
    (lambda: coo(rewards=[1.0]), "`rewards` must have the shape (3,) of `states`, got (1,)"),
    (lambda: coo(states=[[0, 0, 1]]), "`states` must have one dimension, got the shape (1, 3)"),
    (lambda: coo(n_states=0), "`n_states` must be a whole number in [1, 2147483646], got 0"),
    (lambda: coo(n_actions=1.5), "`n_actions` must be a whole number of at least 1, got 1.5"),
    (lambda: coo(terminal=[True]),
     "`terminal` must be boolean with the shape (2,), got bool with (1,)"),
    (lambda: MDP.from_coo([], [], [], [], [], 0.9),
     "`n_states` and `n_actions` must be given where no transition is, got None"),
    (lambda: MDP.from_coo([0] * 2, [0] * 2, [0] * 2, [1.5, -0.5], [1.0] * 2, 0.9),
     "`probabilities` must be numbers in [0, 1], got 1.5 in state 0, action 0, branch 0"),
    (lambda: MDP.from_coo([0] * 3, [0] * 3, [0] * 3, [0.5, 0.25, 0.25], [0, np.inf, -np.inf], 0.9),
     "`rewards` must be finite, got inf in state 0, action 0, branch 1"),
    (lambda: MDP.from_sparse(scipy.sparse.eye_array(5, 3), [[1.0]] * 3, 0.9),
     "`transitions` must have the shape (states * actions, states) or be a list of "
     "(states, states), got (5, 3)"),
    (lambda: MDP.from_sparse([scipy.sparse.eye_array(2, 3)], [[1.0]] * 3, 0.9),
     "`transitions` must have a square matrix of one size for each action, "
     "got (2, 3) for action 0 and (2, 3) for 0"),
    (lambda: MDP.from_sparse(scipy.sparse.eye_array(2), [1.0, 1.0, 1.0], 0.9),
     "`rewards` must have the shape (2, 1) or that of `transitions`, got (3,)"),
    (lambda: MDP.from_sparse(scipy.sparse.eye_array(2), scipy.sparse.eye_array(4, 2), 0.9),
     "`rewards` must have the shape (2, 1) or that of `transitions`, got (4, 2)"),
    (lambda: MDP.from_sparse(scipy.sparse.eye_array(2), EYES, 0.9),
     "`rewards` must have the shape (2, 1) or that of `transitions`, got 2 matrices of (2, 2)"),
    (lambda: MDP.from_sparse(scipy.sparse.csr_array([[1.0, 0.0], [0.5, -0.5]]), [[1.0]] * 2, 0.9),
     "`transitions` must be numbers in [0, 1], got -0.5 in state 1, action 0, branch 1"),
    (lambda: MDP.from_sparse(scipy.sparse.csr_array([[1.0, 0.0], [0.5, 0.0]]), [[1.0]] * 2, 0.9),
     "`transitions` must sum to 1, got 0.5 in state 1, action 0"),
    (lambda: MDP.from_sparse(scipy.sparse.csr_array([[1j]]), [[1.0]], 0.9),
     "`transitions` must be an array of numbers, got one of complex128"),
    (lambda: MDP.from_mdptoolbox([np.eye(2), np.eye(3)], np.ones((2, 2)), 0.9),
     "`transitions` must have a square matrix of one size for each action, "
     "got (3, 3) for action 1 and (2, 2) for 0"),
    (lambda: MDP.from_mdptoolbox(np.eye(2), np.ones((2, 2)), 0.9),
     "`transitions` must have the shape (actions, states, states), got (2, 2)"),
    (lambda: MDP.from_mdptoolbox(EYES, np.ones(3), 0.9),
     "`rewards` must have the shape (2, 2) or that of `transitions`, got (3,)"),
    (lambda: MDP.from_mdptoolbox(EYES, [np.eye(2)] * 3, 0.9),
     "`rewards` must have the shape (2, 2) or that of `transitions`, got 3 matrices of (2, 2)"),
    (lambda: MDP.from_state_actions([1.0, 1.0], [[1.0]] * 2, 0.9, [0, 0], [0, 0]),
     "`states` and `actions` must list a pair once, got state 0, action 0 more than once"),
    (lambda: MDP.from_state_actions([1.0], [[1.0]] * 2, 0.9, [0, 0], [0, 0]),
     "`transitions` must have the shape (1, states), got (2, 1)"),
    (lambda: MDP.from_state_actions([[1.0]], [[1.0]], 0.9, [0], [0]),
     "`rewards` must have one entry for each pair, got (1, 1)"),
    (lambda: MDP.from_state_actions([1.0], [[1.0]], 0.9, [1], [0]),
     "`states` must be in [0, 0], got 1 at position 0"),
    (lambda: MDP.from_state_actions([1.0], [[1.0]], 0.9, [0], [-1]),
     "`actions` must be in [0, 0], got -1 at position 0"),
    (lambda: MDP.from_state_actions([1.0], [[1.0, 0.0]], 0.9, [0], [0]),
     "`states` and `actions` must list an action that is allowed for every state, "
     "got none for state 1"),
    (lambda: MDP.from_state_actions([np.inf], [[1.0]], 0.9, [0], [0]),
     "`rewards` must be finite, got inf in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.0, s)], 2, 1, 0.9),
     "`transition` must list (probability, successor, reward) or that and `ends`, "
     "got (1.0, 0) in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.0, 0.5, 1.0)], 2, 1, 0.9),
     "`transition` must list (probability, successor, reward) or that and `ends`, "
     "got (1.0, 0.5, 1.0) in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: s, 2, 1, 0.9),
     "`transition` must give a list, an empty one where the action is not allowed, "
     "got 0 in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.0, s, 1.0)] if s else None, 2, 1, 0.9),
     "`transition` must give a list, an empty one where the action is not allowed, "
     "got None in state 0, action 0"),
    (lambda: MDP.from_function([[[(1.0, 0, 0.0)]]], 1, 1, 0.9),
     "`transition` must be a function of a state and an action, got [[[(1.0, 0, 0.0)]]]"),
    (lambda: MDP.from_function(lambda s, a: [(0.5, s, 1.0)], 2, 1, 0.9),
     "the probabilities of `transition` must sum to 1, got 0.5 in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.5, s, 1.0), (-0.5, s, 1.0)], 2, 1, 0.9),
     "the probabilities of `transition` must be numbers in [0, 1], got 1.5 in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.0, s, np.nan)], 2, 1, 0.9),
     "the rewards of `transition` must be finite, got nan in state 0, action 0"),
    (lambda: MDP.from_function(lambda s, a: [(1.0, s + 2, 0.0)], 2, 2, 0.9),
     "the successors of `transition` must be in [0, 2], got 3 in state 1, action 0"),
]  # fmt: skip


WRONG_KIND, WRONG_VALUE = TypeError, ValueError
KINDS = ("MaskedArray", "got float64", "got int64 with (1,)", "numbers, got one of", "got '0.9'")
KINDS += ("got 0.9j", "must give a list", "must be a function")


@pytest.mark.parametrize(("make", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_what_is_no_mdp_is_an_error_that_says_what_and_where(make, message):
    """TypeError for what is of the wrong kind, ValueError for wrong values and shapes."""
    with pytest.raises(WRONG_KIND if any(k in message for k in KINDS) else WRONG_VALUE) as error:
        make()
    assert str(error.value) == message


# A discount of 1.


def brute_force_endless(mdp):
    """Does some deterministic policy never end from some state? By trying them all."""
    there = np.ones((mdp.n_states, mdp.n_actions), bool) if mdp.allowed is None else mdp.allowed
    transitions = mdp.to_numpy()[0]
    for policy in itertools.product(*[np.flatnonzero(row) for row in there]):
        chosen = transitions[range(mdp.n_states), policy] > 0
        ending = mdp.terminal | (mdp.probabilities[range(mdp.n_states), policy].sum(-1) == 0)
        ending |= transitions[range(mdp.n_states), policy].sum(-1) < 1 - 1e-9
        for _ in range(mdp.n_states):
            ending = ending | (chosen & ending).any(1)
        if not ending.all():
            return True
    return False


def test_a_discount_of_1_needs_every_policy_to_end():
    found = {True: 0, False: 0}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n_states, n_actions = rng.integers(1, 5), rng.integers(1, 4)
        successors = rng.integers(0, n_states + 1, (n_states, n_actions, 2))
        arrays = successors, np.full(successors.shape, 0.5), rng.normal(size=(n_states, n_actions))
        masks = {
            "allowed": np.eye(n_actions, dtype=bool)[rng.integers(n_actions, size=n_states)]
            | (rng.random((n_states, n_actions)) < 0.5),
            "terminal": rng.random(n_states) < 0.2,
        }
        expected = brute_force_endless(MDP(*arrays, 0.9, **masks))
        found[expected] += 1
        mdp = MDP(*arrays, 1, **masks)
        if not expected:
            mdp.check_ends()
            continue
        with pytest.raises(ValueError, match="a policy that never ends from state") as error:
            mdp.check_ends()
        state, action = [int(word) for word in str(error.value).split() if word.isdigit()][-2:]
        assert masks["allowed"][state, action]
        assert not masks["terminal"][state]
        assert np.all(successors[state, action] < n_states)
    assert min(found.values()) > 50


def test_the_error_names_a_state_and_an_action_from_which_a_policy_never_ends():
    """Only action 1 of state 1, which stays, never ends."""
    ends, stays = [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]
    rows = [[ends, ends], [ends, stays], [ends, ends]]
    rewards = [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match=r"got 1 and .* never ends from state 1 with action 1$"):
        MDP.from_arrays(rows, rewards, 1).check_ends()
    allowed = np.array([[True, True], [True, False], [True, True]])
    MDP.from_arrays(rows, rewards, 1, allowed=allowed).check_ends()
    MDP.from_arrays(rows, rewards, 0.99).check_ends()


def test_the_check_looks_at_every_transition_once():
    """A long line ends, last state first; a sweep over all states for each would take minutes."""
    n = 20_000
    line = np.arange(1, n + 1, dtype=np.int32)[:, None, None]
    assert endless_pair(line, np.ones(line.shape), np.ones((n, 1), bool)) is None


def test_what_is_no_model_of_quantecon():
    with pytest.raises(TypeError, match="`ddp` must be a DiscreteDP of QuantEcon's, got 5"):
        MDP.from_quantecon(5)


# Ways out.


@pytest.mark.parametrize("mdp", [DENSE, WAYS["coo"](R, None), chain(6), garnet(20, 2, 4, seed=0)])
def test_numpy_and_scipy_round_trips(mdp):
    transitions, rewards = mdp.to_numpy()
    assert_same(MDP.from_arrays(transitions, rewards, mdp.discount), mdp)
    matrix, rewards = mdp.to_scipy()
    assert isinstance(matrix, scipy.sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray().reshape(transitions.shape), transitions)
    assert_same(MDP.from_sparse(matrix, rewards, mdp.discount), mdp)


def test_branches_to_the_same_state_add_up_on_the_way_out():
    mdp = MDP(np.zeros((2, 1, 3), int), np.full((2, 1, 3), 1 / 3), np.ones((2, 1)), 0.9)
    np.testing.assert_allclose(mdp.to_numpy()[0], [[[1.0, 0.0]]] * 2)
    np.testing.assert_allclose(mdp.to_scipy()[0].toarray(), [[1.0, 0.0]] * 2)


# Gymnasium.


ENVIRONMENTS = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake-v1", {"map_name": "8x8"}),
    ("FrozenLake8x8-v1", {"is_slippery": False}),
    ("Taxi-v4", {}),
    ("CliffWalking-v1", {}),
    ("CliffWalking-v1", {"is_slippery": True}),
]


@pytest.mark.parametrize(("name", "options"), ENVIRONMENTS, ids=str)
def test_a_gymnasium_environment_is_its_own_table(name, options):
    environment = gymnasium.make(name, **options)
    mdp = MDP.from_gymnasium(environment, 0.9)
    table = environment.unwrapped.P
    environment.close()
    v = np.random.default_rng(0).normal(size=mdp.n_states)
    expected = np.zeros((mdp.n_states, mdp.n_actions))
    for s, a in np.ndindex(expected.shape):
        for probability, successor, reward, done in table[s][a]:
            expected[s, a] += probability * (reward + (0 if done else 0.9 * v[successor]))
    assert not np.any(expected[mdp.terminal])
    # A terminal state is worth 0, and only an episode's end leads to one here.
    np.testing.assert_allclose(backup(mdp, v), expected, rtol=1e-12, atol=1e-14)


def test_the_holes_and_the_goal_of_frozen_lake_are_terminal():
    lake = "SFFFFHFHFFFHHFFG"
    for slippery in (True, False):
        environment = gymnasium.make("FrozenLake-v1", is_slippery=slippery)
        mdp = MDP.from_gymnasium(environment, 0.9)
        np.testing.assert_array_equal(mdp.terminal, [cell in "HG" for cell in lake])
        environment.close()
    assert mdp.n_branches == 1


def test_an_id_and_a_wrapped_environment_are_the_same():
    environment = gymnasium.make("Taxi-v4")
    wrapped = gymnasium.wrappers.TimeLimit(environment, 5)
    assert_same(MDP.from_gymnasium(wrapped, 0.9), MDP.from_gymnasium("Taxi-v4", 0.9))
    environment.close()


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1"])
def test_an_environment_made_from_its_id_is_closed(name, monkeypatch):
    made, make = [], gymnasium.make

    def watched(name):
        made.append(make(name))
        made[0].close = lambda: made.append("closed")
        return made[0]

    monkeypatch.setattr(gymnasium, "make", watched)
    with contextlib.suppress(ValueError):
        MDP.from_gymnasium(name, 0.9)
    assert made[1:] == ["closed"]


class Tiny:
    """All that is needed of an environment."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(1)

    def __init__(self, table):
        self.P = table


def test_any_object_with_a_table_and_spaces_will_do():
    mdp = MDP.from_gymnasium(Tiny([[[(1.0, 1, 2.0, False)]], [[(1.0, 0, 3.0, True)]]]), 0.9)
    np.testing.assert_allclose(backup(mdp, [10.0, 20.0]), [[20.0], [3.0]])


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("Nowhere-v0", "`environment` must be the id of a Gymnasium environment, got 'Nowhere-v0'"),
        ("FrozenLake-v99", "got 'FrozenLake-v99': Environment version `v99`"),
        ("a b", "`environment` must be the id of a Gymnasium environment, got 'a b'"),
        ("nowhere:Lake-v0", "got 'nowhere:Lake-v0': No module named 'nowhere'"),
        ("CartPole-v1", "transitions as `P`, got 'CartPole-v1'"),
        ("Blackjack-v1", "transitions as `P`, got 'Blackjack-v1'"),
        (3, "discrete states and actions and its transitions as `P`, got 3"),
        (Tiny({0: {0: [(1.0, 1, 0.0, False)]}}), "must have every pair, got none for state 1, act"),
        (Tiny([[[(0.5, 1, 1.0, False)]]] * 2), "must sum to 1, got 0.5 in state 0, action 0"),
        (Tiny([[[(1.0, 2, 1.0, False, {})]]] * 2), "`environment.P` must list"),
    ],
)
def test_an_environment_without_a_model_is_an_error(environment, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        MDP.from_gymnasium(environment, 0.9)
    assert message in str(error.value)


def test_mdps_need_numpy_alone():
    code = """
import sys
from mellowmax.mdp import garnet
print(garnet(10, 2, 2, seed=0).to_numpy()[0].shape)
print({"scipy", "gymnasium", "jax", "torch"} & set(sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "(10, 2, 10)\nset()\n", result.stderr
