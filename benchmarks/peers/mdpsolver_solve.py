"""One model solved by mdpsolver's modified policy iteration: `MODEL max RESIDUAL`."""

import json
import sys

import mdpsolver
import model
import numpy as np

successors, probabilities, rewards, discount = model.arrays()
solver = mdpsolver.model()
if successors is None:
    transitions = {"tranMatWithZeros": probabilities.tolist()}
else:
    transitions = {"tranMatProbs": probabilities.tolist(), "tranMatColumns": successors.tolist()}
solver.mdp(discount=discount, rewards=rewards.tolist(), **transitions)
# Its tolerance is on the distance to the optimum.
tolerance = float(sys.argv[3]) * discount / (1 - discount)
first, seconds, _ = model.timed(lambda: solver.solve(algorithm="mpi", tolerance=tolerance))
v = np.array(solver.getValueVector())
residual = model.residual(successors, probabilities, rewards, discount, v)
print(json.dumps({"seconds": seconds, "first": first, "residual": residual}))
