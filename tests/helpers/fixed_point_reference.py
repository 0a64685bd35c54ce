"""Sweeps, fixed points and MDPs from the formulas alone, to hold searches to."""

from __future__ import annotations

import itertools

import numpy as np

from mellowmax.mdp import MDP, random_mdp, two_state

FITTED = ((0.12211, 0.65867), (0.03284, 0.99075))
PRINTED = ((0.122, 0.66), (0.033, 0.99))


def sweep(mdp, softmax, q):
    """One synchronous sweep, in plain Python."""
    transitions, rewards = mdp.to_numpy()
    values = [float(softmax.value(row)) for row in np.asarray(q)]
    return np.array(
        [
            [
                r + mdp.discount * sum(p * v for p, v in zip(row, values, strict=True))
                for r, row in zip(rewards[s], transitions[s], strict=True)
            ]
            for s in range(mdp.n_states)
        ]
    )


def sweeps(mdp, softmax, q, count):
    """The same, many times and vectorised, `[..., S, A]`."""
    transitions, rewards = mdp.to_numpy()
    for _ in range(count):
        q = rewards + mdp.discount * np.tensordot(softmax.value(q), transitions, (-1, -1))
    return q


def scalar_equation(beta, labels, exp):
    """`boltz(q(v)) - v` for figure 1 as a function of `v`, and its derivative, from the formula."""

    def equation(v):
        q = [r + 0.98 * p * v for r, p in labels]
        weights = [exp(beta * (x - q[0])) for x in q]
        policy = [w / sum(weights) for w in weights]
        value = sum(w * x for w, x in zip(policy, q, strict=True))
        slopes = [w * (1 + beta * (x - value)) for w, x in zip(policy, q, strict=True)]
        return value - v, sum(0.98 * p * w for (_, p), w in zip(labels, slopes, strict=True)) - 1

    return equation


def restarts(mdp, beta, count, rng):
    """What Newton's method finds from many starts, from Boltzmann's formula alone."""
    transitions, rewards = mdp.to_numpy()
    size = len(rewards)

    def residual(v):
        q = rewards + mdp.discount * np.einsum("sat,bt->bsa", transitions, v)
        policy = np.exp(beta * (q - q.max(-1, keepdims=True)))
        policy /= policy.sum(-1, keepdims=True)
        value = (policy * q).sum(-1)
        weights = policy * (1 + beta * (q - value[..., None]))
        return value - v, mdp.discount * np.einsum("bsa,sat->bst", weights, transitions)

    low, high = rewards.min() / (1 - mdp.discount), rewards.max() / (1 - mdp.discount)
    v = low + (high - low) * rng.random((count, size))
    half = low + (high - low) * rng.random((count // 2, 1))
    v[: count // 2] = half + rng.normal(size=(count // 2, size))
    for _ in range(30):
        v[: count // 4] += residual(v[: count // 4])[0]
    for _ in range(50):
        change, jacobian = residual(v)
        step = np.linalg.solve(np.eye(size) - jacobian, change[..., None])[..., 0]
        v = v + step * np.minimum(1, 5 / np.maximum(abs(step).max(-1, keepdims=True), 1e-300))
    v = v[abs(residual(v)[0]).max(-1) < 1e-10]
    found = []
    for row in v:
        if all(abs(row - other).max() > 1e-6 for other in found):
            found.append(row)
    return found


def copies(count, leak=0.0):
    """Figure 1 many times over, each copy leaking a little into the next."""
    transitions, rewards = np.zeros((count + 1, 2, count + 1)), np.zeros((count + 1, 2))
    for s, (a, (reward, stay)) in itertools.product(range(count), enumerate(FITTED)):
        transitions[s, a, s] = stay * (1 - leak)
        transitions[s, a, (s + 1) % count] += stay * leak
        transitions[s, a, count] = 1 - stay
        rewards[s, a] = reward
    transitions[count, :, count] = 1
    return MDP.from_arrays(transitions, rewards, 0.98)


def assert_fixed(mdp, softmax, found):
    """What every result promises."""
    for point in found:
        change = abs(sweep(mdp, softmax, point.q) - point.q).max()
        assert change <= 1e-13 * abs(point.q).max()
        assert point.residual <= 1e-13 * abs(point.q).max()
        np.testing.assert_allclose(softmax.value(point.q), point.value, rtol=0, atol=1e-12)
        assert point.stable == (point.spectral_radius < 1)
        assert not point.q.flags.writeable
        assert not point.value.flags.writeable
    sums = [point.value.sum() for point in found]
    assert (np.diff(sums) >= -1e-8 * np.max(np.abs(sums), initial=0)).all()


CASES = [(two_state(), 16.55), (random_mdp(205), 7.0), (copies(2, 1e-3), 16.6)]
