"""The definitions of the paper, evaluated with mpmath at 50 digits and more: slow, and right."""

from __future__ import annotations

import mpmath
import numpy as np

DIGITS = 50


def exact(values):
    """Floats as mpmath numbers, without rounding."""
    return [mpmath.mpf(float(v)) for v in np.asarray(values).ravel()]


def _digits(q, parameter):
    """Enough digits to leave 50 after what a row of tiny, huge or far-off values cancels."""
    finite = [v for v in q if mpmath.isfinite(v)]
    extent = max(finite) - min(finite)
    width = abs(parameter) * extent
    if width == 0 or mpmath.isinf(width):
        return DIGITS
    offset = max(abs(v) for v in finite)
    return DIGITS + 4 * abs(int(mpmath.log10(width))) + abs(int(mpmath.log10(offset / extent)))


def _weight(exponent):
    """exp, or 0 where it is so small that no sum at these digits shows it: mpmath takes long."""
    return mpmath.exp(exponent) if exponent > -100_000 else mpmath.mpf(0)


def mellowmax(q, omega):
    q, omega = exact(q), mpmath.mpf(float(omega))
    if mpmath.isinf(omega):
        return max(q) if omega > 0 else min(q)
    with mpmath.workdps(_digits(q, omega)):
        if omega == 0:
            return mpmath.fsum(q) / len(q)
        top = max(q) if omega > 0 else min(q)
        total = mpmath.fsum(_weight(omega * (v - top)) for v in q)
        return top + mpmath.log(total / len(q)) / omega


def boltzmann_policy(q, beta):
    q, beta = exact(q), mpmath.mpf(beta)
    with mpmath.workdps(_digits(q, beta) if mpmath.isfinite(beta) else DIGITS):
        top = max(q) if beta >= 0 else min(q)
        if mpmath.isinf(beta):
            weights = [mpmath.mpf(v == top) for v in q]
        else:
            weights = [mpmath.exp(beta * (v - top)) for v in q]
        total = mpmath.fsum(weights)
        return [w / total for w in weights]


def boltzmann(q, beta):
    policy = boltzmann_policy(q, float(beta))
    return mpmath.fsum(p * v for p, v in zip(policy, exact(q), strict=True) if p != 0)


def excess(q, omega, b):
    """E_pi[q] - mellowmax at the inverse temperature b: rises with b, and is 0 at the root."""
    values, b = exact(q), mpmath.mpf(b)
    with mpmath.workdps(_digits(values, mpmath.mpf(float(omega)))):
        mm = mellowmax(q, omega)
        top = max(values) if b >= 0 else min(values)
        weights = [_weight(b * (v - top)) for v in values]
        total = mpmath.fsum(w * (v - mm) for w, v in zip(weights, values, strict=True))
        return total / mpmath.fsum(weights)


def value_range(q):
    values = exact(q)
    return max(values) - min(values)


def relative_error_below(q, omega, b, tolerance):
    """Whether the exact root is within a relative tolerance of b: the excess changes sign there."""
    b = mpmath.mpf(float(b))
    low, high = b * (1 - tolerance), b * (1 + tolerance)
    signs = [mpmath.sign(excess(q, omega, x)) for x in (low, high)]
    return signs[0] != signs[1] or 0 in signs
