"""Figure 9: the mean reward of SARSA on the multi-passenger taxi, by policy and parameter.

As in the paper, every point is the best over a grid of learning rates. Beside it stands what the
policy of planning's fixed point would earn: a large learning rate makes SARSA's policy greedier
than that, so the two are different things.

Beside mellowmax's panel stands a hypothesis about the paper's: a root finder that silently
falls back on omega (`silent_fallback`). Its brackets are fitted with seeds other than those shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....environments import taxi
from ....learning import sarsa, train
from ....mdp import MDP, multi_passenger_taxi
from ....planning import solve
from ....softmax import SOFTMAXES, Softmax
from ...data import paper
from ...item import NAMES, Spec
from . import figures, silent_fallback
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE
from .verdict import POLICIES, judge

__all__ = [*NAMES, "average_reward", "planned_reward"]

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    epsilons: tuple[float, ...] = (0.005, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.25, 0.5)
    """Figure 9."""
    inverse_temperatures: tuple[float, ...] = (0.5, 0.75, 1.5, 2.0, 2.5, 3.0, 5.0, 20.0)
    """beta and omega (figure 9)."""
    learning_rates: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    """Ours: section 7.2 says that it was optimised, not over what."""
    steps: int = 300_000
    """Section 7.2."""
    runs: int = 25
    """Section 7.2."""
    slip: float = 0.1
    """Dearden et al. (1998)."""
    seed: int = 9
    """Seed of the random numbers; ours."""
    shown: tuple[tuple[float, float], ...] = ((0.7, 2.0), (-500.0, 500.0))
    """Brackets of the hypothetical root finder: one that holds the root in rows of nearly equal
    values alone, and one that overflows in all others. None for no hypothesis."""
    brackets: tuple[tuple[float, float], ...] = (
        *(
            (low, high)
            for low in (0.0, 0.7, 0.9, 1.1, 1.3)
            for high in (1.2, 1.5, 2.0, 4.0)
            if low < high
        ),
        (-500.0, 500.0),
        (-700.0, 700.0),
    )
    """The brackets that were fitted; ours."""
    fit_rates: tuple[float, ...] = (0.2, 0.4, 0.8)
    """Learning rates of the fit."""
    fit_runs: int = 2
    """Runs of the fit."""
    fit_seed: int = 90
    """Seed of the fit, other than that of the runs that are shown."""


SCALES = {
    "quick": Config(learning_rates=(0.05, 0.1, 0.2, 0.4, 0.8)),
    "paper": Config(),
}
SECONDS = {"quick": 130.0, "paper": 200.0}
SHORT = {"epsilon-greedy": "eps", "boltzmann": "boltz", "mellowmax": "mm"}
"""What the paper's table calls them."""
FALLBACK = "fallback"
"""What the cells of the hypothesis are called."""
BINS = 10


def cells(config: Config) -> dict[str, Spec]:
    """A policy at a parameter, with all learning rates."""
    shared = {
        "learning_rates": list(config.learning_rates),
        "steps": config.steps,
        "runs": config.runs,
        "slip": config.slip,
        "seed": config.seed,
    }
    result = {
        f"{policy}-{parameter:g}": {"policy": policy, "parameter": parameter} | shared
        for policy in POLICIES
        for parameter in _parameters(config, policy)
    }
    if not config.shown:
        return result
    fit = {"learning_rates": list(config.fit_rates), "runs": config.fit_runs}
    fit |= {"seed": config.fit_seed, "brackets": [list(pair) for pair in config.brackets]}
    shown = {"brackets": [list(pair) for pair in config.shown]}
    for name, own in ((FALLBACK, shown), ("fit", fit)):
        for parameter in config.inverse_temperatures:
            base = {"policy": FALLBACK, "parameter": parameter} | shared
            result[f"{name}-{parameter:g}"] = base | own
    return result


def _parameters(config: Config, policy: str) -> tuple[float, ...]:
    return config.epsilons if policy == "epsilon-greedy" else config.inverse_temperatures


def _rewards(softmax: Softmax, spec: Spec) -> Floats:
    """What SARSA earns on the taxi, for each learning rate, run and stretch of the steps."""
    result = train(
        sarsa(softmax, np.array(spec["learning_rates"])),
        taxi.params(slip=spec["slip"]),
        steps=spec["steps"],
        runs=spec["runs"],
        bins=BINS,
        tables=False,
        seed=spec["seed"],
    )
    assert result.rewards is not None
    return result.rewards.astype(np.float64)


def run(spec: Spec) -> pd.DataFrame:
    """The mean reward for each learning rate, and that of planning's policy."""
    if spec["policy"] == FALLBACK:
        return silent_fallback.tabulate(spec, _rewards(silent_fallback.softmaxes(spec), spec))
    softmax = SOFTMAXES[spec["policy"]](spec["parameter"])  # type: ignore[call-arg]
    rewards = _rewards(softmax, spec)
    means = rewards.mean(-1)
    planned, converged = planned_reward(softmax, spec["slip"])
    return pd.DataFrame(
        {
            "policy": spec["policy"],
            "parameter": spec["parameter"],
            "learning_rate": spec["learning_rates"],
            "mean_reward": means.mean(1),
            "standard_error": means.std(1, ddof=1) / np.sqrt(spec["runs"]),
            "last_tenth": rewards[..., -1].mean(1),
            "runs": spec["runs"],
            "planned": planned,
            "planned_converged": converged,
        }
    )


def planned_reward(softmax: Softmax, slip: float) -> tuple[float, bool]:
    """What the policy of planning's fixed point earns a step, and did planning converge?"""
    mdp = multi_passenger_taxi(slip=slip)
    solution = solve(mdp, softmax, throw=False)
    return average_reward(mdp, solution.policy), solution.converged


def average_reward(mdp: MDP, policy: Floats) -> float:
    """The mean reward of a step in the long run, where an end leads back to state 0."""
    transitions, rewards = mdp.to_numpy()
    chain = np.einsum("sa,sat->st", policy, transitions)
    live = ~mdp.terminal
    chain[:, 0] += 1.0 - chain[:, live].sum(1)
    chain = chain[np.ix_(live, live)]
    equations = np.vstack([chain.T - np.eye(len(chain)), np.ones(len(chain))])
    right = np.append(np.zeros(len(chain)), 1.0)
    stationary = np.linalg.lstsq(equations, right, rcond=None)[0]
    return float(stationary @ (policy * rewards).sum(1)[live])


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Every learning rate, and the best one of each point with the paper's number."""
    own = [table for name, table in cells.items() if name.startswith(POLICIES)]
    whole = pd.concat(own, ignore_index=True)
    best = whole.loc[whole.groupby(["policy", "parameter"], sort=False)["mean_reward"].idxmax()]
    theirs = [_paper_at(row.policy, row.parameter) for row in best.itertuples()]
    return {
        "rates": whole[list(COLUMNS["rates"])],
        "best": best.assign(paper=theirs)[list(COLUMNS["best"])].reset_index(drop=True),
    } | _of_brackets(cells)


def _of_brackets(cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """What the silent fallback earns, and how near each bracket of the fit comes."""
    best = {}
    for name in (FALLBACK, "fit"):
        parts = [table for cell, table in cells.items() if cell.startswith(name)]
        best[name] = silent_fallback.best_rates(parts)
        theirs = [_paper_at("mellowmax", parameter) for parameter in best[name]["parameter"]]
        best[name] = best[name].assign(paper=np.array(theirs, np.float64))
    best["fit"] = silent_fallback.distances(best["fit"])
    return {name: table[list(COLUMNS[name])] for name, table in best.items()}


def _paper_at(policy: str, parameter: float) -> float:
    """The paper's mean reward at a parameter: of the points it marks, the nearest one's."""
    points = paper("fig9_taxi").query(f"policy == '{SHORT[policy]}'")
    distance = np.abs(np.log(points["parameter"] / parameter))
    return float(points["mean_reward"][distance <= distance.min() + 1e-12].mean())


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Three panels with the paper's curves, and the mean reward by learning rate."""
    theirs = paper("fig9_taxi")
    theirs["policy"] = theirs["policy"].map({short: name for name, short in SHORT.items()})
    return {
        "rewards": figures.draw_rewards(tables["best"], tables["fallback"], theirs),
        "learning-rates": figures.draw_rates(tables["rates"]),
    }
