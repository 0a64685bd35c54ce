"""One model solved by each method of QuantEcon: `MODEL`, a line of JSON for each."""

import model
import numpy as np
from quantecon.markov import DiscreteDP

quantities = successors, probabilities, rewards, discount = model.arrays()
if successors is None:
    ddp = DiscreteDP(rewards, probabilities, discount)
else:
    states, actions = np.divmod(np.arange(rewards.size), rewards.shape[1])
    transitions = model.pairs(successors, probabilities)
    ddp = DiscreteDP(rewards.ravel(), transitions, discount, states, actions)

# Its stopping rule is on the span of the change, against epsilon * (1 - discount) / discount.
options = {"epsilon": model.TOLERANCE * discount / (1 - discount), "max_iter": 10**6}


def modified(k):
    """Modified policy iteration with so many sweeps of a policy."""
    return lambda: ddp.modified_policy_iteration(k=k, **options).v


model.report(
    {
        "modified policy iteration, k=20": modified(20),
        "modified policy iteration, k=100": modified(100),
        "modified policy iteration, k=5": modified(5),
        "policy iteration": lambda: ddp.policy_iteration().v,
        "value iteration": lambda: ddp.value_iteration(**options).v,
    },
    quantities,
)
