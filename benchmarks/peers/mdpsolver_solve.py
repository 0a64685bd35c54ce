"""One model solved by mdpsolver: `MODEL`, a line of JSON for each of its methods."""

import functools

import mdpsolver
import model
import numpy as np

quantities = successors, probabilities, rewards, discount = model.arrays()
if successors is None:
    transitions = {"tranMatWithZeros": probabilities.tolist()}
else:
    transitions = {"tranMatProbs": probabilities.tolist(), "tranMatColumns": successors.tolist()}
# Its tolerance is on the distance to the optimum.
tolerance = model.TOLERANCE * discount / (1 - discount)
earned = rewards.tolist()


def fresh():
    """A model that was not solved before: a second solve would start from the first's result."""
    solver = mdpsolver.model()
    solver.mdp(discount=discount, rewards=earned, **transitions)
    return solver


def solved(algorithm, solver):
    """The values that a method finds."""
    solver.solve(algorithm=algorithm, tolerance=tolerance)
    return np.array(solver.getValueVector())


methods = {"modified policy iteration": "mpi", "policy iteration": "pi", "value iteration": "vi"}
model.report(
    {name: (fresh, functools.partial(solved, short)) for name, short in methods.items()}, quantities
)
