"""Figure 2: SARSA on the two-state MDP, whose values do not settle under a Boltzmann policy.

The paper shows one run, smoothed over ten consecutive episodes. Here are one run of each policy and
statistics of many: one run does not show how often values move between the fixed points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...._typing import Floats
from ....environments import two_state
from ....learning import sarsa, train
from ....mdp import two_state as two_state_mdp
from ....planning import fixed_points
from ....softmax import SOFTMAXES, Boltzmann, Mellowmax
from ...data import paper
from ...intervals import share_interval
from ...item import NAMES, Claim, Spec, Verdict
from .figures import draw_runs, draw_spread
from .text import CAPTIONS, COLUMNS, DEVIATIONS, RULE, SETTINGS, SOURCE, TITLE

__all__ = [*NAMES, "crossings", "stable_values"]

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    parameter: float = 16.55
    """beta, and omega (section 2 and figure 6)."""
    learning_rate: float = 0.1
    """Section 2."""
    episodes: int = 2000
    """Figure 2."""
    smoothing: int = 10
    """Figure 2: consecutive episodes that are averaged over."""
    runs: int = 1000
    """Ours; the paper shows one."""
    seed: int = 2
    """Seed of the random numbers; ours."""


SCALES = {"quick": Config(runs=200), "paper": Config()}
SECONDS = {"quick": 4.0, "paper": 10.0}
POLICIES = ("boltzmann", "mellowmax")
"""Names of `SOFTMAXES`."""


def cells(config: Config) -> dict[str, Spec]:
    """One run and many runs of each policy."""
    base = dataclasses.asdict(config)
    one, many = base | {"runs": 1, "keep": True}, base | {"keep": False}
    return {f"{name}-run": one | {"policy": name} for name in POLICIES} | {
        f"{name}-runs": many | {"policy": name} for name in POLICIES
    }


def run(spec: Spec) -> pd.DataFrame:
    """The smoothed values of one run, or statistics of many."""
    softmax = SOFTMAXES[spec["policy"]](spec["parameter"])  # type: ignore[call-arg]
    result = train(
        sarsa(softmax, spec["learning_rate"]),
        two_state.params(),
        episodes=spec["episodes"],
        runs=spec["runs"],
        values=[0],
        tables=False,
        seed=spec["seed"],
    )
    assert result.values is not None
    width = spec["smoothing"]
    sums = np.cumsum(result.values[:, :, 0, :], axis=1, dtype=np.float64)
    smooth = (sums[:, width:] - sums[:, :-width]) / width
    if spec["keep"]:
        episode = np.arange(width, spec["episodes"])
        q_a, q_b = smooth[0].T
        frame = {"policy": spec["policy"], "episode": episode, "q_a": q_a, "q_b": q_b}
        return pd.DataFrame(frame)
    low, high = stable_values(spec["parameter"])
    b = smooth[..., 1]
    later, second = b[:, b.shape[1] // 10 :], b[:, b.shape[1] // 2 :]
    return pd.DataFrame(
        {
            "policy": spec["policy"],
            "run": np.arange(spec["runs"]),
            "crossings": [crossings(row, low, high) for row in b],
            "mean_b": later.mean(1),
            "sd_b": later.std(1),
            "range_b": second.max(1) - second.min(1),
        }
    )


def stable_values(beta: float) -> tuple[float, float]:
    """Q(s1, b) at the lower and at the upper stable fixed point of planning."""
    points = fixed_points(two_state_mdp(), Boltzmann(beta))
    low, high = (float(point.q[0, 1]) for point in points if point.stable)
    return low, high


def crossings(values: Floats, low: float, high: float) -> int:
    """How often values go from below `low` to above `high`, or back."""
    beyond = values[(values < low) | (values > high)] > high
    return int(np.count_nonzero(beyond[1:] != beyond[:-1]))


def tables(config: Config, cells: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The single runs, and the statistics."""
    return {
        kind: pd.concat([cells[f"{name}-{kind}"] for name in POLICIES], ignore_index=True)
        for kind in ("run", "runs")
    }


def plot(tables: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """One run of each policy over the paper's, and the statistics of many."""
    theirs = paper("fig2_sarsa_boltzmann")
    low, high = stable_values(Config.parameter)
    marks = {"boltzmann": (low, high), "mellowmax": (_only(Config.parameter),)}
    return {
        "runs": draw_runs(tables["run"], theirs, marks),
        "spread": draw_spread(tables["runs"], _paper_crossings(low, high), high - low),
    }


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict by `text.RULE`."""
    low, high = stable_values(Config.parameter)
    of = dict(iter(tables["runs"].groupby("policy")))
    boltzmann, mellowmax = of["boltzmann"], of["mellowmax"]
    wide = {
        name: share_interval((rows["range_b"] > high - low).sum(), len(rows))
        for name, rows in of.items()
    }
    crossed = boltzmann["crossings"]
    back = share_interval((crossed > 1).sum(), len(crossed))
    usual = [np.quantile(boltzmann[column], [0.025, 0.975]) for column in ("crossings", "mean_b")]
    theirs = (_paper_crossings(low, high), _paper_mean())
    claims = (
        Claim(
            "With Boltzmann the values do not settle",
            "one run that never does",
            f"{_percent(wide['boltzmann'])} of {len(boltzmann)} runs range over more than the "
            f"distance between the fixed points, {high - low:.2f}, in their second half",
            bool(wide["boltzmann"][0] >= 0.9),
        ),
        Claim(
            "They move between the fixed points",
            f"{theirs[0]} crossings",
            f"{crossed.mean():.2f} crossings a run; {(crossed > 0).mean():.0%} of the runs cross, "
            f"{_percent(back)} come back",
            bool((crossed > 0).all() and back[0] > 0),
        ),
        Claim(
            "The paper's run is typical of ours",
            f"{theirs[0]} crossings, Q(s1, b) {theirs[1]:.2f} on average",
            f"95 % of our runs have {usual[0][0]:.0f} to {usual[0][1]:.0f} crossings and a "
            f"mean of {usual[1][0]:.2f} to {usual[1][1]:.2f}",
            all(bool(edge[0] <= x <= edge[1]) for edge, x in zip(usual, theirs, strict=True)),
        ),
        Claim(
            "With mellowmax they settle near the one fixed point",
            "said of its convergence in section 6, not shown",
            f"{_percent(wide['mellowmax'])} of {len(mellowmax)} runs range that far; Q(s1, b) is "
            f"{mellowmax['mean_b'].mean():.3f} on average and {_only(Config.parameter):.3f} at the "
            "fixed point",
            bool(wide["mellowmax"][0] <= 0.1),
        ),
    )
    in_short = "SARSA does not do all that the paper says of it."
    if all(claim.holds for claim in claims):
        in_short = "With a Boltzmann policy SARSA wanders between fixed points; with mellowmax "
        in_short += "it settles."
    return Verdict(
        claims,
        "SARSA with a Boltzmann policy wanders between the fixed points of planning, and is mostly "
        "near or above the upper one; with mellowmax it stays near the one fixed point.",
        in_short=in_short,
    )


def _only(omega: float) -> float:
    """Q(s1, b) at the one fixed point of planning with mellowmax."""
    (point,) = fixed_points(two_state_mdp(), Mellowmax(omega))
    return float(point.q[0, 1])


def _paper_b() -> Floats:
    """Q(s1, b) of the paper's run at every episode."""
    points = paper("fig2_sarsa_boltzmann").query("action == 'b'").sort_values("episode")
    return np.interp(np.arange(10, 2000), points["episode"], points["q"])


def _paper_crossings(low: float, high: float) -> int:
    return crossings(_paper_b(), low, high)


def _paper_mean() -> float:
    values = _paper_b()
    return float(values[len(values) // 10 :].mean())


def _percent(interval: tuple[float, float, float]) -> str:
    share, low, high = interval
    return f"{share:.0%} ({low:.0%} to {high:.0%})"
