"""The models of the planning benchmark, as MDPs: those of economics and operations research.

The rule that chooses how to solve a linear system (`planning.linear`) was made on the models of
`SEEN`; those of `NEW` were chosen before it was tried on them.
"""

from __future__ import annotations

import numpy as np

from mellowmax.mdp import MDP, garnet, grid_world


def model(successors, probabilities, rewards, discount, terminal=None):
    """An MDP whose probabilities may have fewer axes than its successors."""
    successors = np.asarray(successors, np.int32)
    probabilities = np.broadcast_to(probabilities, successors.shape)
    rewards = np.broadcast_to(rewards, successors.shape[:2])
    return MDP(successors, probabilities, rewards, discount, terminal=terminal)


def poisson(mean, n):
    """The probabilities of 0 to `n`, and of more at the last."""
    p = np.exp(-mean) * np.cumprod(np.append(1.0, mean / np.arange(1.0, n + 1)))
    p[-1] += 1 - p.sum()
    return p


def inventory(n, orders=(0, 1, 2, 4, 6, 8)):
    """A stock, an order, a demand, which is met as far as the stock goes."""
    p = poisson(3.0, 7)
    stock, order = np.arange(n)[:, None, None], np.array(orders)[:, None]
    there = np.minimum(stock + order, n - 1)
    sold = np.minimum(there, np.arange(8))
    costs = order[:, 0] + 2.0 * (order[:, 0] > 0) + 0.001 * np.arange(n)[:, None]
    return model(there - sold, p, 4.0 * sold @ p - costs, 0.99)


def queue(n, arrival=0.45):
    """A queue with a choice of the rate of service."""
    s, rate = np.arange(n), np.array([0.2, 0.35, 0.45, 0.55])
    leads = np.stack([np.minimum(s + 1, n - 1), np.maximum(s - 1, 0), s], -1)
    served = rate * (1 - arrival)
    p = np.stack([np.full(4, arrival), served, 1 - arrival - served], -1)
    rewards = -np.minimum(s, 1000)[:, None] / 100 - 8 * rate**2
    return model(leads[:, None].repeat(4, 1), p, rewards, 0.99)


def network(m):
    """Two queues in tandem, each with a slow and a fast server."""
    i, j = np.divmod(np.arange(m * m), m)
    here = i * m + j
    leads = np.stack(
        [
            np.where(i < m - 1, here + m, here),
            np.where((i > 0) & (j < m - 1), here - m + 1, here),
            np.where(j > 0, here - 1, here),
            here,
        ],
        -1,
    )
    rates = [(a, b) for a in (0.2, 0.33) for b in (0.2, 0.33)]
    p = np.array([[0.25, a, b, 0.75 - a - b] for a, b in rates])
    costs = np.array([20 * (a * a + b * b) for a, b in rates])
    return model(leads[:, None].repeat(4, 1), p, -(i + j)[:, None] / 10 - costs, 0.99)


def ageing(n):
    """A machine is kept, repaired to half its age, or replaced; it can fail."""
    s, zero = np.arange(n), np.zeros(n, int)
    fail, old = 0.001 + 0.05 * s / n, np.minimum(s + 1, n - 1)
    leads = np.stack([[old, zero], [s // 2, old], [zero, zero + 1]]).transpose(2, 0, 1)
    p = np.stack([[1 - fail, fail], [zero + 0.9, zero + 0.1], [zero + 0.95, zero + 0.05]])
    rewards = np.stack([1 - s / n - 20 * fail, 1 - s / n - 3, zero - 10.0], 1)
    return model(leads, p.transpose(2, 0, 1), rewards, 0.99)


def ageing_banded(n):
    """A repair makes a machine 30 younger, and nothing else makes it young."""
    s = np.arange(n)
    older, oldest = np.minimum(s + 1, n - 1), np.minimum(s + 2, n - 1)
    leads = np.stack([[older, oldest], [np.maximum(s - 30, 0), older]]).transpose(2, 0, 1)
    rewards = 1 - (s / n)[:, None] ** 2 - np.array([0.0, 0.4])
    return model(leads, [[0.7, 0.3], [0.9, 0.1]], rewards, 0.99)


def lake(m, holes=0.1):
    """FrozenLake: a move goes as meant or to a side; holes and the goal end the episode."""
    n, (i, j) = m * m, np.divmod(np.arange(m * m), m)
    moves = [(i, np.maximum(j - 1, 0)), (np.minimum(i + 1, m - 1), j)]
    moves += [(i, np.minimum(j + 1, m - 1)), (np.maximum(i - 1, 0), j)]
    move = np.stack([a * m + b for a, b in moves], 1)
    ends = np.random.default_rng(0).random(n) < holes
    ends[0], ends[-1] = False, True
    leads = move[:, [[(a - 1) % 4, a, (a + 1) % 4] for a in range(4)]]
    rewards = np.where(ends[:, None], 0.0, (leads == n - 1).mean(-1))
    leads[ends] = np.flatnonzero(ends)[:, None, None]
    return model(leads, 1 / 3, rewards, 0.99, ends)


def bus(n=90):
    """Rust (1987): the engine of a bus is kept or replaced."""
    s, step = np.arange(n), np.arange(3)
    keep = np.minimum(s[:, None] + step, n - 1)
    leads = np.stack([keep, np.broadcast_to(step, (n, 3))], 1)
    rewards = np.stack([-0.001 * 2.457 * s, np.full(n, -9.7558)], 1)
    return model(leads, [0.3489, 0.6394, 0.0117], rewards, 0.9999)


def dense(n=200, actions=10):
    """Transitions to all states."""
    rng = np.random.default_rng(0)
    p = rng.random((n, actions, n))
    return MDP.from_arrays(p / p.sum(-1, keepdims=True), rng.random((n, actions)), 0.95)


def grid(m):
    """A tenth of the cells are walls; the goal is in the last corner."""
    return grid_world((m, m), walls=0.1, seed=0, discount=0.99)


def perishable(m=40):
    """A blood bank: units keep for three days, and the oldest are used first."""
    orders, p = np.arange(0, 14, 2), poisson(5.0, 8)
    demand = np.arange(9)
    old, mid = (x.reshape(-1, 1, 1) for x in np.divmod(np.arange(m * m), m))
    fresh = orders[:, None]
    rest = demand - np.minimum(old, demand)
    from_mid = np.minimum(mid, rest)
    from_fresh = np.minimum(fresh, rest - from_mid)
    lost, wasted = rest - from_mid - from_fresh, old - np.minimum(old, demand)
    leads = (mid - from_mid) * m + np.minimum(fresh - from_fresh, m - 1)
    return model(leads, p, -(8.0 * lost + 3.0 * wasted) @ p - orders, 0.99)


def admission(n=60_000, servers=20):
    """A queue with several servers, which takes a customer or refuses."""
    s, total = np.arange(n), 0.5 + servers * 0.03
    served = np.minimum(s, servers) * 0.03 / total
    comes = np.full(n, 0.5 / total)
    up, down = np.minimum(s + 1, n - 1), np.maximum(s - 1, 0)
    leads = np.stack([[up, down, s], [s, down, s]]).transpose(2, 0, 1)
    p = np.stack([comes, served, 1 - comes - served], -1)[:, None]
    waits = -0.02 * np.minimum(s, 5000)
    return model(leads, p, np.stack([5 * comes + waits, waits], 1), 0.995)


def life_cycle(ages=60, wealth=200):
    """Savings over a life, with an income at risk: states are age, wealth and income."""
    grid, income = np.linspace(0, 20, wealth), np.array([0.5, 1.0, 1.6])
    p = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    n = ages * wealth * 3
    rest, y = np.divmod(np.arange(n), 3)
    age, w = np.divmod(rest, wealth)
    cash = (1.03 * grid[w] + income[y])[:, None]
    saved = cash * np.linspace(0, 0.95, 20)
    after = np.clip(np.searchsorted(grid, saved, side="right") - 1, 0, wealth - 1)
    leads = ((age[:, None] + 1) * wealth + after)[..., None] * 3 + np.arange(3)
    leads = np.where((age == ages - 1)[:, None, None], n, leads)
    return model(leads, p[y][:, None], np.log(cash - saved), 0.96)


def gambler(n=100_000, wins=0.47):
    """A gambler chooses a stake; the game ends at nothing and at the top."""
    s = np.arange(n)[:, None]
    stake = np.minimum([1, 2, 5, 10, 30], np.maximum(s, 1))
    up, down = np.minimum(s + stake, n - 1), np.maximum(s - stake, 0)
    ends = np.isin(np.arange(n), [0, n - 1])
    drinks = 0.001 * (np.arange(n) % 7 == 0)[:, None] * np.array([1, 0, 2, 0, 1])
    rewards = np.where(ends[:, None], 0.0, wins * (up == n - 1) + drinks)
    leads = np.stack([up, down], -1)
    leads[ends] = np.flatnonzero(ends)[:, None, None]
    return model(leads, [wins, 1 - wins], rewards, 0.999, ends)


def walk(n=100_000):
    """A particle on a circle, which is pushed to the left, to the right, or not."""
    s = np.arange(n)[:, None, None]
    leads = (s + np.array([-3, 0, 3])[:, None] + np.array([-1, 0, 1])) % n
    hills = np.sin(np.arange(n) * 100 * np.pi / n)[:, None]
    return model(leads, [0.25, 0.5, 0.25], hills - np.array([0.1, 0.0, 0.1]), 0.999)


def arrow(n=100_000):
    """Machines wear, fail, are overhauled to a tenth of their wear, or sold."""
    s, wear, none = np.arange(n), np.arange(4), np.zeros((n, 1), int)
    keep = np.minimum(s[:, None] + wear, n - 1)
    overhaul = np.minimum((s // 10)[:, None] + wear, n - 1)
    new = np.broadcast_to(wear, (n, 4))
    leads = np.stack([np.append(x, none, 1) for x in (keep, overhaul, new)], 1)
    fails = np.stack([0.002 + 0.03 * s / n, np.full(n, 0.001), np.zeros(n)], 1)[..., None]
    p = np.append((1 - fails) * np.array([0.1, 0.4, 0.3, 0.2]), fails, 2)
    earns = 2 - 3 * s / n
    rewards = np.stack([earns - 30 * fails[:, 0, 0], earns - 5, -7 - 5 * s / n], 1)
    return model(leads, p, rewards, 0.99)


def small_world(n=50_000):
    """Actions lead at random to near states and, seldom, to a far one."""
    rng = np.random.default_rng(3)
    leads = np.arange(n)[:, None, None] + rng.integers(-20, 21, (n, 4, 4))
    leads = np.clip(leads, 0, n - 1)
    leads[:, :, 3] = rng.integers(n, size=(n, 4))
    p = rng.dirichlet(np.full(4, 2.0), (n, 4)) * np.array([1, 1, 1, 0.1])
    return model(leads, p / p.sum(-1, keepdims=True), rng.normal(size=(n, 4)), 0.98)


def reservoir(m=100, seasons=12):
    """Water is let out by the season; too much inflow is spilt."""
    level, season = np.divmod(np.arange(m * seasons), seasons)
    out = np.minimum(np.arange(10)[:, None], level[:, None, None])
    inflow = np.arange(6)
    means = 2.5 + 2 * np.sin(2 * np.pi * season / seasons)
    p = np.stack([poisson(mean, 5) for mean in means])[:, None]
    after = level[:, None, None] - out + inflow
    leads = np.minimum(after, m - 1) * seasons + ((season + 1) % seasons)[:, None, None]
    spilt = (np.maximum(after - (m - 1), 0) * p).sum(-1)
    return model(leads, p, 3 * np.sqrt(out[..., 0]) - 2 * spilt, 0.99)


SEEN = {
    "bus 90": bus,
    "dense 200x10": dense,
    "inventory 1e5": lambda: inventory(10**5),
    "queue 1e5": lambda: queue(10**5),
    "ageing 1e5": lambda: ageing(10**5),
    "banded ageing 1e5": lambda: ageing_banded(10**5),
    "network 300x300": lambda: network(300),
    "grid 316x316": lambda: grid(316),
    "grid 1000x1000": lambda: grid(1000),
    "lake 316x316": lambda: lake(316),
    "garnet 1e4x10x10": lambda: garnet(10**4, 10, 10, 0, discount=0.99),
    "garnet 1e5x10x10": lambda: garnet(10**5, 10, 10, 0, discount=0.99),
    "garnet 1e6x5x5": lambda: garnet(10**6, 5, 5, 0, discount=0.99),
}
NEW = {
    "perishable 1600": perishable,
    "admission 6e4": admission,
    "life cycle 36000": life_cycle,
    "gambler 1e5": gambler,
    "walk 1e5": walk,
    "arrow 1e5": arrow,
    "small world 5e4": small_world,
    "reservoir 1200": reservoir,
    "inventory 1e6": lambda: inventory(10**6),
}
MODELS = {**SEEN, **NEW}
BANDED_OR_GRIDS = {
    "bus 90",
    "inventory 1e5",
    "queue 1e5",
    "banded ageing 1e5",
    "grid 316x316",
    "grid 1000x1000",
    "admission 6e4",
    "walk 1e5",
    "inventory 1e6",
}
"""Where mellowmax is to take at most twice as long as the maximum."""
