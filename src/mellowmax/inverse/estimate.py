"""What a fit has found, how sure it is, and what no demonstrations could tell."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common import checks, npz
from .._common.schema import Field
from .._typing import ArrayLike, Floats
from .demonstrations import Demonstrations
from .picture import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Estimate",
    "FitProgress",
    "FitStatus",
    "NotFittedError",
    "by_cluster",
    "complement",
    "joined_episodes",
    "read_fields",
    "rows_of",
]

KINDS = ("hessian", "outer", "sandwich")
SCHEMA = {
    "names": Field("text", "K"),
    "parameters": Field("number", "K"),
    "standard_errors": Field("number", "K"),
    "covariance": Field("number", "K K"),
    "errors": Field("text", among=KINDS),
    "log_likelihood": Field("number"),
    "converged": Field("boolean"),
    "status": Field("text"),
    "reason": Field("text"),
    "decrement": Field("number"),
    "iterations": Field("whole number", least=0),
    "evaluations": Field("whole number", least=0),
    "rank": Field("whole number", least=0),
    "null_space": Field("number", "K M"),
}
"""The fields of an estimate in a file."""
PART = 1e-6
"""A parameter with a larger part in a direction that is not identified is not identified."""


class FitStatus(enum.StrEnum):
    """How a fit has ended. A status equals its text."""

    CONVERGED = "converged"
    """The decrement came down to the tolerance, at a maximum."""
    OUT_OF_ITERATIONS = "out of iterations"
    """`max_iterations` were taken."""
    NO_ASCENT = "no ascent"
    """The likelihood did not rise along the step any more, before the decrement was small."""
    SADDLE = "saddle"
    """The gradient vanishes, but the likelihood rises in some direction from here."""
    UNBOUNDED = "unbounded"
    """The likelihood rises for ever as the parameters grow."""
    INNER = "inner solve did not converge"
    """The demonstrator's own plan did not converge at the parameters that were tried."""
    AT_A_FOLD = "at a fold"
    """Two fixed points of the demonstrator's softmax meet: the likelihood has no derivative."""
    STOPPED = "stopped"
    """The callback asked for it."""


@dataclasses.dataclass(frozen=True)
class FitProgress:
    """The progress of a fit, passed to its callback."""

    iterations: int
    """The steps so far."""
    log_likelihood: float
    """The log-likelihood so far."""
    decrement: float
    """What the next step promises to gain, which has to come down to the tolerance."""
    tolerance: float
    """The tolerance of the fit."""
    seconds: float
    """Wall-clock time since the fit began."""


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """The parameters under which the demonstrations are most probable; printing it shows them."""

    parameters: Floats
    """`[k]`."""
    names: tuple[str, ...]
    """What the parameters are called."""
    log_likelihood: float
    """The log-probability of the demonstrations, without the penalty."""
    converged: bool
    """Is it a maximum, to the tolerance?"""
    status: FitStatus
    """How the fit has ended."""
    reason: str
    """Why it has not converged, or why something is not identified; empty otherwise."""
    decrement: float
    """By how much one more step of Newton's method promises to raise the log-likelihood."""
    iterations: int
    """Steps."""
    evaluations: int
    """How often the demonstrator's plan was solved for, in each MDP."""
    rank: int
    """The number of directions of the parameters that the demonstrations tell something about."""
    null_space: Floats = dataclasses.field(repr=False)
    """`[k, k - rank]`, the directions along which no decision becomes more or less probable."""
    policies: tuple[Floats, ...] = dataclasses.field(repr=False)
    """`[S, A]` of each MDP, the policy of the demonstrator."""
    rewards: tuple[Floats, ...] = dataclasses.field(repr=False)
    """`[S, A]` of each MDP, the rewards."""
    _hessian: Floats = dataclasses.field(repr=False)  # of the objective, penalty included
    _scores: Floats = dataclasses.field(repr=False)  # [N, k], those of each decision
    _weights: Floats = dataclasses.field(repr=False)  # [N]
    _episodes: Floats = dataclasses.field(repr=False)  # [N], different ones in different MDPs

    @property
    def policy(self) -> Floats:
        """`[S, A]`, the policy of the demonstrator, in the first MDP."""
        return self.policies[0]

    def covariance(self, kind: str = "hessian", clusters: ArrayLike | None = None) -> Floats:
        """`[k, k]`, the covariance of the estimates.

        It is NaN for all that is not identified, and wherever the fit has not converged.

        Args:
            kind: `"hessian"`, the inverse of the curvature of the log-likelihood; `"outer"`, that
                of the outer products of the gradients of decisions (Rust's tables, after Berndt,
                Hall, Hall and Hausman); `"sandwich"`, which holds too where the demonstrator is not
                of the kind that was fitted (White, 1982).
            clusters: for outer products and the sandwich, the group of each decision, in the order
                of the demonstrations, `[N]`: gradients are added up over a group first. None
                for the decisions themselves, and for the sandwich for the episodes.
        """
        checks.one_of("kind", kind, KINDS)
        result = np.full_like(self._hessian, np.nan)
        if not self.converged:
            return result
        basis = complement(self.null_space, len(self.parameters))
        curvature = -basis.T @ self._hessian @ basis
        middle: Floats | None = None
        if kind != "hessian":
            of = clusters
            if of is None and kind == "sandwich" and len(np.unique(self._episodes)) > 1:
                of = self._episodes
            sums = by_cluster(self._scores, self._weights, of) @ basis
            middle = sums.T @ sums
        inner = _inverse(middle if middle is not None and kind == "outer" else curvature)
        if middle is not None and kind == "sandwich":
            inner = inner @ middle @ inner
        known = (np.abs(self.null_space) <= PART).all(1, keepdims=True)
        full = basis @ inner @ basis.T
        return np.where(known & known.T, full, np.nan)

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """`[k]`, by the curvature of the log-likelihood; NaN for what is not identified."""
        return np.sqrt(np.diag(self.covariance()))

    def rows(self) -> list[tuple[str, str]]:
        """The estimate in words: pairs of a name and a text, as `print` shows them."""
        pairs = zip(self.names, self.parameters, self.standard_errors, strict=True)
        rows = [(name, f"{value:.6g} +- {error:.3g}") for name, value, error in pairs]
        return [*rows, *rows_of(self.fields())]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}s}  {text}" for name, text in rows)

    def fields(self, kind: str = "hessian") -> dict[str, Any]:
        """What `save` writes, by name; `kind` is that of the covariance."""
        names = ["parameters", "log_likelihood", "converged", "reason", "decrement"]
        names += ["iterations", "evaluations", "rank", "null_space"]
        known = {name: getattr(self, name) for name in names}
        covariance = self.covariance(kind)
        errors = {"errors": kind, "standard_errors": np.sqrt(np.diag(covariance))}
        called = {"names": np.array(self.names), "status": str(self.status)}
        return called | known | errors | {"covariance": covariance}

    def save(self, path: str | Path, kind: str = "hessian") -> None:
        """Write the estimates and what is known about them to an `.npz` file.

        Args:
            path: the file.
            kind: that of the covariance and the standard errors, as in `covariance`.
        """
        npz.write(path, "estimate", self.fields(kind))

    def plot(self, kind: str = "hessian") -> Figure:
        """Draw the estimates with their 95 % intervals, as a Matplotlib figure.

        An open circle is an estimate that has no standard error.

        Args:
            kind: that of the standard errors, as in `covariance`.
        """
        return picture(self.fields(kind))


def read_fields(path: str | Path) -> dict[str, Any]:
    """What `Estimate.save` wrote, by name.

    Raises:
        ValueError: for a file that is truncated, of another kind, or of a newer version.
    """
    with npz.reading(path, "estimate", SCHEMA) as fields:
        return fields


def rows_of(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known about an estimate in words, from the fields that `Estimate.save` writes."""
    rows = [
        ("log-likelihood", f"{fields['log_likelihood']:.6g}"),
        ("status", f"{fields['status']} after {fields['iterations']} steps"),
        ("identified", f"{fields['rank']} of {len(fields['names'])} directions"),
    ]
    return [*rows, ("reason", fields["reason"])] if fields["reason"] else rows


class NotFittedError(RuntimeError):
    """A fit that did not converge; `estimate` is where it stopped."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        why = f": {estimate.reason}" if estimate.reason else ""
        super().__init__(
            f"the fit did not converge: {estimate.status} after {estimate.iterations} steps{why}; "
            "`throw=False` returns it as it is"
        )


def by_cluster(scores: Floats, weights: Floats, clusters: ArrayLike | None) -> Floats:
    """The sums of gradients over groups; None makes each decision a group.

    A decision that was seen `w` times counts as `w` decisions.
    """
    if clusters is None:
        return scores * np.sqrt(weights)[:, None]
    groups = checks.array("clusters", clusters)
    if groups.shape != weights.shape:
        rule = f"`clusters` must have the shape {weights.shape}"
        raise ValueError(f"{rule}, got {groups.shape}")
    _, which = np.unique(groups, return_inverse=True)
    sums = np.zeros((which.max() + 1, scores.shape[1]))
    np.add.at(sums, which, scores * weights[:, None])
    return sums


def joined_episodes(demonstrations: Sequence[Demonstrations]) -> Floats:
    """A number for each episode; those of different MDPs differ."""
    which = [np.unique(seen.episodes, return_inverse=True)[1] for seen in demonstrations]
    starts = np.cumsum([0, *(each.max() + 1 for each in which)])
    return np.concatenate([each + start for each, start in zip(which, starts, strict=False)])


def complement(directions: Floats, size: int) -> Floats:
    """An orthonormal basis of all that is orthogonal to some directions, `[size, r]`."""
    if directions.shape[1] == 0:
        return np.eye(size)
    whole, _ = np.linalg.qr(directions, mode="complete")
    return whole[:, directions.shape[1] :]


def _inverse(matrix: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(matrix), np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
