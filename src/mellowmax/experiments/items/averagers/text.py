"""What the report says of the item on averagers."""

from __future__ import annotations

from ...item import Caption
from .verdict import BETA, COMPARED, FALSE, MARGIN

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "Planning with averaged values"
SOURCE = "Beyond the paper: its section 9 on function approximation"
RULE = (
    "A problem fails if sweeps from 0 or from 25, which no values exceed, do not settle within "
    "1000, or if it has several stable fixed points. Values have settled when a sweep changes none "
    f"by 1e-6. The verdict is about beta = omega = {BETA:g}, and about {len(COMPARED)} comparisons "
    "of an averager with problems without one, or of a coarse grid with a fine one. Each compares "
    "the shares of independent problems that fail by Fisher's exact test, with Holm's correction "
    f"for the {len(COMPARED)} of them. Boltzmann's softmax fails more often with the averager if "
    f"its share is larger with p < {FALSE:g}. It does not if its share is smaller with "
    f"p < {FALSE:g}, or if the 95 % interval of the difference is below {100 * MARGIN:g} "
    "percentage point; otherwise it is undecided. If there is no difference in truth, one is found "
    "anywhere at most once in 20 times; if the share is larger by that point in truth, that is "
    "denied at most once in 40 times for each comparison. Boltzmann's softmax can fail with an "
    "averager if it does in any problem. Mellowmax never fails if it does in none, at any "
    "parameter. That is a theorem (section 5.1): a sweep brings values nearer by the discount, so "
    "that they settle within 850 sweeps, and the count is a check of the program."
)
DEVIATIONS = (
    "The paper has no function approximation. Section 9 names it as future work, and says that the "
    "importance of a non-expansion is well established there, with a reference to Gordon (1995). "
    "An averager makes an MDP of its anchors, in which a non-expansion has one fixed point. The "
    "question here is whether Boltzmann's softmax needs the warning.",
    "What had been seen before the rule was written: with another program, 2,160 random MDPs and "
    "as many Gaussian averages, of which 6.7 % and 0.6 % did not settle; with this one, up to 600 "
    "problems of each kind (seed 0) at the same parameters, where at 16.55 about 7 % of the random "
    "MDPs failed, and about 1 % of the others. The problems here have another seed.",
    "What was changed after that look: the larger MDPs without an averager were added, since what "
    "looks like the averager's doing may be that of their size, and the fine grid was cut from 40 "
    "anchors to 20, for time. No other averager, width or grid was tried.",
    "No paper states how many problems there should be. A first run with 2,000 of each kind (seed "
    "1995) left one comparison undecided, that of nearest anchors with the random MDPs that are "
    "averaged: 1.5 % against 1.2 %, with an interval that ended at 1.01 percentage points. The "
    "answer of the other four was no. The rule has stayed, and that run does not count: all "
    "problems here are new, and at the paper scale there are four times as many.",
    "The discount is 0.98, that of figure 1. Rewards are at most 0.5, as in the paper's random "
    "MDPs.",
    "The search for fixed points can miss a pair of them: the count of several limits is a lower "
    "bound.",
)
CAPTIONS = {
    "shares": Caption(
        "The share of problems in which planning fails, with 95 % intervals: with an averager or "
        f"on the coarse grid below what each is compared with. The verdict is about beta {BETA:g}.",
        "Six kinds of problems, one below the other, each with three shares for Boltzmann's "
        "softmax, one for each beta, and one for mellowmax, which is 0 everywhere.",
    ),
    "ways": Caption(
        f"How planning with Boltzmann's softmax fails at beta {BETA:g}: the problem has no stable "
        "fixed point; sweeps are slow there, or go round one; or they have several limits.",
        "A bar for each of the six kinds of problems, in up to three colours.",
    ),
}
SETTINGS = {
    "problems": "problems of each kind",
    "parameters": "beta = omega",
    "limit": "sweeps after which values have not settled",
    "tolerance": "change of a sweep below which they have",
    "seed": "seed of the random problems",
}
COLUMNS = {
    "shares": {
        "problem": "random: the paper's random MDPs; large: with four times as many states; "
        "gaussian and nearest: such MDPs with an averager; fine line and coarse line: moves along "
        "a line, interpolated between 20 or between 2 to 10 anchors",
        "operator": "boltzmann or mellowmax",
        "parameter": "beta or omega",
        "problems": "how many problems",
        "failing": "how many do not settle, or have several stable fixed points",
        "unsettled": "how many do not settle from one of the initial values",
        "endless": "how many of these have no stable fixed point, as far as the search finds them",
        "several": "how many have several stable fixed points, as far as the search finds them",
        "share": "the share that fails",
        "low": "the lower end of its 95 % interval (Clopper-Pearson)",
        "high": "the upper end",
    },
    "comparisons": {
        "averager": "the problems with an averager, or on the coarse grid",
        "baseline": "what they are compared with",
        "difference": "how much larger their share is that fails under Boltzmann's softmax",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference, by Fisher's exact test",
        "corrected": "the same with Holm's correction",
    },
}
