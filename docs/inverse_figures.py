"""The four figures of the page on rewards from demonstrations; `figures` draws them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import matplotlib.pyplot as plt
import numpy as np

from mellowmax import Boltzmann, LogSumExp, Mellowmax
from mellowmax.inverse import Demonstrations, Linear, fit, log_likelihood, zurcher
from mellowmax.mdp import grid_world, two_state
from mellowmax.planning import fixed_point, solve

BOLTZMANN = {"color": "#D55E00", "linestyle": "--"}
MELLOWMAX = {"color": "#0072B2", "linestyle": "-"}

__all__ = ["draw"]


def rewards_of_a_grid() -> plt.Figure:
    """The true rewards of a grid, those of a fit, and their standard errors."""
    side, model = 5, LogSumExp(3.0)
    plain = grid_world(["." * side] * side, step_reward=0.0, discount=0.95)
    truth = np.zeros(side**2)
    truth[[4, 12, 20]] = 1.0, -1.0, 0.5
    features = np.eye(side**2)[:, 1:]  # relative to the first cell: a constant cannot be known
    world = dataclasses.replace(plain, rewards=np.repeat(truth[:, None], 4, 1))
    policy = solve(world, model).policy
    start = np.full(side**2, 1 / side**2)
    seen = Demonstrations.simulate(policy, world, 40, paths=100, start=start)
    found = fit(plain, seen, Linear(features), model)
    maps = {
        "true rewards": truth - truth[0],
        "fitted rewards": features @ found.parameters,
        "standard errors": features @ found.standard_errors,
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, (name, values) in zip(axes, maps.items(), strict=True):
        error = name == "standard errors"
        looks = (
            {"cmap": "Greys", "vmin": 0} if error else {"cmap": "RdBu", "vmin": -1.5, "vmax": 1.5}
        )
        image = axis.imshow(values.reshape(side, side), **looks)
        figure.colorbar(image, ax=axis, shrink=0.8)
        axis.set(title=name, xticks=[], yticks=[])
    return figure


def likelihood_through_the_fold() -> plt.Figure:
    """The likelihood of one reward of the two-state MDP, planned for from different values."""
    model = two_state().model()
    rewards = np.concatenate([np.linspace(0.0322, 0.0336, 141), np.linspace(0.03276, 0.03277, 21)])
    rewards.sort()
    true = 0.033
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True)
    for axis, softmax in zip(axes, (Boltzmann(16.55), Mellowmax(16.55)), strict=True):

        def point_at(reward: float, start: np.ndarray, softmax=softmax) -> np.ndarray:
            table = np.array(model.rewards)
            table[0, 1] = reward
            arrays = dataclasses.replace(model, rewards=table)
            return fixed_point(arrays, softmax, initial=start).q

        zero = np.zeros((2, 2))
        q = point_at(rewards[-1], zero + 1.0)  # the upper fixed point, followed down
        above = []
        for reward in rewards[::-1]:
            q = point_at(reward, q)
            above.append(q)
        above = np.array(above[::-1])
        cold = np.array([point_at(reward, zero) for reward in rewards])
        policy = softmax.policy(above[np.abs(rewards - true).argmin()][0])
        for values, look, name in (
            (cold, {"marker": "o", "ms": 3, "ls": "none", "color": "#999999"}, "from 0"),
            (above, MELLOWMAX if softmax.non_expansion else BOLTZMANN, "followed from above"),
        ):
            seen = softmax.log_policy(values[:, 0]) @ policy
            axis.plot(rewards, seen - np.log(policy) @ policy, label=name, **look)
        axis.axvline(true, color="#CC79A7", linewidth=1)
        axis.set(title=str(softmax), xlabel="reward of action b (pink: the true one)")
        axis.set_xticks([0.0322, 0.0326, 0.033, 0.0334])
    axes[0].set_ylabel("log-likelihood of a decision, minus the truth's")
    axes[0].legend(frameon=False)
    return figure


def replacement_of_engines() -> plt.Figure:
    """How probably an engine is replaced, by its mileage: an interval, and draws of a posterior."""
    buses, model = zurcher([4]), LogSumExp(1.0)
    arguments = buses.mdp, buses.demonstrations, buses.reward, model
    found = fit(*arguments)

    @jax.jit
    @jax.vmap
    def replaced(parameters: jax.Array) -> jax.Array:
        changed = dataclasses.replace(buses.mdp.model(), rewards=buses.reward(parameters))
        return model.policy(fixed_point(changed, model).q)[:, 1]

    rng = np.random.default_rng(0)
    around = rng.multivariate_normal(found.parameters, found.covariance(), 1000)
    # The posterior under a flat prior: a wider normal distribution, weighted by the likelihood.
    wide = rng.multivariate_normal(found.parameters, 4 * found.covariance(), 1000)
    wide = wide[(wide > 0).all(1)]
    off = (wide - found.parameters) @ np.linalg.cholesky(np.linalg.inv(found.covariance()))
    with jax.enable_x64(True):
        likelihoods = np.asarray(jax.jit(jax.vmap(lambda x: log_likelihood(x, *arguments)))(wide))
        weights = np.exp(likelihoods - likelihoods.max() + (off**2).sum(1) / 8)
        drawn = rng.choice(wide, 60, p=weights / weights.sum())
        curve, many, posterior = (
            100 * np.asarray(replaced(np.atleast_2d(x))) for x in (found.parameters, around, drawn)
        )
    miles = (np.arange(90) + 0.5) * 5
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(miles, posterior.T, color="#E69F00", linewidth=0.4, alpha=0.5)
    axes.plot([], [], color="#E69F00", label="draws of the posterior")
    low, high = np.quantile(many, [0.025, 0.975], axis=0)
    axes.fill_between(miles, low, high, color="#0072B2", alpha=0.25, label="95 % interval")
    axes.plot(miles, curve[0], color="#0072B2", label="maximum likelihood")
    axes.set(xlabel="miles since the last replacement, thousands", ylabel="% replaced in a month")
    axes.legend(frameon=False, loc="upper left")
    return figure


def two_tails() -> plt.Figure:
    """How often a demonstrator slips, against how much worse the slip is."""
    gap = np.geomspace(0.1, 40, 300)
    q = np.stack([np.zeros_like(gap), -gap], -1)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.loglog(gap, Mellowmax(1.0).policy(q)[:, 1], **MELLOWMAX, label="mellowmax")
    axes.loglog(gap, Boltzmann(1.0).policy(q)[:, 1], **BOLTZMANN, label="Boltzmann, log-sum-exp")
    far = gap > 3
    tail = {"color": "#000000", "linestyle": ":", "linewidth": 3, "label": "log(2) / (omega gap)"}
    axes.loglog(gap[far], np.log(2) / gap[far], **tail)
    axes.set(
        xlabel="parameter times the gap between the two values",
        ylabel="probability of the worse action",
        ylim=(1e-10, 1),
    )
    axes.legend(frameon=False, loc="lower left")
    return figure


def draw(save: Callable[[plt.Figure, str], None]) -> None:
    """Draw and save them."""
    save(rewards_of_a_grid(), "inverse_grid")
    save(likelihood_through_the_fold(), "inverse_fold")
    save(replacement_of_engines(), "inverse_engines")
    save(two_tails(), "inverse_tails")
