"""What the report says of figure 11."""

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
    "SURE",
    "TITLE",
]

TITLE = "REINFORCE on Lunar Lander"
SOURCE = "Figure 11, section 7.3"
NEAR = 25.0
"""How far a curve may be from the paper's, on average."""
COUNTS = 30.0
"""How far a reading may be from all ten curves, to count in the verdict."""
SURE = 0.05
RULE = (
    "The curves of a policy are reproduced if for every parameter the mean distance between our "
    f"curve and the paper's is at most {NEAR:g}. Whether mellowmax outperforms Boltzmann at its "
    f"peak is asked of every reading whose ten curves are at most {COUNTS:g} off in the root mean "
    "square over all 40,000 episodes. In each of them, the best parameter of each policy is chosen "
    "by half of the runs, and mellowmax outperforms Boltzmann if it earns more over all episodes "
    "in the other half, with p below "
    f"{SURE:.0%} in Welch's test after Holm's correction for the number of those readings. The "
    "claim is reproduced if this holds in all of them, not reproduced if in none, and mixed "
    "otherwise. The reading that is run as the figure takes part with the runs of the figure. "
    "Where not all settings were run for all episodes, that claim is undecided, and so are curves "
    "that agree as far as they were run."
)
DEVIATIONS = (
    "The paper states neither the discount, nor how an action is weighed, nor a baseline. Readings "
    "of it were compared with its curves (the table of readings); the nearest one is run here: the "
    "reward to go with the mean of the other episodes of the batch as a baseline, and discount "
    "0.99. Mellowmax's inverse temperature is held fixed in the gradient, as a root finder outside "
    "of it leaves it.",
    "Updates are made after 100 episodes, where the paper states 10; the learning rate is 0.005, "
    "as it states. The part called smaller rate has batches of 10 episodes, as stated, and "
    "the learning rate 0.001, and is about as near. In that part and those below it the gradient "
    "goes through the inverse temperature, but in the part where it is held. With batch and rate "
    "as the paper states them, the part called as stated, the curves are far from the paper's.",
    "The layer before the softmax has 4 units, one for each action; the paper says 16, which can "
    "hold for the hidden layer only. The weights begin as Glorot's and the biases as 0, which was "
    "the default of the library the paper used.",
    "The environment is our own Lunar Lander, which is Gymnasium's to within its own scatter, with "
    "the height observed as it was until 2018: the paper's environment observed it so, and returns "
    "are lower for it. Its episodes end after 1000 steps at the latest. The part called today is "
    "LunarLander-v3.",
    "The rule for the curves was written after some readings had been seen. The rule for the claim "
    "was written before any reading with larger batches had come to its end, and before the figure "
    "was run with one of them.",
    "The nearest reading was chosen by 40 runs of each setting, which were not used again: by the "
    "root of its squared distance minus its squared scatter, since few runs look farther off than "
    "they are. The readings with batches of 20 and 50 episodes were ended early: their squared "
    "distances had by then added up to more than the nearest reading's over all episodes.",
)
CAPTIONS = {
    "curves": Caption(
        "The mean return of an episode, in bins of 500 episodes, on one scale for both policies. "
        "Dotted lines are the paper's, one for each parameter; solid lines of the same colour are "
        "ours, where that parameter was run.",
        "Two panels of mean return against episode, with the paper's dotted curves, which rise "
        "from between -240 and -360 to as much as 200, and our solid ones.",
    ),
    "means": Caption(
        "Left: the mean return over all episodes that were run, with 95 % intervals, and the "
        "paper's over as many episodes as crosses of the same colour. Right: the share of runs "
        "that solved the domain, with a mean return above 200 in 100 consecutive episodes; the "
        "paper gives none.",
        "Two panels against the parameter: mean returns with the paper's crosses, and shares of "
        "runs between 0 and 1.",
    ),
    "others": Caption(
        "The mean return over all episodes in each of the other parts, with 95 % intervals: with "
        "a smaller learning rate and batches of 10, with both as the paper states them, with "
        "mellowmax's inverse temperature held fixed at the smaller rate (beside the one that "
        "moves), over a finer grid of parameters, and in today's environment.",
        "Five panels of mean return against the parameter.",
    ),
}
SETTINGS = {
    "betas": "betas of Boltzmann",
    "omegas": "omegas of mellowmax",
    "runs": "runs of each setting of the figure",
    "other_runs": "runs of each setting of the parts after the second",
    "runs_of_a_row": "runs that share a key",
    "finer": "parameters of each policy in the finer grid",
    "episodes": "episodes of a run",
    "hidden": "units of the hidden layer",
    "seed": "seed of the random numbers",
}
COLUMNS = {
    "curves": {
        "part": "figure, smaller rate, as stated, temperature held, finer grid, or today",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "episode": "the middle of a bin of 500 episodes",
        "mean_return": "averaged over the bin and the runs",
        "standard_error": "standard error of that mean, over the runs",
        "mean_length": "steps of an episode",
        "runs": "how many runs",
        "paper": "the paper's mean return in this bin, where it has one",
    },
    "runs": {
        "part": "figure, smaller rate, as stated, temperature held, finer grid, or today",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "run": "its number",
        "mean_return": "averaged over all episodes",
        "solved": "after how many episodes the domain was solved; 0 if it was not",
    },
    "means": {
        "part": "figure, smaller rate, as stated, temperature held, finer grid, or today",
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "mean_return": "averaged over all episodes and runs",
        "standard_error": "standard error of that mean, over the runs",
        "paper": "the mean of the paper's curve over as many episodes, where it has one",
        "solved": "the share of runs with a mean return above 200 in 100 consecutive episodes",
        "solved_low": "the lower end of its 95 % interval",
        "solved_high": "the upper end",
        "runs": "how many runs",
        "episodes": "episodes of each run",
    },
    "peaks": {
        "part": "figure, smaller rate, as stated, temperature held, finer grid, or today",
        "boltzmann": "the best beta",
        "mellowmax": "the best omega",
        "difference": "how much more mellowmax earns there, over all episodes",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "at_edge": "whose best parameter is at an edge of its grid",
        "p_value": "how often chance alone gives as large a difference",
        "corrected": "the same, corrected by Holm for the number of parts",
        "detectable": "the true difference that 80 % of such experiments would have found, with p "
        "below 5 % after the correction",
        "runs": "how many runs of each are compared",
    },
    "counted": {
        "reading": "how an action is weighed, and how many layers there are",
        "discount": "discount of the rewards",
        "learning_rate": "0.005 is what the paper states",
        "batch": "how many episodes there are between two updates; 10 is what the paper states",
        "temperature": "mellowmax's inverse temperature moves with the values in the gradient, or "
        "is held",
        "fallback": "where mellowmax's policy is Boltzmann's at omega: none, or overflow",
        "part": "the part with these runs; compared: runs that were made to choose a reading",
        "distance": "root mean square distance from the paper's ten curves",
        "boltzmann": "the best beta",
        "mellowmax": "the best omega",
        "at_edge": "whose best parameter is at an edge of its grid",
        "difference": "how much more mellowmax earns there, over all episodes",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "corrected": "the same, corrected by Holm for the number of readings that count",
        "detectable": "the true difference that 80 % of such experiments would have found, with p "
        "below 5 % after the correction",
        "runs": "how many runs of each are compared",
    },
    "gradients": {
        "omega": "omega of mellowmax",
        "through": "mean return with the gradient through the inverse temperature",
        "held": "mean return with the inverse temperature held fixed",
        "difference": "how much more the former earns",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared, at least",
    },
    "check": {
        "policy": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "episode": "the middle of a bin of 500 episodes",
        "here": "the mean return of the runs that were made now",
        "there": "that of the runs that are shown",
        "standard_errors": "how many standard errors the former is above the latter",
        "runs": "how many runs were made now",
    },
    "measured": {
        "cell": "which of the runs that are shown: those that were trained together",
        "device": "where they were made",
        "seconds": "how long that took",
        "at": "when",
        "mellowmax": "the version of this library",
        "jax": "that of JAX",
    },
    "flights": {
        "policy": "boltzmann or mellowmax, at the parameter that is best in the part called today",
        "parameter": "beta or omega",
        "run": "its number",
        "ours": "the mean return of its trained policy over 100 episodes in our LunarLander-v3",
        "gymnasium": "the same in Gymnasium's own",
        "standard_error": "standard error of the difference",
        "standard_errors": "how many of them the former is above the latter",
    },
    "readings": {
        "part": "the part; compared: runs that were made to choose a reading",
        "reading": "how an action is weighed, and how many layers there are",
        "discount": "discount of the rewards",
        "learning_rate": "0.005 is what the paper states",
        "batch": "how many episodes there are between two updates; 10 is what the paper states",
        "temperature": "mellowmax's inverse temperature moves with the values in the gradient, or "
        "is held",
        "fallback": "where mellowmax's policy is Boltzmann's at omega: none, or overflow, where a "
        "search with the bracket from -500 to 500 fails",
        "contradicts": "what the paper states otherwise: rate, batch, rate and batch, or nothing",
        "distance": "root mean square distance from the paper's ten curves",
        "scatter": "the share of it that the runs' scatter explains: the root mean square of the "
        "curves' standard errors",
        "episodes": "up to which they are compared; those far off were not trained to the end",
        "figure": "the distance of the figure's own runs up to there; the rows are in the order of "
        "distance / figure",
        "runs": "of each setting",
    },
}
