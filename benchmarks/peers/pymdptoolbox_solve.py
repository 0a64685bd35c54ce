"""One model solved by each method of pymdptoolbox: `MODEL`, a line of JSON for each."""

import model
import numpy as np
from mdptoolbox import mdp, util

util.check = lambda transitions, reward: None  # takes longer than the solve, and no large model

quantities = successors, probabilities, rewards, discount = model.arrays()
if successors is None:
    transitions = probabilities.transpose(1, 0, 2).copy()
else:
    pairs = model.pairs(successors, probabilities)
    transitions = tuple(pairs[a :: rewards.shape[1]] for a in range(rewards.shape[1]))
epsilon = model.TOLERANCE * discount / (1 - discount)


def run(kind, *arguments, **options):
    """The values that a method finds."""
    solver = getattr(mdp, kind)(transitions, rewards, discount, *arguments, **options)
    solver.run()
    return np.asarray(solver.V)


model.report(
    {
        "modified policy iteration": lambda: run("PolicyIterationModified", epsilon),
        "policy iteration": lambda: run("PolicyIteration"),
        "value iteration": lambda: run("ValueIteration", epsilon),
    },
    quantities,
)
