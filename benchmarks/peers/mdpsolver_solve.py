"""One model solved by mdpsolver's modified policy iteration: `MODEL max RESIDUAL`."""

import json
import sys
import time

import mdpsolver
import model
import numpy as np

successors, probabilities, rewards, discount = model.arrays()
if successors is None:
    transitions = {"tranMatWithZeros": probabilities.tolist()}
else:
    transitions = {"tranMatProbs": probabilities.tolist(), "tranMatColumns": successors.tolist()}
# Its tolerance is on the distance to the optimum.
tolerance = float(sys.argv[3]) * discount / (1 - discount)


def fresh():
    """A model that was not solved before: a second solve would start from the first's result."""
    solver = mdpsolver.model()
    solver.mdp(discount=discount, rewards=rewards.tolist(), **transitions)
    return solver


times = []
while not times or (model.again(times) and times[0] < 20):
    solver = fresh()
    began = time.perf_counter()
    solver.solve(algorithm="mpi", tolerance=tolerance)
    times.append(time.perf_counter() - began)
v = np.array(solver.getValueVector())
residual = model.residual(successors, probabilities, rewards, discount, v)
print(json.dumps({"seconds": min(times), "first": times[0], "residual": residual}))
