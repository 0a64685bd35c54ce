"""A saved model as arrays, for the solvers of others, and how all are timed."""

import json
import sys
import time

import numpy as np

import mellowmax as mm
from mellowmax.mdp import MDP
from mellowmax.planning import solve

TOLERANCE = 1e-6
"""What an iteration may change at the end, or a sweep of what a peer has found."""


def arrays():
    """`(successors or None, probabilities, rewards, discount)`, `[S, A, K]`.

    A terminal state stays where it is, and earns nothing; so does the end, as one more state.
    """
    mdp = MDP.load(sys.argv[1])
    successors, probabilities, n = mdp.successors, mdp.probabilities.copy(), mdp.n_states
    rewards, terminal = mdp.expected_rewards.copy(), np.flatnonzero(mdp.terminal)
    probabilities[terminal] = 0.0
    if successors is None:
        probabilities[terminal, :, terminal] = 1.0
        return None, probabilities, rewards, mdp.discount
    successors = successors.copy()
    probabilities[terminal, :, 0] = 1.0
    successors[terminal] = terminal[:, None, None]
    if (successors == n).any():
        successors = np.append(successors, np.full_like(successors[:1], n), 0)
        last = np.zeros_like(probabilities[:1])
        last[..., 0] = 1.0
        probabilities = np.append(probabilities, last, 0)
        rewards = np.append(rewards, np.zeros_like(rewards[:1]), 0)
    return successors, probabilities, rewards, mdp.discount


def pairs(successors, probabilities):
    """The transitions as a sparse matrix `[S * A, S]`."""
    import scipy.sparse

    n_states, n_actions, n_branches = successors.shape
    starts = np.arange(0, probabilities.size + 1, n_branches)
    shape = (n_states * n_actions, n_states)
    matrix = scipy.sparse.csr_matrix(
        (probabilities.ravel().copy(), successors.ravel().astype(np.int64), starts), shape
    )  # a copy, because duplicates are summed in place
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def residual(successors, probabilities, rewards, discount, v):
    """Half the range of `T v - v` under the maximum: what a shift of all values cannot mend."""
    if successors is None:
        q = rewards + discount * probabilities @ v
    else:
        q = rewards.copy()
        for k in range(successors.shape[2]):
            q += discount * probabilities[:, :, k] * v[successors[:, :, k]]
    return float(np.ptp(q.max(1) - v) / 2)


def again(times):
    """Is one more run worth it? Three are made at least, and those of half a second."""
    spent = sum(times)
    return len(times) < 2 or (spent < 10 and len(times) < 4) or (spent < 0.5 and len(times) < 500)


def timed(call):
    """`(first, best of the rest, result)`, in seconds of the processor.

    A call may be a pair of functions: what the first one prepares is not timed.
    """
    prepare, run = call if isinstance(call, tuple) else (tuple, lambda _: call())
    times = []
    while again(times):
        prepared = prepare()
        began = time.process_time()
        result = run(prepared)
        times.append(time.process_time() - began)
        if times[0] > 3:
            break
    return times[0], min(times[1:] or times), result


def report(methods, quantities):
    """Time each method of a peer, and ours before and after: a line of JSON for each.

    `methods` has functions as `timed` takes them, which return state values.
    """
    mdp = MDP.load(sys.argv[1])

    def ours():
        return solve(mdp, mm.Max(), tolerance=TOLERANCE, throw=False)

    best = timed(ours)[1]
    for name, call in methods.items():
        try:
            first, seconds, v = timed(call)
        except Exception as error:  # a method that does not take the model
            print(f"{name}: {error}", file=sys.stderr)
            continue
        best = min(best, timed(ours)[1])
        found = {"method": name, "seconds": seconds, "first": first, "ours": best}
        found["residual"] = residual(*quantities, np.asarray(v))
        print(json.dumps(found), flush=True)
