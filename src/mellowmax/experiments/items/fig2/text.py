"""What the report says of figure 2."""

from __future__ import annotations

from ...item import Caption

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "SARSA does not settle under a Boltzmann policy"
SOURCE = "Figure 2, section 2"
RULE = (
    "In the second half of a run, smoothed over ten episodes, the range of Q(s1, b) exceeds the "
    "distance between the two stable fixed points of planning: in at least 90 % of the runs with "
    "Boltzmann, in at most 10 % with mellowmax. Every Boltzmann run goes from one fixed point to "
    "beyond the other, and some come back. The paper's run is typical of ours: its crossings and "
    "the mean of its values lie within the central 95 % of ours."
)
DEVIATIONS = (
    "Figure 1 prints rounded labels. The two-state MDP here has values that were fitted to figure "
    "4 and round to the printed ones.",
    "The paper shows one run with Boltzmann; the runs with mellowmax and the statistics of many "
    "runs are ours.",
    "The rule was written after statistics of such runs had been seen.",
)
CAPTIONS = {
    "runs": Caption(
        "The values of the two actions of s1 at the end of each episode, averaged over ten "
        "episodes; solid lines are Q(s1, b), dotted ones Q(s1, a). With Boltzmann (left) they "
        "wander between the two stable fixed points of planning, as the paper's run does (pink, "
        "both actions); with mellowmax (right), which the paper does not show, they stay near its "
        "one fixed point. Dashed grey lines are Q(s1, b) at these fixed points.",
        "Two panels of value against episode, 0 to 2000. Left, Boltzmann: our orange lines and the "
        "paper's pink ones swing irregularly between about 0.5 and 1.2. Right, mellowmax: the blue "
        "lines rise within a few hundred episodes and then stay near 0.45 and 0.4.",
    ),
    "spread": Caption(
        "What many runs do. Left: how often Q(s1, b) went from below the lower fixed point to "
        "above the upper one, or back; the pink line is the paper's one run. Right: the range of "
        "Q(s1, b) in the second half of a run; to the right of the dashed line it is larger than "
        "the distance between the two fixed points, so that the run has not settled.",
        "Two histograms over runs. Left: Boltzmann's runs cross one to about seven times, most of "
        "them once, mellowmax's never or hardly ever; the paper's run has five crossings. Right: "
        "all ranges of Boltzmann are to the right of the dashed line, nearly all of mellowmax to "
        "its left.",
    ),
}
SETTINGS = {
    "parameter": "beta of Boltzmann and omega of mellowmax",
    "learning_rate": "learning rate",
    "episodes": "episodes of a run",
    "smoothing": "episodes that are averaged over",
    "runs": "runs of each policy",
    "seed": "seed of the random numbers",
}
COLUMNS = {
    "run": {
        "policy": "boltzmann or mellowmax",
        "episode": "the last of the ten episodes averaged over",
        "q_a": "Q(s1, a) at the end of an episode, averaged over ten",
        "q_b": "Q(s1, b) in the same way",
    },
    "runs": {
        "policy": "boltzmann or mellowmax",
        "run": "the number of the run",
        "crossings": "how often Q(s1, b) went from below the lower stable fixed point to above the "
        "upper one, or back",
        "mean_b": "the mean of Q(s1, b) after the first tenth of the episodes",
        "sd_b": "its standard deviation",
        "range_b": "its range in the second half of the episodes",
    },
}
