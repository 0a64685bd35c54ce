"""What the report says of the item on inverse reinforcement learning."""

from __future__ import annotations

import numpy as np

from ...item import Caption
from .comparisons import DRAWS, FAILED, FEW, QUANTITIES, WITHIN
from .fits import DONE, EVALUATIONS, INNER, RIDGE, SWEEPS
from .verdict import FALSE, NOT_STABLE
from .worlds import EPSILON, PATHS, STEPS, STRENGTHS

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "Rewards from demonstrations"
SOURCE = "Beyond the paper: the sentence of its section 8 on inverse reinforcement learning"
_GAIN = float(np.exp(QUANTITIES["efficient"]))
RULE = (
    "The claims compare mellowmax with Boltzmann's softmax on the same demonstrations, each at the "
    "parameter with its best mean held-out likelihood, which other worlds choose for each kind of "
    "world and demonstrator. A world is one unit: its demonstrators are averaged. "
    "Stable: a fit fails if value iteration does not settle in one of its evaluations, if it ends "
    f"while another step promises more than {FAILED:g} nats a decision, or if it ends more than "
    f"{WITHIN:g} below the best penalised likelihood that is known, from 0 or from the true "
    "rewards. Mellowmax is more stable if the rate of Boltzmann's failures minus its own is above "
    f"{100 * QUANTITIES['stable']:g} percentage points; it is not if the 95 % interval is inside "
    f"+-{100 * NOT_STABLE:g}. Efficient: the sweeps until a fit is within {WITHIN:g} of that best, "
    "where both come there. Mellowmax is more efficient if the geometric mean of the ratio is "
    f"below {_GAIN:g}; it is not if the interval is above 1/1.1. No worse: what the greedy policy "
    "loses, as a share of what the best policy gains on the uniform one, is not larger by "
    f"{QUANTITIES['loss']:g}, and the held-out log-likelihood of a decision not smaller by "
    f"{QUANTITIES['likelihood']:g} nats; that fails if one of the intervals is beyond this. What "
    f"is neither is undecided. Intervals and p values are from {DRAWS:,} bootstrap samples of the "
    f"worlds. Where the failures differ in fewer than {FEW} worlds no bootstrap can tell how "
    "rarely they do: then the interval holds that of Clopper and Pearson for the share of such "
    f"worlds too, and nothing is found. A claim is found at p < {FALSE / 2:g}, one-sided, with "
    "Holm's correction for the six claims: if none is true, one is found anywhere at most once in "
    "40 times. The same is reported against log-sum-exp, which is a non-expansion too, whatever "
    "the verdict is."
)
DEVIATIONS = (
    "The paper has no experiment on this. Its section 8 says that mellowmax could be a more stable "
    "and efficient choice than the Boltzmann operator of Ramachandran and Amir (2007), Neu and "
    "Szepesvari (2007) and Babes and others (2011). Of these only the last one has that operator "
    "in its recursion; the demonstrators' plans of the others have the maximum.",
    "Each softmax that is fitted plans and acts: log-sum-exp with the policy of Boltzmann's. All "
    "are fitted by one method: value iteration from 0 to a change of "
    f"{INNER:g}, at most {SWEEPS:,} sweeps, and outside of it Fisher scoring (the natural gradient "
    f"of Neu and Szepesvari) from rewards of 0, to a promised gain of {DONE:g} or to {EVALUATIONS} "
    f"evaluations. A ridge of {RIDGE:g} on the rewards keeps what cannot be known at 0.",
    "A softmax of this kind with the parameter c and the rewards R is that with 1 and the rewards "
    "cR, divided by c. So the parameter of the one that is fitted decides nothing but how strong "
    "the ridge is, and the differences between parameters are those.",
    "The worlds: the paper's random MDPs of 5 states and 3 actions, with a discount of 0.98 and a "
    "reward of each state that is uniform in a range of 0.5; open grids with a discount of 0.95, "
    "where a move slips aside with probability 0.2, one cell in ten earns 1 and as many -1. The "
    "demonstrators plan and act by log-sum-exp, mellowmax, Boltzmann's softmax, with the parameter "
    f"{', '.join(f'{s:g}' for s in STRENGTHS)} in one world after another, or by epsilon-greedy "
    f"with {EPSILON:g}. Each is seen on {PATHS} paths of {STEPS} steps, and on as many that are "
    "held out. Where the sweeps of a demonstrator by Boltzmann's softmax do not settle, it acts on "
    "the values after the last one.",
    "The rule was written for 480 random MDPs, 480 grids of 5x5 cells and 60 of 10x10 cells. These "
    "60 were run after the results of the others had been published: stable undecided, efficient "
    "no, no worse yes, in both kinds of worlds. Their number, their seeds and the rule are those "
    "that were written down first, and they count as they were meant to: the claims on grids are "
    "about both sizes together, a world of either size counts once, and ten of the 60 only choose "
    "the parameters. Each size is reported by itself too, whatever the verdict is.",
    "What had been seen before the rule was written: with another program and method, 160 fits in "
    "40 random MDPs at four parameters, where 14 of Boltzmann's met a plan that did not settle and "
    "2 ended wrong, and some hundred fits in grids, where none did; mellowmax and log-sum-exp "
    "never did. With this program, to measure how long it takes: 24 random MDPs and 8 grids of "
    "5x5 cells (seed 5), where 1 % of Boltzmann's fits failed in the random MDPs, none in the "
    "grids, and all three took about as many sweeps. The margins are those that were written down "
    "before that. The worlds here have another seed.",
)
CAPTIONS = {
    "curves": Caption(
        "What fits come to at each parameter, and at each softmax's own best one: the share that "
        "fails, the sweeps to within 0.001 nats of the best, the held-out log-likelihood, and what "
        "the greedy policy loses.",
        "A row of four panels for each kind of world; in each a line of five marks for "
        "each of three softmaxes.",
    ),
    "differences": Caption(
        "Mellowmax against Boltzmann's softmax and against log-sum-exp, each at its own best "
        "parameter, with 95 % intervals. Right of the dotted line is what the rule asks for: more "
        "failures of the other one, fewer sweeps, no larger loss, no smaller likelihood.",
        "Four panels, each with an interval for two rivals in random MDPs and in grids.",
    ),
}
SETTINGS = {
    "worlds": "worlds of each kind: random MDPs, grids of 5x5 and of 10x10 cells",
    "choosing": "how many of these choose the parameters",
    "parameters": "the parameters of the softmaxes that are fitted",
    "seed": "seed of the worlds and demonstrations",
}
COLUMNS = {
    "curves": {
        "kind": "the kind of world",
        "model": "the softmax that is fitted",
        "at": "its parameter, or `best` for that of the best held-out likelihood",
        "fits": "how many fits, of all demonstrators",
        "failing": "how many fail",
        "unconverged": "how many meet a plan that does not settle",
        "unfinished": f"how many end while another step promises more than {FAILED:g} nats",
        "short": f"how many end more than {WITHIN:g} nats below the best that is known",
        "evaluations": "the mean number of evaluations",
        "held_out": "the mean log-likelihood of a decision that was held out",
        "loss": "what the greedy policy loses, relative to what the best gains on the uniform one",
        "correlation": "the mean correlation of the fitted with the true rewards",
        "sweeps": "sweeps to within 0.001 nats of the best, their geometric mean",
    },
    "chosen": {
        "kind": "the kind of world",
        "demonstrator": "who acts",
        "model": "the softmax that is fitted",
        "parameter": "its best parameter",
        "held_out": "the mean held-out log-likelihood there, in the worlds that choose",
    },
    "comparisons": {
        "kind": "the kind of world; grids are both sizes together",
        "at": "the parameter of both, or `best` for each one's own",
        "rival": "what mellowmax is compared with",
        "quantity": "stable: failures of the rival minus those of mellowmax; efficient: the "
        "logarithm of the ratio of mellowmax's sweeps to the rival's; loss: mellowmax's minus the "
        "rival's; likelihood: the rival's minus mellowmax's",
        "worlds": "how many worlds",
        "differ": "in how many of them the two differ",
        "mean": "the mean over worlds",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone is as far beyond the margin of the rule",
        "corrected": "the same with Holm's correction, for what the verdict is about",
    },
}
