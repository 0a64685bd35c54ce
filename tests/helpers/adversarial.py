"""Adversarial rows against extended precision: `make adversarial` checks a million.

Rows have 1 to 100,000 actions, with values and parameters anywhere in the normal numbers of their
dtype: ties and near ties, clusters, one best among ties, gaps over all decades, offsets, illegal
actions filled with -1e20, -1e30 or the lowest number; and a quarter of the batches have no extreme
numbers at all. A third of the batches have a prior, of weights from 1e-6 on. In a third of the
batches one parameter is for all rows, and a few rows of each batch are computed alone too: small
batches with one parameter take another path. The reference is NumPy's `longdouble` of 64 bits and
15 for the exponent, in which no such row overflows or underflows. Each row is checked in every
library, compiled where JAX is, with its gradients:

- mellowmax, within 8 eps of the range and of its own size;
- the policy's expected value, within 64 eps of the range;
- the log-policy, the temperature and mellowmax's derivative with respect to omega, as relative
  numbers, the temperature as far as rounding mellowmax lets it be known;
- a gradient of the policy and of the log-policy with respect to the values, relative to its largest
  term, where the library differentiates.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time

import numpy as np

import mellowmax as mm

EXTENDED = np.longdouble
ACTIONS = (1, 2, 3, 4, 9, 17, 64, 257, 1000, 30_000, 100_000)
MOST_ROWS, ELEMENTS = 25_000, 200_000
"""The number of rows of a batch; batches of many actions have fewer."""
ALONE = 4
"""Rows of a batch that are computed alone too."""
LOOSE = {"float32": 2e-3, "float64": 1e-6}
"""What a relative number may be off by: a root is as good as the rounding of its row allows."""


def ordinary_rows(rng, n, count, dtype):
    """Rows without extreme numbers, which JAX computes in another way if all of a chunk are so."""
    exponents = rng.uniform(-12, np.log10(2.0**16), size=(count, 1))
    q = np.clip(rng.normal(size=(count, n)), -1, 1) * 10**exponents
    ties = rng.random((count, n)) < 0.2
    q = np.where(ties, q[:, :1], q) * (rng.random((count, 1)) > 0.02)
    omega = 10.0 ** rng.uniform(-12, np.log10(1024), size=count) * rng.choice([-1, 1], size=count)
    return q.astype(dtype), omega.astype(dtype)


def rows(rng, n, count, dtype):
    """Rows of `n` actions and their omega, all normal numbers (or 0) of the dtype."""
    info = np.finfo(dtype)
    low, high = float(np.log2(info.tiny)), float(np.log2(info.max)) - 1e-3

    def anywhere(*shape, low=low, high=high):
        return 2.0 ** rng.uniform(low, high, size=shape) * rng.choice([-1, 1], size=shape)

    def moderate(*shape):
        return rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, size=(*shape[:-1], 1))

    part = -(-count // 10)
    unit = np.abs(anywhere(part, 1, low=low + 60, high=high - 8))
    kinds = [
        moderate(part, n),
        anywhere(part, n),
        unit * rng.normal(size=(part, n)),
        unit * (1 + info.eps * rng.integers(0, 4, size=(part, n))),
        unit * rng.integers(0, 3, size=(part, n)),
        unit * (rng.integers(0, 3, size=(part, n)) + info.eps * rng.integers(0, 4, size=(part, n))),
        np.where(np.arange(n) == 0, unit, 0.0),
        unit * 2.0 ** rng.uniform(-50, 0, size=(part, n)),
        np.where(np.arange(n) == 0, 0.0, -unit * 2.0 ** rng.uniform(-40, 2, size=(part, n))),
        np.where(rng.random((part, 1)) < 0.5, 0.0, moderate(part, n)),
    ]
    q = np.concatenate(kinds)[rng.permutation(10 * part)[:count]]
    fills = np.array([-1e20, -1e30, float(info.min), -1e9])
    fill = np.where(rng.random(count) < 0.7, rng.choice(fills, count), -np.abs(anywhere(count)))
    filled = (rng.random((count, n)) < 0.4) & (rng.random((count, 1)) < 0.4)
    q = np.where(filled, fill[:, None], q)
    with np.errstate(over="ignore", under="ignore"):
        q = np.clip(q, float(info.min), float(info.max)).astype(dtype)
        q[np.abs(q) < info.tiny] = 0
        exact = q.astype(EXTENDED)
        one = rng.integers(0, n, size=count)  # an omega at which some gap is of order 1
        gap = np.abs(exact[np.arange(count), one] - exact[:, 0])
        about = 2.0 ** rng.uniform(-9, 9, size=count) / np.where(gap == 0, 1, gap)
        about = about * rng.choice([-1, 1], size=count)
        size = np.where(rng.random(count) < 0.5, about, anywhere(count))
        size = np.where(rng.random(count) < 0.2, moderate(count, 1)[:, 0], size)
        size = np.clip(np.abs(size), info.tiny, info.max / 2) * np.sign(size)
        omega = size.astype(dtype)
    return q, omega


class Exact:
    """What is true of rows under a prior `[rows, actions]`, in extended precision."""

    def __init__(self, q, omega, prior=None):
        weight = np.ones_like(q, dtype=EXTENDED) if prior is None else prior.astype(EXTENDED)
        self.has_prior = prior is not None
        self.prior = weight / np.sum(weight, axis=1, keepdims=True)
        self.q, self.omega = q.astype(EXTENDED), omega.astype(EXTENDED)[:, None]
        self.sign, k = np.sign(self.omega), np.abs(self.omega)
        turned = self.q * self.sign
        self.top = np.max(turned, axis=1, keepdims=True)
        g = self.gap = self.top - turned
        self.range = np.max(g, axis=1, keepdims=True)
        weights = np.exp(-k * g)
        below = self._mean(np.expm1(-k * g))
        self.exponent = np.where(below > -0.5, -np.log1p(below), -np.log(self._mean(weights)))
        self.average = self.exponent / k
        self.value = self.sign * (self.top - self.average)
        self.weights = self.prior * weights / self._mean(weights)
        self.ratio = self._ratio(k)
        self.log_policy = -(self.ratio * k) * g
        self.log_policy -= np.log(self._mean(np.exp(self.log_policy)))
        self.log_policy += np.log(self.prior)
        self.policy = np.exp(self.log_policy)
        self.b = self.ratio * self.omega
        deviation = g - self.average
        self.variance = np.sum(self.policy * deviation**2, axis=1, keepdims=True)
        self.by_omega = self._by_omega(k)
        self.b_by_q = self._b_by_q(k, deviation)

    def _mean(self, x):
        return np.sum(self.prior * x, axis=1, keepdims=True)

    def _cumulants(self):
        scale = np.where(self.range == 0, 1, self.range)
        c = self.gap / scale
        c = c - self._mean(c)
        second, third, fourth = (self._mean(c**i) for i in (2, 3, 4))
        second = np.where(second == 0, 1, second)
        return second, third, fourth - 3 * second**2

    def _ratio(self, k):
        """`b / omega`: the series of a narrow row, or by halving."""
        width = k * self.range
        second, third, fourth = self._cumulants()
        skew, kurtosis = third / second, fourth / second
        narrow = width < 1e-4
        small = np.where(narrow, width, 0)
        series = 0.5 - small * skew / 24 + small**2 * (kurtosis - skew**2) / 48
        low = np.log(np.minimum(k, 1 / np.where(self.range == 0, 1, self.range))) - 12
        high = np.log(k)
        for _ in range(84):
            middle = (low + high) / 2
            weight = self.prior * np.exp(-np.exp(middle) * self.gap)
            mean = np.sum(weight * self.gap, axis=1, keepdims=True) / np.sum(
                weight, axis=1, keepdims=True
            )
            above = mean > self.average
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(narrow, series, np.exp((low + high) / 2) / k)

    def _by_omega(self, k):
        width = k * self.range
        narrow = width < 1e-4
        second, third, fourth = self._cumulants()
        second = np.where(self.range == 0, 0, second)
        small = np.where(narrow, width, 0)
        series = self.range**2 * (second / 2 - small * third / 3 + small**2 * fourth / 8)
        boltzmann = np.sum(self.weights * self.gap, axis=1, keepdims=True)
        return np.where(narrow, series, (self.average - boltzmann) / k)

    def _b_by_q(self, k, deviation):
        apart, t = -(1 - self.ratio) * k * self.gap, self.ratio * k
        total = self._mean(np.exp(-k * self.gap))
        moved = self._mean(-np.exp(-t * self.gap) * np.expm1(apart)) / total
        change = self.policy * (np.expm1(apart + np.log1p(moved)) + t * deviation)
        direct = change / np.where(self.variance == 0, 1, self.variance)
        scale = np.where(self.range == 0, 1, self.range)
        c = (self.gap - self._mean(self.gap)) / scale
        second, third, _ = self._cumulants()
        series = k**2 / 24 * (3 * (c**2 / second - 1) - 2 * third * c / second**2) * self.prior
        by_q = np.where(k * self.range < 1e-4, series, direct)
        return np.where(self.range == 0, 0, by_q)

    def b_rounds(self, eps):
        """What `b` moves by if the average gap does by 4 eps; narrow rows have a series instead."""
        wide = np.abs(self.omega) * self.range > 4 * eps**0.25 / 2
        moves = 4 * eps * self.average / np.where(self.variance == 0, np.inf, self.variance)
        return np.where(wide, moves, 0)

    def pulled_back(self, cotangent, policy, info):
        """The gradient of `sum(cotangent * policy)`, and its largest term.

        A log-probability that is cut at the lowest number does not move, and some times the
        smallest number is lost from the products with each probability. In units of the nearest far
        action's distance some times it is lost from each product with a gap, and from what an
        action adds to the derivative of the inverse temperature.
        """
        eps, tiny, lowest = (EXTENDED(x) for x in (info.eps, info.tiny, info.min))
        c = cotangent.astype(EXTENDED)
        if policy:  # a constant changes nothing
            c = c - np.take_along_axis(c, np.argmin(self.gap, axis=1)[:, None], axis=1)
        log_c = self.policy * c if policy else np.where(self.log_policy < lowest, 0, c)
        total = np.sum(log_c, axis=1, keepdims=True)
        direct = self.b * (log_c - self.policy * total)
        # moving b moves each log-probability by the gap's distance from its mean
        by_b = -self.sign * np.sum(log_c * (self.gap - self.average), axis=1, keepdims=True)
        terms = np.sum(np.abs(log_c) * np.abs(self.gap - self.average), axis=1, keepdims=True)
        through = by_b * self.b_by_q
        size = np.max(np.abs(direct) + terms * np.abs(self.b_by_q), axis=1, keepdims=True)
        underflown = np.minimum(self.policy, 64 * tiny) if policy else 0 * self.policy
        underflown = underflown * np.max(np.abs(c), axis=1, keepdims=True)
        small = underflown * self.gap
        far = np.where(np.abs(self.omega) * self.gap > eps**-1.5, self.gap, np.inf)
        nearest = np.min(far, axis=1, keepdims=True)
        beside = tiny * np.where(nearest < np.inf, nearest, 0)
        term = np.abs(log_c * (self.gap - self.average))
        small = small + np.minimum(term, 8 * beside)
        lost = np.sum(small, axis=1, keepdims=True) * np.abs(self.b_by_q)
        lost = lost + tiny * term.shape[1] * terms / nearest
        lost = lost + np.abs(self.b) * underflown
        # What cancels between the cotangents is there when it is computed, with its rounding.
        weight = self.policy if policy else 1
        distance = np.sum(weight * np.abs(self.gap - self.average), axis=1, keepdims=True)
        moved = np.abs(self.b) * weight + distance * np.abs(self.b_by_q)
        lost = lost + 8 * eps * np.max(np.abs(cotangent), axis=1, keepdims=True) * moved
        return direct + through, size, lost


def wrong(found, exact, dtype, cotangent):
    """Names of checks, each with the rows that fail it."""
    info = np.finfo(dtype)
    eps, tiny, loose = EXTENDED(info.eps), EXTENDED(info.tiny), LOOSE[dtype]
    highest = EXTENDED(info.max)
    column = {name: np.asarray(x).astype(EXTENDED) for name, x in found.items()}
    column = {k: x if x.ndim == 2 else x[:, None] for k, x in column.items()}

    def any_(bad):
        return np.any(bad, axis=1)

    def off(name, true, scale, tolerance=loose, few=4):
        """Wrong by more than the tolerance times the scale, where the truth is a number."""
        true, x = np.clip(true, -highest, highest), column[name]
        x = np.where(np.isinf(x) & (np.abs(true) > highest / 2), np.sign(x) * highest, x)
        return any_(~(np.abs(x - true) <= tolerance * np.minimum(scale, highest) + few * tiny))

    # A prior is rounded too, and what its rounding moves is told by how far it lets b be known.
    unknown = exact.b_rounds(eps) if exact.has_prior else 0 * exact.b
    moves = unknown * np.where(exact.policy > 0, exact.gap, 0) / loose
    unknown = unknown / np.where(exact.b == 0, 1, np.abs(exact.b)) / loose
    policy = column["policy"]
    error = np.abs(np.sum(policy * (exact.sign * exact.gap - exact.sign * exact.average), 1))
    checks = {
        "value": off("value", exact.value, exact.range + np.abs(exact.value), 8 * eps),
        "policy is a distribution": any_(~(policy >= 0))
        | ~(np.abs(np.sum(policy, 1) - 1) < 64 * eps),
        "expectation": ~(error <= 64 * eps * exact.range[:, 0] + 8 * tiny),
        "log-policy": off("log_policy", exact.log_policy, 1 + np.abs(exact.log_policy) + moves),
        "temperature": off("temperature", exact.b, np.abs(exact.b) + exact.b_rounds(eps) / loose),
    }
    if "by_omega" in column:
        checks["by omega"] = off("by_omega", exact.by_omega, exact.by_omega)
    for name, of_policy in (("gradient", True), ("log_gradient", False)):
        if name in column:
            true, size, lost = exact.pulled_back(cotangent, of_policy, info)
            overflows = any_(size > highest)  # then it is no number
            few = 32 * (1 + true.shape[1])  # XLA takes for 0 what is smaller, of each term
            size = size * (1 + unknown) + lost / loose
            checks[name] = off(name, true, size, few=few) & ~overflows
    return checks


def _with_numpy(q, omega, cotangent, prior=None):
    return {
        "value": mm.mellowmax(q, omega, prior=prior),
        "policy": mm.mellowmax_policy(q, omega, prior=prior),
        "log_policy": mm.mellowmax_log_policy(q, omega, prior=prior),
        "temperature": mm.mellowmax_temperature(q, omega, prior=prior),
        "by_omega": mm.mellowmax_parameter_gradient(q, omega, prior=prior),
    }


def _with_torch(q, omega, cotangent, prior=None):
    import torch

    q, cotangent = (torch.asarray(np.array(x)) for x in (q, cotangent))
    omega = torch.asarray(omega, dtype=q.dtype) + 0  # a copy
    prior = None if prior is None else torch.asarray(np.array(prior))
    found = _with_numpy(q, omega, cotangent, prior)
    q.requires_grad_()
    omega.requires_grad_()
    for name, function in (("", mm.mellowmax_policy), ("log_", mm.mellowmax_log_policy)):
        policy = function(q, omega, prior=prior)
        (found[name + "gradient"],) = torch.autograd.grad(policy, q, cotangent)
    value = mm.mellowmax(q, omega, prior=prior).sum()
    (found["by_omega"],) = torch.autograd.grad(value, omega)
    return {name: x.numpy() for name, x in found.items()}


def _with_jax(compiler_options):
    import jax

    @functools.partial(jax.jit, compiler_options=compiler_options)
    def program(q, omega, cotangent, prior=None):
        found = _with_numpy(q, omega, cotangent, prior)
        for name, function in (("", mm.mellowmax_policy), ("log_", mm.mellowmax_log_policy)):
            pullback = jax.vjp(lambda q, f=function: f(q, omega, prior=prior), q)[1]
            (found[name + "gradient"],) = pullback(cotangent)
        return found

    return lambda *arrays: {name: np.asarray(x) for name, x in program(*arrays).items()}


def libraries(compiler_options=None):
    """What is installed, each as a function of rows; JAX compiles with these options."""
    found = {"numpy": _with_numpy}
    try:
        import torch

        torch.set_num_threads(1)  # more wait for each other on a busy machine
        found["torch"] = _with_torch
    except ImportError:
        pass
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        found["jax"] = _with_jax(compiler_options)
    except ImportError:
        pass
    return found


def draw_prior(rng, q):
    """A prior for each row: nearly equal weights, very unequal ones, or whole numbers."""
    count, n = q.shape
    kinds = [
        rng.dirichlet(np.ones(n), size=count) + 1e-3 / n,
        10.0 ** rng.uniform(-6, 0, size=(count, n)),
        rng.integers(1, 5, size=(count, n)).astype(float),
    ]
    return kinds[rng.integers(len(kinds))].astype(q.dtype)


def draw_batch(rng, n, dtype):
    """Rows of `n` actions, omegas, cotangents and priors.

    In a third of the batches all omegas are one, and a third of the batches have a prior.
    """
    draw = ordinary_rows if rng.random() < 0.25 else rows
    q, omega = draw(rng, n, max(2, min(MOST_ROWS, ELEMENTS // n)), dtype)
    if rng.random() < 1 / 3:
        omega[:] = omega[0]
    prior = draw_prior(rng, q) if rng.random() < 1 / 3 else None
    return q, omega, rng.normal(size=q.shape).astype(dtype), prior


def together(library, compute, q, omega, cotangent, prior=None):
    """What a library finds for a batch; one omega for all rows is a number.

    But not for JAX, which would compile another program.
    """
    one = np.all(omega == omega[0]) and library != "jax"
    found = compute(q, float(omega[0]) if one else omega, cotangent, prior)
    if one and library == "torch":
        del found["by_omega"]  # it is that of the sum over rows
    return found


def alone(library, compute, q, omega, cotangent, prior=None):
    """What it finds for each row by itself."""
    omegas = omega[:, None] if library == "jax" else omega.tolist()
    priors = [None] * len(q) if prior is None else prior
    each = [
        compute(q[i : i + 1], omegas[i], cotangent[i : i + 1], priors[i]) for i in range(len(q))
    ]
    return {name: np.concatenate([np.atleast_1d(x[name]) for x in each]) for name in each[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no batch after them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print this many rows of each failure")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    each, counts, checked = libraries(), {}, dict.fromkeys(ACTIONS, 0)
    start = time.perf_counter()
    for n, dtype in itertools.cycle(itertools.product(ACTIONS, ("float32", "float64"))):
        late = time.perf_counter() - start > options.seconds
        if late or sum(checked.values()) >= options.rows:
            break
        with np.errstate(all="ignore"):
            batch = draw_batch(rng, n, dtype)
            few = [None if x is None else x[:ALONE] for x in batch]
            for way, rows_ in ((together, batch), (alone, few)):
                exact = Exact(rows_[0], rows_[1], rows_[3])
                q, omega, cotangent, _ = rows_
                for library, compute in each.items():
                    found = way(library, compute, *rows_)
                    for check, bad in wrong(found, exact, dtype, cotangent).items():
                        key = library, way.__name__, dtype, n, check
                        counts[key] = counts.get(key, 0) + int(np.sum(bad))
                        for i in np.flatnonzero(bad)[: options.show]:
                            print(key, repr(q[i]), repr(omega[i]))
                            for name, x in found.items():
                                print("   ", name, x[i])
                            print("    exact", exact.value[i], exact.policy[i], exact.b[i])
        checked[n] += len(batch[0])
    print(
        f"{sum(checked.values()):,} rows in {', '.join(each)}: {time.perf_counter() - start:.0f} s"
    )
    print("rows of each number of actions:", checked)
    for key, failures in counts.items():
        if failures:
            print(*key, failures)
    print("wrong:", sum(counts.values()))
    sys.exit(1 if any(counts.values()) else 0)


if __name__ == "__main__":
    main()
