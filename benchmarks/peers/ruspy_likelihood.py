"""Rust's likelihood by ruspy: `TASK.npz OUT.npz`, a line of JSON.

The task has `states` and `actions` of every month but the first of each bus, how often the mileage
rose by each number of bins, `increments`, and the `points` at which to compute the log-likelihood
and its gradient. What is computed for the first point, and compiled, is not counted.
"""

import json
import sys
import time

import numpy as np
import pandas as pd
from ruspy.estimation.criterion_function import get_criterion_function

task = np.load(sys.argv[1])
usage = np.repeat(np.arange(len(task["increments"])), task["increments"]).astype(float)
months = len(task["states"])
table = pd.DataFrame(
    {
        "state": np.concatenate([[0], task["states"]]),
        "decision": np.concatenate([[0], task["actions"]]),
        "usage": np.concatenate([[np.nan], usage]),
    },
    index=pd.MultiIndex.from_arrays([np.zeros(months + 1, int), np.arange(months + 1)]),
)
model = {
    "discount_factor": float(task["discount"]),
    "num_states": int(task["bins"]),
    "maint_cost_func": "linear",
    "cost_scale": 1e-3,
}
functions, _ = get_criterion_function({"model_specifications": model, "method": "NFXP"}, table)


def both(point):
    return functions["criterion_function"](point), functions["criterion_derivative"](point)


both(task["points"][0] + 0.1)
began = time.process_time()
found = [both(point) for point in task["points"]]
seconds = (time.process_time() - began) / len(found)
np.savez(
    sys.argv[2],
    values=-np.array([float(value) for value, _ in found]),
    gradients=-np.array([np.ravel(slope) for _, slope in found]),
)
print(json.dumps({"seconds": seconds}))
