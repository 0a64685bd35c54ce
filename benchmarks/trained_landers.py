"""Policies that were trained in our Lunar Lander fly in Gymnasium's: do they earn the same there?

`docs/measured.py` puts the weights of 20 runs into the package, of the best setting of each policy
of figure 11 in today's environment, once the cells of that are finished. Each flies 100 episodes in
our LunarLander-v3 and 100 in Gymnasium's own, ten minutes in all:

    python benchmarks/trained_landers.py [--out flights.parquet]

It prints the mean returns, and by how many standard errors they differ. The report of figure 11 has
the table: `--out src/mellowmax/experiments/data/fig11_flights.parquet` replaces it.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from mellowmax.deep import Network, Policy, evaluate
from mellowmax.environments import lunar_lander
from mellowmax.experiments.data import measured
from mellowmax.experiments.items.fig11.parts import Config
from mellowmax.experiments.store import write_table
from mellowmax.softmax import SOFTMAXES

EPISODES = 100
N_OBSERVATIONS = 8


def policy_of(row):
    """The policy of a run."""
    sizes = (N_OBSERVATIONS, Config().hidden, lunar_lander.params().n_actions)
    leaves, tree = jax.tree.flatten(Network.init(jax.random.key(0), sizes))
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(np.asarray(row.weights, np.float32), ends[:-1])
    arrays = [jnp.asarray(x.reshape(y.shape)) for x, y in zip(parts, leaves, strict=True)]
    return Policy(jax.tree.unflatten(tree, arrays), SOFTMAXES[row.policy](row.parameter))


def evaluated(row):
    """What a run's policy earns in both."""
    policy, seed = policy_of(row), int(row.run)
    line = {"policy": row.policy, "parameter": row.parameter, "run": row.run}
    error = 0.0
    for name, environment in (("ours", lunar_lander.params()), ("gymnasium", "LunarLander-v3")):
        returns = evaluate(policy, environment, episodes=EPISODES, seed=seed).returns
        line[name] = returns.mean(dtype=np.float64)
        error += returns.var(ddof=1, dtype=np.float64) / EPISODES
    return line | {"standard_error": error**0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="the table")
    options = parser.parse_args()
    policies, _ = measured("fig11_policies")
    table = pd.DataFrame([evaluated(row) for row in policies.itertuples()])
    table["standard_errors"] = (table["ours"] - table["gymnasium"]) / table["standard_error"]
    if options.out:
        versions = {name: version(name) for name in ("mellowmax", "jax", "gymnasium")}
        write_table(options.out, table, {"command": "benchmarks/trained_landers.py", **versions})
    print(table.to_string(index=False, float_format="%.1f"))
    for policy, rows in table.groupby("policy"):
        off = rows["ours"].mean() - rows["gymnasium"].mean()
        error = (rows["standard_error"] ** 2).sum() ** 0.5 / len(rows)
        near = (rows["standard_errors"].abs() <= 2).sum()
        print(
            f"{policy} {rows['parameter'].iloc[0]:g}: ours {rows['ours'].mean():.1f}, Gymnasium's "
            f"{rows['gymnasium'].mean():.1f}, {off / error:.1f} standard errors off; "
            f"{near} of {len(rows)} runs within 2"
        )


if __name__ == "__main__":
    main()
