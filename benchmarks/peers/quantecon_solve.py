"""One model solved by QuantEcon's best method: `MODEL max RESIDUAL`, a line of JSON."""

import json
import sys

import model
import numpy as np
import scipy.sparse
from quantecon.markov import DiscreteDP

successors, probabilities, rewards, discount = model.arrays()
tolerance = float(sys.argv[3])
if successors is None:
    ddp = DiscreteDP(rewards, probabilities, discount)
else:
    n_states, n_actions, n_branches = successors.shape
    rows = np.arange(0, probabilities.size + 1, n_branches)
    shape = (n_states * n_actions, n_states)
    transitions = scipy.sparse.csr_matrix(
        (probabilities.ravel().copy(), successors.ravel().astype(np.int64), rows), shape
    )  # a copy, because duplicates are summed in place
    transitions.sum_duplicates()
    states, actions = np.divmod(np.arange(n_states * n_actions), n_actions)
    ddp = DiscreteDP(rewards.ravel(), transitions, discount, states, actions)

# Its stopping rule is on the span of the change, against epsilon * (1 - discount) / discount.
epsilon = tolerance * discount / (1 - discount)
methods = {
    f"modified policy iteration, k={k}": {"k": k, "epsilon": epsilon, "max_iter": 10**6}
    for k in (20, 100)
}
best = None
for name, options in methods.items():
    first, seconds, found = model.timed(lambda o=options: ddp.modified_policy_iteration(**o))
    if best is None or seconds < best["seconds"]:
        best = {"seconds": seconds, "first": first, "method": name}
        best["residual"] = model.residual(successors, probabilities, rewards, discount, found.v)
if successors is None:
    first, seconds, found = model.timed(ddp.policy_iteration)
    if seconds < best["seconds"]:
        best = {"seconds": seconds, "first": first, "method": "policy iteration"}
        best["residual"] = model.residual(successors, probabilities, rewards, discount, found.v)
print(json.dumps(best))
