"""What the report says of figure 4."""

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

TITLE = "Fixed points of planning under Boltzmann's softmax"
SOURCE = "Figure 4, section 4"
RULE = (
    "Between two folds lies a window of beta with more than one fixed point, which contains beta = "
    "16.55. Its ends are within 0.02 of the figure's, 16.50 and 16.78: with the fitted labels, and "
    "with the printed ones. Every point read off the figure lies within 0.006 of a branch at some "
    "beta within 0.005 of its own. The labels were fitted to this figure, so the two claims about "
    "them hold by construction: they only show that some labels round to the printed ones and give "
    "these curves. The evidence is elsewhere: in the window with the printed labels, and in "
    "figures 2, 5, 6 and 7."
)
DEVIATIONS = (
    "Figure 1 prints rounded labels, with which the window lies elsewhere (see the claims). The "
    "two-state MDP of the branches has values that were fitted to figure 4 and round to the "
    "printed ones: its curves agree by construction.",
    "The figure's ticks are printed to two digits. The points are read with the ticks that the fit "
    "gave, which round to the printed ones; the data has both.",
    "The figure shows two fixed points in the window. There is a third between them, which is "
    "unstable.",
)
CAPTIONS = {
    "branches": Caption(
        "The value of an action at every fixed point of planning, by beta. The orange curve, with "
        "the fitted labels, folds back on itself between the two dots: for these betas "
        "there are three fixed points, the middle one unstable (dashed). The paper's points "
        "(pink) lie on it by construction, since the labels were fitted to them. With the labels "
        "that figure 1 prints (grey) the fold is elsewhere. The dotted vertical line is the "
        "paper's beta, 16.55.",
        "Two panels, Q(s1, a) and Q(s1, b) against beta from 16.2 to 17.2. In each an orange "
        "curve rises, turns back at 16.77, returns to 16.495 and rises again, like an S; the "
        "paper's crosses lie on its lower and upper parts. A grey curve of the same form lies to "
        "its right, with folds at 16.87 and 17.05.",
    ),
}
SETTINGS = {
    "beta": "beta of the paper's example",
    "discount": "discount",
    "first": "lowest beta of the branches",
    "last": "highest beta of the branches",
    "step": "longest step along a branch, as a share of the range",
}
_VALUES = {"beta": "the parameter", "q_a": "Q(s1, a)", "q_b": "Q(s1, b)"}
COLUMNS = {
    "branches": {
        "labels": "fitted or printed: the numbers of the two-state MDP",
        "branch": "the number of the curve; rows are in order along it",
        **_VALUES,
        "spectral_radius": "spectral radius of the Jacobian of a sweep",
        "stable": "is the spectral radius below 1?",
    },
    "folds": {"labels": "fitted or printed", **_VALUES},
    "counts": {
        "labels": "fitted or printed",
        "beta": "a beta where the figure was read, or the paper's 16.55",
        "fixed_points": "how many there are, proved to be all",
        "stable": "how many of them are stable",
    },
    "distances": {
        "action": "a or b",
        "branch": "the figure's: lower or upper",
        "beta": "where the figure was read",
        "paper": "Q(s1, action) there",
        "distance": "distance from the nearest branch of the fitted labels, at a beta within 0.005",
    },
}
