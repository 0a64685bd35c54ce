"""Rust's estimates for group 4 by econirl, with the standard errors of his tables: a line of JSON.

The second of two fits is counted, which compiles less than the first.
"""

import json
import time

from econirl.datasets import load_rust_bus, rust_bus_reward_spec
from econirl.estimators import NFXP

table = load_rust_bus(original=True, group=4)
for _ in range(2):
    began = time.process_time()
    model = NFXP(
        n_states=90,
        discount=0.9999,
        utility=rust_bus_reward_spec(90),
        se_method="full_likelihood_bhhh",
    )
    model.fit(table, state="mileage_bin", action="replaced", id="bus_id")
    seconds = time.process_time() - began
print(
    json.dumps(
        {
            "seconds": seconds,
            "parameters": {name: float(one) for name, one in model.params_.items()},
            "errors": {name: float(one) for name, one in model.se_.items()},
            "log_likelihood": float(model.log_likelihood_),
            "converged": bool(model.converged_),
        }
    )
)
