"""What the report says of the item on all of reinforcement learning."""

from __future__ import annotations

from ...item import Caption
from .learners import REFERENCES
from .verdict import ENOUGH, ENVIRONMENTS, LEVEL, MARGIN

__all__ = ["CAPTIONS", "COLUMNS", "DEVIATIONS", "RULE", "SETTINGS", "SOURCE", "TITLE"]

TITLE = "Mellowmax in Boltzmann's place, throughout reinforcement learning"
SOURCE = "Beyond the paper: the last sentence of its section 9"
_CONSTANTS = ", ".join(
    f"{name.replace('_', ' ')} {low:g} and {high:g}" for name, (low, high) in REFERENCES.items()
)
RULE = (
    "The score of a run is the mean return of the episodes that end in its last tenth of steps, "
    "normalised so that a random policy scores 0 and a good one 1. The returns that stand for "
    f"these were fixed before the runs: {_CONSTANTS}. A run that diverges scores 0, as do all of "
    "its setting; none is left out. The parameter of each softmax and the learning rate are chosen "
    "together, for each algorithm in each environment, by the mean score of runs 0 to 9, with the "
    "same number of parameters and rates for both softmaxes; a setting that diverged is not "
    "chosen, unless all did. What was chosen is judged on runs 10 to 49 alone. D is mellowmax's "
    "interquartile mean over all environments minus Boltzmann's, and "
    "P is the probability that a run with mellowmax scores higher than one with Boltzmann in the "
    "same environment. Their intervals are those of the stratified bootstrap with 10,000 "
    f"resamples, at {100 * LEVEL:g} %, since four algorithms are four tests. Mellowmax is better "
    "if the interval of D is above 0 and that of P above a half, worse if both are below, and as "
    f"good if the interval of D is within {MARGIN:g} of 0; otherwise it is undecided. Better is "
    "asked first. The claim about an algorithm holds if mellowmax is better or as good. Nothing is "
    f"said of a single environment, and nothing is judged with fewer than {ENVIRONMENTS} "
    f"environments or {ENOUGH} runs in each."
)
DEVIATIONS = (
    "The paper says of mellowmax that it could be used in place of Boltzmann throughout "
    "reinforcement-learning research. It has no experiment on that.",
    "In PPO, soft actor-critic and REINFORCE a softmax is the last layer of the policy's network. "
    "In deep Q-learning its value is in the targets, with a target network for both softmaxes, and "
    "actions are epsilon-greedy.",
    "The grids of parameters are equally wide. Mellowmax's is twice Boltzmann's: for action values "
    "that are close together, its policy has the inverse temperature omega / 2. A parameter acts "
    "as a learning rate too, which is why the rate is in the grid.",
    "What had been seen before the rule was written: single runs of other programs in CartPole and "
    "in Breakout, in which both softmaxes learned, and runs of a few thousand steps in the same "
    "two environments that tried this program out.",
    "The environments of MinAtar are gymnax's, whose actions are the minimal sets. Their "
    "observations are flattened, and the networks have two layers of 128 units. There the grid has "
    "three of the parameters and two of the learning rates.",
    "What MinAtar gets was fixed by the speed of an accelerator, on which 12 cells were tried for "
    "40 seconds each, so that the whole takes about an hour of it. REINFORCE turned out slower "
    "there, and got fewer steps before any of its cells had finished. No return of a try or of a "
    "finished cell had been looked at then.",
    "The steps of a run are fewer than in most publications, in favour of many runs: in MinAtar a "
    "fiftieth to a seventh of the ten million after which a good policy earns what is a score of "
    "1. So scores are low there, and so are their differences. The settings of each algorithm, but "
    "for those in the grid, are the same for both softmaxes and were not tuned.",
)
CAPTIONS = {
    "differences": Caption(
        "Mellowmax's interquartile mean of normalised scores over all environments, minus "
        f"Boltzmann's, with {100 * LEVEL:g} % intervals: with the parameter and the learning rate "
        "as chosen, and over all of them. Within the grey band a difference is none.",
        "A line for each of four algorithms, with two points and their intervals on it.",
    ),
    "profiles": Caption(
        "The share of runs, over all environments, that score higher than each number, with 95 % "
        "intervals: with the parameter and the learning rate as chosen.",
        "A panel for each algorithm, in which two lines fall from 1 to 0.",
    ),
}
SETTINGS = {
    "environments": "environments",
    "algorithms": "algorithms",
    "betas": "betas of Boltzmann",
    "omegas": "omegas of mellowmax",
    "learning_rates": "learning rates of each algorithm",
    "steps": "steps of a run of each algorithm",
    "minatar_betas": "betas of Boltzmann in MinAtar",
    "minatar_omegas": "omegas of mellowmax in MinAtar",
    "minatar_learning_rates": "learning rates of each algorithm in MinAtar",
    "minatar_steps": "steps of a run of each algorithm in MinAtar",
    "choosing": "runs of each setting that choose",
    "judging": "runs of the chosen setting that judge",
    "seed": "seed of the random numbers",
}
_ALGORITHM = "ppo, sac, dqn or reinforce"
COLUMNS = {
    "runs": {
        "algorithm": _ALGORITHM,
        "environment": "its name",
        "softmax": "boltzmann or mellowmax",
        "stage": "choosing or judging: what the run is for",
        "parameter": "beta or omega",
        "learning_rate": "that of Adam",
        "run": "its number",
        "last_return": "the mean return in the last tenth of the steps",
        "score": "the same, normalised",
        "diverged": "is it of a setting in which a run diverged?",
    },
    "scores": {
        "algorithm": _ALGORITHM,
        "softmax": "boltzmann or mellowmax",
        "score": "the interquartile mean over all environments, of what was chosen",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "runs": "how many runs in each environment",
        "environments": "how many environments",
        "diverged": "how many runs are of settings that diverged",
    },
    "differences": {
        "algorithm": _ALGORITHM,
        "difference": "mellowmax's interquartile mean minus Boltzmann's, as chosen",
        "low": "the lower end of its interval",
        "high": "the upper end",
        "improvement": "the probability that a run with mellowmax scores higher",
        "improvement_low": "the lower end of its interval",
        "improvement_high": "the upper end",
        "difference_of_all": "as the difference, over all settings, on the runs that choose",
        "low_of_all": "the lower end of its interval",
        "high_of_all": "the upper end",
        "runs": "how many runs judge in each environment",
        "environments": "how many environments",
    },
    "profiles": {
        "algorithm": _ALGORITHM,
        "softmax": "boltzmann or mellowmax",
        "threshold": "a score",
        "share": "the share of runs above it, over all environments",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
    },
}
