"""Which reading of section 7.3 gives the paper's learning curves?

The paper does not say how an action is weighed: the discount, whether with what was earned from it
on or in the whole episode, with or without a baseline or normalisation. Nine readings are trained
for the first 3000 episodes with all ten settings of figure 11, and compared with its curves:

    python benchmarks/readings.py --runs 3 --out src/mellowmax/experiments/data/fig11_readings.csv

The last reading has a tenth of the learning rate that the paper states: it is no candidate, and
tells whether the paper's runs learned as fast as theirs should. It takes hours on two cores. A
reading that is in the file already is left alone, so it can be stopped and started again.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from mellowmax.deep import reinforce, train
from mellowmax.experiments.items import fig11
from mellowmax.softmax import SOFTMAXES

WEIGHINGS = {
    "whole return": {"reward_to_go": False},
    "whole return, normalised": {"reward_to_go": False, "normalise": True},
    "reward to go": {},
    "reward to go, normalised": {"normalise": True},
    "reward to go, others as baseline": {"baseline": "others"},
}
STATED = fig11.Config().learning_rate
READINGS = [
    (0.99, "whole return", STATED),
    (0.99, "whole return, normalised", STATED),
    (0.99, "reward to go", STATED),
    *((1.0, weighing, STATED) for weighing in WEIGHINGS),
    (1.0, "whole return", STATED / 10),
]
"""Discount, weighing and learning rate."""
HEAD = "# Made by benchmarks/readings.py, which says what it is.\n"


def trained(
    discount: float, weighing: str, learning_rate: float, runs: int, episodes: int
) -> pd.DataFrame:
    """The learning curves of a reading in bins of 500 episodes, with all settings of figure 11."""
    config = fig11.Config()
    settings = {"boltzmann": config.betas, "mellowmax": config.omegas}

    def of_policy(policy: str) -> pd.DataFrame:
        parameters = settings[policy]
        learner = reinforce(
            SOFTMAXES[policy](np.array(parameters)),
            learning_rate,
            discount=discount,
            batch=config.batch,
            hidden=config.hidden,
            **WEIGHINGS[weighing],
        )
        returns = train(learner, fig11.ENVIRONMENT, episodes=episodes, runs=runs, seed=0).returns
        bins = returns.reshape(len(parameters), runs, -1, fig11.PAPER_BIN).mean(-1, dtype=float)
        means, errors = bins.mean(1), bins.std(1, ddof=1) / runs**0.5
        return pd.DataFrame(
            {
                "discount": discount,
                "weighing": weighing,
                "learning_rate": learning_rate,
                "policy": policy,
                "parameter": np.repeat(parameters, bins.shape[-1]),
                "episode": np.tile((np.arange(bins.shape[-1]) + 0.5) * fig11.PAPER_BIN, len(bins)),
                "mean_return": means.ravel().round(2),
                "standard_error": errors.ravel().round(2),
                "runs": runs,
            }
        )

    with ThreadPoolExecutor() as pool:
        return pd.concat(pool.map(of_policy, settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of some readings")
    parser.add_argument("--out", type=Path, default=Path("readings.csv"))
    arguments = parser.parse_args()
    keys = ["discount", "weighing", "learning_rate"]
    for number, reading in enumerate(READINGS):
        there = pd.read_csv(arguments.out, comment="#") if arguments.out.exists() else None
        if there is not None and (there[keys] == list(reading)).all(axis=1).any():
            continue
        if arguments.only is not None and number not in arguments.only:
            continue
        began = time.perf_counter()
        table = trained(*reading, arguments.runs, arguments.episodes)
        print(*reading, f"{time.perf_counter() - began:.0f} s", flush=True)
        whole = table if there is None else pd.concat([there, table])
        arguments.out.write_text(HEAD + whole.to_csv(index=False))
    table = pd.read_csv(arguments.out, comment="#")
    print(fig11.distances(table).to_string(index=False))


if __name__ == "__main__":
    main()
