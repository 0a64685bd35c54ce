"""Tables that compare the files of both sides."""

from __future__ import annotations

import math
import pathlib
from typing import NamedTuple

import numpy as np

from .files import ENDS, load
from .policies import POLICIES

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
FLIGHT_GOAL, CONTACT_GOAL, PAIRED_GOAL = 1e-5, 1e-3, 1.0


def compare(folder: pathlib.Path) -> None:
    """Print all tables for which there are files of both sides."""
    _flight(folder, "flight", "Flight")
    _nudged(folder)
    _flight(folder, "wind", "Flight with wind and turbulence")
    _contact(folder)
    _alone(folder)
    _paired(folder)


def _both(folder: pathlib.Path, name: str) -> tuple[dict, dict] | None:
    """The files of both sides for a part."""
    paths = [folder / f"{side} {name}.npz" for side in ("gymnasium", "ours")]
    if not all(path.exists() for path in paths):
        print(f"{name}: not both sides are there\n")
        return None
    theirs, ours = (load(path) for path in paths)
    if not np.array_equal(theirs["seeds"], ours["seeds"]):
        raise SystemExit(f"{name}: the sides have other seeds")
    return theirs, ours


def _spread(apart: np.ndarray, goal: float) -> None:
    print("  quantile  " + "".join(f"{100 * q:>10g} %" for q in QUANTILES))
    print("  difference" + "".join(f"{x:>12.2g}" for x in np.quantile(apart, QUANTILES)))
    print(f"  at most {goal:g}: {100 * np.mean(apart <= goal):.2f} %\n")


def _flight(folder: pathlib.Path, part: str, title: str) -> None:
    sides = _both(folder, part)
    if not sides:
        return
    theirs, ours = sides
    if part == "flight":
        print(
            f"Gymnasium {theirs['gymnasium']}, Box2D {theirs['box2d']}; "
            f"ours: JAX {ours['jax']} on {ours['device']}\n"
        )
    most, steps = _farthest(theirs["seen"], ours["seen"])
    if np.isnan(most).any():
        raise SystemExit(f"{part}: one side has ended where the other one flies")
    print(
        f"{title}: {len(most):,} episodes of random actions until the first touch, 100 steps\n"
        f"at most, {steps:,} observations: the largest difference of an episode"
    )
    _spread(most, FLIGHT_GOAL)


def _nudged(folder: pathlib.Path) -> None:
    """How far Box2D is from itself: the least that another order of rounding can give."""
    paths = [folder / f"gymnasium {name}.npz" for name in ("flight", "nudged")]
    if all(path.exists() for path in paths):
        one, other = (load(path)["seen"] for path in paths)
        both = np.isfinite(other)  # until either of them touches the ground
        most, _ = _farthest(np.where(both, one, np.nan), np.where(both, other, 0))
        print("Box2D against itself, the velocity of the hull changed in its last bit at the start")
        _spread(most, FLIGHT_GOAL)


def _farthest(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, int]:
    """The largest difference of each episode while its first side flies, and the total length."""
    steps = np.isfinite(one[..., 0])
    apart = np.abs(one - other).max(-1)
    return np.where(steps, apart, 0).max(1), int(steps.sum())


def _contact(folder: pathlib.Path) -> None:
    sides = _both(folder, "contact")
    if not sides:
        return
    apart = np.abs(sides[0]["after"] - sides[1]["after"])[:1000].max((1, 2))
    print(
        f"Contact: one step from {len(apart):,} states of episodes of all five policies, without "
        "warm starting:\nthe largest difference of a position or a velocity of hull and legs"
    )
    _spread(apart, CONTACT_GOAL)


class Episodes(NamedTuple):
    """Episodes of a policy, in the order of their seeds."""

    seeds: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    ends: np.ndarray


def _read(paths: list[pathlib.Path]) -> Episodes | None:
    parts = [load(path) for path in paths]
    if not parts:
        return None
    joined = [np.concatenate([part[name] for part in parts]) for name in Episodes._fields]
    order = np.argsort(joined[0])
    return Episodes(*(each[order] for each in joined))


def _policies(folder: pathlib.Path, kind: str) -> dict[str, tuple[Episodes, Episodes]]:
    """The episodes of both sides, by policy."""
    found = {}
    for policy in POLICIES:
        theirs = _read(sorted(folder.glob(f"gymnasium {policy} *.npz")))
        ours = _read(sorted(folder.glob(f"ours {kind} {policy} *.npz")))
        if theirs and ours:
            found[policy] = theirs, ours
    return found


def two_means(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """The difference of two means, its standard error, and its p value (Welch's, for many)."""
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    difference = float(b.mean() - a.mean())
    p = math.erfc(abs(difference) / error / math.sqrt(2)) if error else float(not difference)
    return difference, error, p


def two_shares(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """The difference of two shares likewise, with the p value of Fisher's exact test."""
    p, q = a.mean(), b.mean()
    error = math.sqrt(p * (1 - p) / len(a) + q * (1 - q) / len(b))
    return float(q - p), error, fisher(int(a.sum()), len(a), int(b.sum()), len(b))


def fisher(k: int, m: int, l: int, n: int) -> float:  # noqa: E741
    """The probability of a table that is at most as probable as `k` of `m` and `l` of `n`."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + n + 1)))])

    def choose(n: int, k: np.ndarray | int) -> np.ndarray:
        return logs[n] - logs[k] - logs[n - k]

    total = k + l
    every = np.arange(max(0, total - n), min(m, total) + 1)
    log = choose(m, every) + choose(n, total - every) - choose(m + n, total)
    chances = np.exp(log)
    here = chances[k - every[0]]
    return min(1.0, float(chances[chances <= here * (1 + 1e-7)].sum()))


def holm(p: list[float]) -> list[float]:
    """Holm's corrected p values."""
    corrected, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(np.argsort(p)):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = worst
    return corrected


def _alone(folder: pathlib.Path) -> None:
    rows = []
    sizes = set()
    for policy, (theirs, ours) in _policies(folder, "alone").items():
        sizes.add((len(theirs.seeds), len(ours.seeds)))
        for name, a, b in (
            ("return", theirs.returns, ours.returns),
            ("length", theirs.lengths, ours.lengths),
        ):
            rows.append((policy, name, a.mean(), b.mean(), "", *two_means(a, b)))
        for number, name in enumerate(ENDS):
            a, b = theirs.ends == number, ours.ends == number
            difference, error, p = two_shares(a, b)
            shares = 100 * a.mean(), 100 * b.mean()
            rows.append((policy, name, *shares, " %", 100 * difference, 100 * error, p))
    if not rows:
        print("policies: not both sides are there\n")
        return
    corrected = holm([row[-1] for row in rows])
    text = ", ".join(f"{a:,} of Gymnasium's and {b:,} of ours" for a, b in sorted(sizes))
    print(
        f"Policies: episodes of each, {text}, on draws of their own;\nthe difference with its "
        f"standard error, its p value, and Holm's over all {len(rows)}"
    )
    print(f"  {'':14}{'':10}{'Gymnasium':>12}{'ours':>12}{'difference':>20}{'p':>8}{'Holm':>7}")
    last = ""
    for (policy, name, a, b, unit, difference, error, p), one in zip(rows, corrected, strict=True):
        apart = f"{difference:+.3f} ± {error:.3f}"
        print(
            f"  {policy if policy != last else '':14}{name:10}{f'{a:.2f}{unit}':>12}"
            f"{f'{b:.2f}{unit}':>12}{apart:>20}{p:>8.3f}{one:>7.2f}"
        )
        last = policy
    print(f"  significant at 5 % after Holm's correction: {sum(p < 0.05 for p in corrected)}\n")


def _paired(folder: pathlib.Path) -> None:
    print(
        "Paired, the same draws on both sides: ours minus Gymnasium's (a goal of 1 point at most)"
    )
    print(
        f"  {'':14}{'episodes':>9}{'return':>18}{'length':>18}{'same end':>10}{'within 0.01':>13}"
    )
    worst = 0.0
    for policy, (theirs, ours) in _policies(folder, "paired").items():
        _, left, right = np.intersect1d(theirs.seeds, ours.seeds, return_indices=True)
        apart = ours.returns[right] - theirs.returns[left]
        longer = ours.lengths[right] - theirs.lengths[left]
        same = (longer == 0) & (ours.ends[right] == theirs.ends[left])
        cells = [
            f"{x.mean():+.3f} ± {x.std(ddof=1) / math.sqrt(len(x)):.3f}" for x in (apart, longer)
        ]
        close = np.mean(np.abs(apart) <= 0.01)
        print(
            f"  {policy:14}{len(apart):>9,}{cells[0]:>18}{cells[1]:>18}"
            f"{100 * same.mean():>8.1f} %{100 * close:>11.1f} %"
        )
        worst = max(worst, abs(float(apart.mean())))
    print(f"  largest mean difference of the returns: {worst:.3f}")
