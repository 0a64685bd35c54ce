"""What the report says of figure 3."""

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

TITLE = "Which operators are non-expansions"
SOURCE = "Figure 3, section 3"
RULE = (
    "No pair of vectors has a ratio |f(x) - f(y)| / max|x - y| above 1 + 1e-9 for the maximum, the "
    "mean, epsilon-greedy and mellowmax; some pair has one for Boltzmann's softmax. The pairs are "
    "drawn at random, and found by a search for the largest ratio."
)
DEVIATIONS = (
    "The figure is an illustration for the maximum, without numbers. The measurement, and the "
    "other four operators, are ours.",
    "The paper gives no parameters here. beta and omega are 16.55, as in figures 5 and 6; epsilon "
    "is 0.1. Vectors have two entries, as the two-state MDP has two actions.",
)
CAPTIONS = {
    "pairs": Caption(
        "Each dot is a pair of vectors x and y: how far apart they are, and how far apart the "
        "operator's values of them are. On and below the grey line of slope 1 the operator moves "
        "no pair apart. Boltzmann's softmax alone has dots above it, drawn darker; the star is the "
        "pair with the largest ratio that was found. The bars are the largest ratio of each "
        "operator, against 1. All of it is measured here: the paper's figure has no numbers.",
        "Five scatter plots, one for each operator, and a bar chart. For max, mean, epsilon-greedy "
        "and mellowmax every dot lies on or below the diagonal and the bar ends at 1; for "
        "Boltzmann many dots lie above it and the bar ends at 1.2.",
    ),
}
SETTINGS = {
    "parameter": "beta of Boltzmann and omega of mellowmax",
    "epsilon": "epsilon of epsilon-greedy",
    "pairs": "random pairs of each operator",
    "rounds": "rounds of the search for the largest ratio",
    "seed": "seed of the random numbers",
}
_PAIR = {
    "x1": "the first entry of x",
    "x2": "the second entry of x",
    "y1": "the first entry of y",
    "y2": "the second entry of y",
    "distance": "max|x - y|",
    "moved": "|f(x) - f(y)|",
}
COLUMNS = {
    "ratios": {
        "operator": "its name",
        "parameter": "its parameter in words, or none",
        "pairs": "how many random pairs there are",
        "above": "how many of them have a ratio above 1 + 1e-9",
        "largest": "the largest ratio, over the random pairs and the search",
    }
    | {name: f"{text}, for the pair with the largest ratio" for name, text in _PAIR.items()},
    "pairs": {"operator": "its name"} | _PAIR,
}
