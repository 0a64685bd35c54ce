"""The four properties that the paper asks of a softmax (section 1), each put to a search.

1. It has settings that approximate the maximum as closely as wanted.
2. It is a non-expansion: `|value(x) - value(y)| <= max|x - y|`.
3. It is differentiable.
4. Its policy starves no action.

A fifth tells the two kinds of softmax apart: does its policy attain its value,
`sum(policy * q) == value`? That of a regularised softmax does not, and is none the worse for it.

Four more are asked of a policy as a response to action values, where they are those of a player in
a game. The first two are axioms of a regular quantal response function (Goeree, Holt and Palfrey,
2005); logit has the others too, and with the last one a zero-sum game has one equilibrium.

6. It is responsive: an action that gets better is not taken less.
7. It is monotonic: of two actions the better one is not taken less.
8. An action that gets better takes from all others: none of them is taken more.
9. It is aligned, a monotone operator: `(policy(x) - policy(y)) @ (x - y) >= 0`.

A search cannot prove a property, only break it: `probe` looks for the worst case of each, says how
bad it is, and shows it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ._common import checks
from ._typing import Floats
from .softmax import Softmax

__all__ = ["Finding", "Properties", "probe"]

_BATCH = 2048


@dataclasses.dataclass(frozen=True)
class Finding:
    """What the search for a violation of one property came to."""

    holds: bool
    """False if the witness violates the property."""
    worst: float
    """The number that decides, at the worst case found."""
    witness: tuple[Floats, ...]
    """The worst case: one row of action values, or two for non-expansion."""
    text: str
    """What was found, in words."""


@dataclasses.dataclass(frozen=True)
class Properties:
    """The findings for one softmax; printing it shows them as a table."""

    softmax: Softmax
    approximates_max: Finding
    non_expansion: Finding
    differentiable: Finding
    starves_no_action: Finding
    attains: Finding
    responsive: Finding
    monotonic: Finding
    takes_from_others: Finding
    aligned: Finding

    def __str__(self) -> str:
        lines = [str(self.softmax)]
        for field in dataclasses.fields(self)[1:]:
            finding = getattr(self, field.name)
            name, holds = field.name.replace("_", "-"), "yes" if finding.holds else "no"
            lines.append(f"  {name:<18} {holds:<4} {finding.text}")
        return "\n".join(lines)


def probe(
    softmax: Softmax, *, actions: int = 3, scale: float = 1.0, rounds: int = 30, seed: int = 0
) -> Properties:
    """Search for a violation of each of the paper's four properties, and of five others.

    Args:
        softmax: any pair of an operator and its policy.
        actions: how many actions a row has, at least 2.
        scale: the typical size of action values; the search covers a thousandth to a thousand
            times it.
        rounds: how long to search: each round evaluates some thousands of rows.
        seed: of the search's own random numbers.

    Returns:
        A `Properties` with one `Finding` for each, and in it the worst case found.

    Raises:
        ValueError: if `actions`, `scale` or `rounds` is out of range.

    Examples:
        >>> from mellowmax import Boltzmann
        >>> finding = probe(Boltzmann(16.55)).non_expansion
        >>> x, y = finding.witness
        >>> value = Boltzmann(16.55).value
        >>> bool(abs(value(x) - value(y)) > 1.1 * np.max(np.abs(x - y)))
        True
    """
    checks.instance("softmax", softmax, Softmax, "a Softmax such as Mellowmax(5.0)")
    actions, rounds = checks.whole("actions", actions, 2), checks.whole("rounds", rounds, 1)
    if checks.real("scale", scale) <= 0:
        raise ValueError(f"`scale` must be positive, got {scale}")
    rng = checks.generator("seed", seed)
    return Properties(
        softmax,
        _approximates_max(softmax, _rows(rng, actions, scale)),
        _non_expansion(softmax, rng, actions, scale, rounds),
        _differentiable(softmax, rng, actions, scale, rounds),
        _starves_no_action(softmax, rng, actions, scale, rounds),
        _attains(softmax, _rows(rng, actions, scale)),
        *_of_one_action(softmax, rng, actions, scale),
        _aligned(softmax, rng, actions, scale, rounds),
    )


def _rows(rng: np.random.Generator, actions: int, scale: float) -> Floats:
    """Rows of every size from a thousandth to a thousand times the scale."""
    sizes = scale * 10 ** rng.uniform(-3, 3, size=(_BATCH, 1))
    return np.asarray(sizes * rng.normal(size=(_BATCH, actions)))


def _approximates_max(softmax: Softmax, q: Floats) -> Finding:
    """Over the settings of its parameter, how near the value comes to the maximum of every row."""
    best, without = Finding(False, np.inf, (q[0],), "no valid setting"), ""
    for setting in _settings(softmax):
        try:
            with np.errstate(all="ignore"):
                value = setting.value(q)
        except ArithmeticError as error:  # a division by a parameter that is 0, as a rule
            without = without or f"; no value under {setting}: {error}"
            continue
        if not np.isfinite(value).all():
            without = without or f"; no finite value under {setting}"
            continue
        short = (np.max(q, axis=-1) - value) / np.ptp(q, axis=-1)
        row = int(np.argmax(np.abs(short)))
        distance = float(abs(short[row]))
        if distance < best.worst:
            text = f"nearest is {setting}, off by {distance:.2g} of the range"
            best = Finding(distance <= 1e-6, distance, (q[row],), text)
    return dataclasses.replace(best, text=best.text + without)


def _settings(softmax: Softmax) -> list[Softmax]:
    """The softmax itself, and with its parameter at powers of ten, where it has just one.

    Fields with a default, such as a prior, stay as they are.
    """
    fields: Any = dataclasses.fields(softmax) if dataclasses.is_dataclass(softmax) else ()
    needed = [field for field in fields if field.default is dataclasses.MISSING]
    parameters = needed or fields
    settings = [softmax]
    if len(parameters) == 1:
        for size in (0.0, *10.0 ** np.arange(-12, 13)):
            for parameter in (float(size), -float(size)):
                try:
                    changed: Any = dataclasses.replace(softmax, **{parameters[0].name: parameter})  # type: ignore[type-var]
                except ValueError:  # not a setting it has
                    continue
                settings.append(changed)
    return settings


def _non_expansion(
    softmax: Softmax, rng: np.random.Generator, actions: int, scale: float, rounds: int
) -> Finding:
    """The pair of rows that it moves apart most: random pairs, and the best ones varied."""
    x, y = _pairs(rng, actions, scale)
    ratio = _expansion(softmax, x, y)
    for _ in range(rounds):
        x, y = _varied(rng, x, y, ratio)
        ratio = _expansion(softmax, x, y)
    worst = int(np.argmax(ratio))
    text = f"largest expansion {ratio[worst]:.6g}, x={_text(x[worst])} y={_text(y[worst])}"
    return Finding(bool(ratio[worst] <= 1 + 1e-9), float(ratio[worst]), (x[worst], y[worst]), text)


def _pairs(rng: np.random.Generator, actions: int, scale: float) -> tuple[Floats, Floats]:
    """Rows of every size, and others not far from them."""
    x = _rows(rng, actions, scale)
    return x, x + np.ptp(x, axis=-1, keepdims=True) * rng.uniform(-1, 1, size=x.shape)


def _varied(rng: np.random.Generator, x: Floats, y: Floats, score: Floats) -> tuple[Floats, Floats]:
    """The pairs with the highest scores, as they are and with changes of every size."""
    best = np.repeat(np.argsort(score)[-_BATCH // 8 :], 8)
    step = np.max(np.abs(x[best]), axis=-1, keepdims=True)
    step = step * 10 ** rng.uniform(-4, 0, size=step.shape)
    step[::8] = 0  # the best stay as they are
    return x[best] + step * rng.normal(size=x.shape), y[best] + step * rng.normal(size=y.shape)


def _expansion(softmax: Softmax, x: Floats, y: Floats) -> Floats:
    """`|value(x) - value(y)| / max|x - y|`; 0 for pairs so close that rounding would decide."""
    distance = np.max(np.abs(x - y), axis=-1)
    telling = distance > 1e-3 * np.max(np.abs(x), axis=-1)
    moved = np.abs(softmax.value(x) - softmax.value(y))
    return np.where(telling, moved / np.where(telling, distance, 1.0), 0.0)


def _differentiable(
    softmax: Softmax, rng: np.random.Generator, actions: int, scale: float, rounds: int
) -> Finding:
    """The largest jump of the slope on random lines, each narrowed down to its largest change."""
    best = Finding(True, 0.0, (np.zeros(actions),), "")
    for _ in range(max(1, rounds // 10)):
        x = scale * rng.normal(size=(_BATCH, actions))
        direction = rng.uniform(-1, 1, size=x.shape)
        h = scale
        while h > 1e-8 * scale:
            nearby = np.stack([x - h / 2 * direction, x, x + h / 2 * direction])
            h = h / 2
            change = _slope_change(softmax, nearby, direction, h)
            x = np.take_along_axis(nearby, np.argmax(change, axis=0)[None, :, None], axis=0)[0]
        jump = _slope_change(softmax, x, direction, h)
        row = int(np.argmax(jump))
        if jump[row] >= best.worst:
            text = f"largest jump of the slope {jump[row]:.2g}, at q={_text(x[row])}"
            best = Finding(bool(jump[row] <= 1e-3), float(jump[row]), (x[row],), text)
    return best


def _slope_change(softmax: Softmax, x: Floats, direction: Floats, h: float) -> Floats:
    """By how much the slope along a direction differs after and before x."""
    after, here, before = (softmax.value(x + s * h * direction) for s in (1, 0, -1))
    return np.asarray(np.abs((after - here) - (here - before)) / h)


def _starves_no_action(
    softmax: Softmax, rng: np.random.Generator, actions: int, scale: float, rounds: int
) -> Finding:
    """The smallest log-probability of an action: minus infinity if it is never taken."""
    best = Finding(True, np.inf, (np.zeros(actions),), "")
    for _ in range(max(1, rounds // 10)):
        q = _rows(rng, actions, scale)
        least = np.min(softmax.log_policy(q), axis=-1)
        row = int(np.argmin(least))
        if least[row] < best.worst:
            text = f"smallest log-probability {least[row]:.4g}, at q={_text(q[row])}"
            best = Finding(bool(np.isfinite(least[row])), float(least[row]), (q[row],), text)
    return best


def _attains(softmax: Softmax, q: Floats) -> Finding:
    """How far the value is from what the policy earns, at most, beyond rounding.

    Rounding grows with the row: a difference tells if it is more than a billionth of the row's
    largest number.
    """
    policy = softmax.policy(q)
    apart = np.abs(softmax.value(q) - np.sum(policy * q, axis=-1))
    telling = apart > 1e-9 * np.max(np.abs(q), axis=-1)
    if not telling.any():
        row = int(np.argmax(apart))
        return Finding(True, float(apart[row]), (q[row],), "the policy earns the value")
    row = int(np.argmax(np.where(telling, apart, 0.0)))
    text = f"value and earnings differ by up to {apart[row]:.4g}, at q={_text(q[row])}"
    return Finding(False, float(apart[row]), (q[row],), text)


def _of_one_action(
    softmax: Softmax, rng: np.random.Generator, actions: int, scale: float
) -> tuple[Finding, Finding, Finding]:
    """What the policy does where one action gets better, and with two actions of one row."""
    q = _rows(rng, actions, scale)
    raised = rng.integers(actions, size=_BATCH)
    better = q.copy()
    better[np.arange(_BATCH), raised] += np.ptp(q, axis=-1) * 10 ** rng.uniform(-3, 0, size=_BATCH)
    before, after = softmax.policy(q), softmax.policy(better)
    own = np.eye(actions, dtype=bool)[raised]
    falls = np.where(own, before - after, -1.0).max(-1)
    rises = np.where(own, -1.0, after - before).max(-1)
    order = np.argsort(q, axis=-1)
    wrong = -np.diff(np.take_along_axis(before, order, -1), axis=-1).min(-1)
    pairs = (q, better)
    return (
        _largest(falls, pairs, "an action that gets better loses up to {:.2g}"),
        _largest(wrong, (q,), "the better of two actions is taken less by up to {:.2g}"),
        _largest(rises, pairs, "an action gains up to {:.2g} when another gets better"),
    )


def _largest(excess: Floats, rows: tuple[Floats, ...], words: str) -> Finding:
    """The finding from how far each row is beyond what is allowed, in probability."""
    worst = int(np.argmax(excess))
    found = float(max(excess[worst], 0.0))
    witness = tuple(one[worst] for one in rows)
    if found <= 1e-12:
        return Finding(True, found, witness, "no case against it was found")
    at = " y=".join(map(_text, witness))
    return Finding(False, found, witness, f"{words.format(found)}, x={at}")


def _aligned(
    softmax: Softmax, rng: np.random.Generator, actions: int, scale: float, rounds: int
) -> Finding:
    """The pair of rows whose policies move most against the move of the values."""
    best = Finding(True, np.inf, (np.zeros(actions),) * 2, "")
    for first in range(0, rounds, 10):  # anew: a search can end where policies hardly move
        x, y = _pairs(rng, actions, scale)
        for _ in range(first, min(first + 10, rounds)):
            cosine = _cosine(softmax, x, y)
            worst = int(np.argmin(cosine))
            if cosine[worst] < best.worst:
                holds, text = bool(cosine[worst] >= -1e-9), f"smallest cosine {cosine[worst]:.2g}"
                text += "" if holds else f", x={_text(x[worst])} y={_text(y[worst])}"
                best = Finding(holds, float(cosine[worst]), (x[worst], y[worst]), text)
            x, y = _varied(rng, x, y, -cosine)
    return best


def _cosine(softmax: Softmax, x: Floats, y: Floats) -> Floats:
    """The cosine between the changes of values and policy; 1 where rounding would decide."""
    q, policy = x - y, softmax.policy(x) - softmax.policy(y)
    q = q - q.mean(-1, keepdims=True)  # no product changes: the policies' changes sum to 0
    lengths = np.linalg.norm(q, axis=-1) * np.linalg.norm(policy, axis=-1)
    telling = np.max(np.abs(policy), axis=-1) > 1e-6
    return np.where(telling, (q * policy).sum(-1) / np.where(telling, lengths, 1.0), 1.0)


def _text(row: Floats) -> str:
    return np.array2string(row, precision=4, separator=", ")
