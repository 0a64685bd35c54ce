"""What the report says of figure 9."""

from __future__ import annotations

from ...item import Caption

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "NEAR",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "SARSA on the multi-passenger taxi"
SOURCE = "Figure 9, section 7.2"
NEAR = 0.03
RULE = (
    f"A panel is reproduced if at every parameter our mean reward is within {NEAR} of the paper's "
    "curve. Epsilon-greedy performs poorly if its best point is below half of Boltzmann's best. "
    "Mellowmax is no worse than Boltzmann if its best point is not below Boltzmann's by more than "
    "two standard errors of the difference."
)
DEVIATIONS = (
    "The paper optimises the learning rate without saying over what; here it is a stated grid, and "
    "the best mean of a point is over the runs that are shown, as it seems to be in the paper.",
    "The silent fallback is ours: the paper names the method that finds roots, not its bracket. "
    "The bracket here was fitted to the paper's curve, with other seeds than those shown; others "
    "fit nearly as well (the table of the fit), and so may other mechanisms. It is a hypothesis, "
    "and does not affect the verdict.",
    "The probability of a slip, 0.1 in all, is that of Dearden et al. (1998), from which the grid "
    "comes; the initial values are 0. The paper states neither.",
    "The rule was written after a run with a third of the steps had been seen.",
)
CAPTIONS = {
    "rewards": Caption(
        "The mean reward of a step by the parameter of each policy, on one scale. Pink crosses "
        "are the paper's; the lines of each policy's colour are ours, with 95 % intervals, at the "
        "learning rate that was best, which is the small number at each point. Epsilon-greedy and "
        "Boltzmann agree; mellowmax, by the policy as the paper defines it, does not. Grey "
        "triangles are a hypothesis: what mellowmax would have earned by a root finder that "
        "silently falls back on omega. Grey dashes are what the policy of planning's fixed point "
        "earns.",
        "Three panels of mean reward against epsilon, beta and omega. Epsilon-greedy stays below "
        "0.07. Boltzmann rises to 0.35 at beta 1.5 and falls to 0.06, and so does the paper's "
        "curve. For mellowmax the paper's curve is like Boltzmann's, ours rises to 0.12 at omega "
        "5 only, and the triangles of the hypothesis follow the paper's curve.",
    ),
    "learning-rates": Caption(
        "The mean reward of a step by the learning rate, on one scale, with a curve for each "
        "parameter: how much the choice of the learning rate matters. All are ours.",
        "Three panels of mean reward against the learning rate from 0 to 1, with a curve for each "
        "parameter. Those of the best parameters rise with the learning rate and flatten.",
    ),
}
SETTINGS = {
    "epsilons": "epsilons of epsilon-greedy",
    "inverse_temperatures": "betas of Boltzmann and omegas of mellowmax",
    "learning_rates": "learning rates",
    "steps": "steps of a run",
    "runs": "runs of each setting",
    "slip": "probability of a slip",
    "seed": "seed of the random numbers",
    "bracket": "bracket of the hypothetical root finder",
    "brackets": "brackets it was fitted among: lower and upper ends",
    "fit_rates": "learning rates of the fit",
    "fit_runs": "runs of the fit",
    "fit_seed": "seed of the fit",
}
COLUMNS = {
    "rates": {
        "policy": "epsilon-greedy, boltzmann or mellowmax",
        "parameter": "epsilon, beta or omega",
        "learning_rate": "learning rate of SARSA",
        "mean_reward": "reward of a step, averaged over all steps and runs",
        "standard_error": "standard error of that mean, over the runs",
        "last_tenth": "the same mean over the last tenth of the steps",
        "runs": "how many runs",
    },
    "best": {
        "policy": "epsilon-greedy, boltzmann or mellowmax",
        "parameter": "epsilon, beta or omega",
        "learning_rate": "the one with the largest mean reward",
        "mean_reward": "mean reward at that learning rate",
        "standard_error": "standard error of that mean, over the runs",
        "planned": "what the policy of planning's fixed point earns a step, exactly",
        "planned_converged": "did planning converge, which for Boltzmann is not certain?",
        "paper": "the paper's mean reward at this parameter",
    },
    "fallback": {
        "parameter": "omega",
        "low": "where the bracket of the root finder begins",
        "high": "where it ends",
        "learning_rate": "the one with the largest mean reward",
        "mean_reward": "mean reward at that rate, if the policy silently falls back on omega",
        "standard_error": "standard error of that mean, over the runs",
        "paper": "the paper's mean reward of mellowmax at this parameter",
    },
    "fit": {
        "low": "where a bracket begins",
        "high": "where it ends",
        "distance": "mean distance from the paper's mellowmax over omega, with the seed of the fit",
    },
}
