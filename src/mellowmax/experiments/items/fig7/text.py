"""What the report says of figure 7."""

from __future__ import annotations

from collections.abc import Mapping

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

TITLE = "Iterations before termination on the two-state MDP"
SOURCE = "Figure 7, section 7"
RULE = (
    "A choice is labels, initial values, a delta, and whether the last sweep counts. Its distance "
    "to the figure is the mean of |log(ours / paper)| over the 55 points read off it, max once. "
    "The nearest choice has the smallest distance on the grid. The stated choice has the fitted "
    "labels, initial values 0 and delta 1e-4 (the power of ten that brings max nearest to its "
    "line), and counts the last sweep. The level of max: at the nearest choice it takes within 5 % "
    "of the paper's 185 iterations. The peak of boltz: at both choices it lies between beta 16 and "
    "17.5 and is at least 5 times what max takes (paper: 18 times); at the nearest choice it is "
    "within 0.1 of the paper's beta, 16.51. mm: at both choices it takes no more than max at every "
    "omega of the figure, and at the stated one at most one more than boltz at every parameter up "
    "to 60. The end: at the nearest choice boltz at beta 60 takes at least 10 % less than max "
    "(paper: 17 %). The curves: at the nearest choice the mean of |log(ours / paper)| is below log "
    "1.1 for boltz and for mm. "
    "All this is for the paper's Algorithm 2: sweeps in place, up to the first one that changes "
    "every value by less than delta. Synchronous sweeps, and runs that end when the values are "
    "within delta of their limits, are shown too; they do not affect the verdict."
)
DEVIATIONS = (
    "The initial values and delta are not stated: curves are shown for initial values 0 and four "
    "deltas, and for the choice nearest to the figure.",
    "The labels of figure 1 are rounded. Those fitted to figure 4 are used for the stated curves; "
    "the search tries both.",
    "Algorithm 2 sums rewards without their probabilities; they are taken as the expected reward "
    "of the action.",
    "A run that takes longer than the limit counts as the limit.",
    "Synchronous sweeps, and runs that end when the values are near their limits, are not the "
    "paper's Algorithm 2. They are searched too, since the paper's own program is not known.",
    "The rule was written after curves for some of these choices had been seen.",
)
CAPTIONS = {
    "iterations": Caption(
        "Sweeps that planning takes, by parameter, on one scale: ours as lines, the paper's as "
        "open marks of the same colour. Above, a run ends as in Algorithm 2, with a sweep that "
        "changes little: with the stated choice of initial values and delta, and with the one that "
        "is nearest to the paper. The peak of boltz is to the right of the paper's, and lower. "
        "Below, a run ends when its values are near their limits, with sweeps in place and "
        "synchronous: that gives a spike where the paper has it.",
        "Four panels of iterations, on a logarithmic scale, against the parameter from 1 to 60. "
        "In each, boltz rises to a spike near 16.5 and falls to the level of max, a flat line, "
        "and mm rises slowly below both. The paper's circles of boltz have their spike of 3322 at "
        "16.51, which the lower panels follow and the upper ones do not.",
    ),
    "distance": Caption(
        "How far the nearest initial values are from the paper's points, as a mean factor (1 would "
        "be equal), for each delta. Blue: a run ends with a sweep that changes little, as in "
        "Algorithm 2. Orange: it ends when the values are near their limits. Solid lines are "
        "sweeps in place, dashed ones synchronous.",
        "Four curves of the mean factor against delta from 0.000001 to 0.01. The orange ones have "
        "their minimum near 0.003 and a factor of about 1.1, the blue ones near 0.00006 with a "
        "factor of about 1.3.",
    ),
}
SETTINGS = {
    "initial": "grid of initial values: first, last, step",
    "deltas": "grid of deltas, as powers of 10: first, last, step",
    "stated_initial": "initial value of the stated choice",
    "stated_deltas": "deltas of the stated curves",
    "limit": "most sweeps of a run",
    "discount": "discount",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "stated": {
        "labels": "the labels of figure 1: printed or fitted",
        "initial": "all action values of s1 before the first sweep",
        "delta": "a sweep whose changes are all smaller ends the run",
        "operator": "max, boltz or mm",
        "parameter": "beta or omega; 0 for max",
        "iterations": "sweeps, the last one counted; the limit where it was reached",
    },
    "rules": {
        "rule": "when a run ends: by the change of a sweep, or by the distance from the limits",
        "sweeps": "in-place, as in Algorithm 2, or synchronous",
        "labels": "of the choice that is nearest to the figure by this rule: printed or fitted",
        "initial_a": "its Q(s1, a) before the first sweep",
        "initial_b": "its Q(s1, b) before the first sweep",
        "delta": "its tolerance for the change or the distance",
        "last": "does it count the last sweep?",
        "factor": "the mean factor between its points and the figure's",
        "factor_boltz": "the same for boltz alone",
        "factor_mm": "the same for mm alone",
        "max": "the iterations of max (paper: 185)",
        "peak": "the most iterations of boltz (paper: 3322)",
        "peak_beta": "where boltz takes them (paper: 16.51)",
    },
    "nearest": {
        "rule": "change or distance",
        "sweeps": "in-place or synchronous",
        "labels": "the labels of figure 1: printed or fitted",
        "delta": "the tolerance: of the change of a sweep, or of the distance from the end",
        "initial_a": "Q(s1, a) before the first sweep: of the grid, the nearest for this delta",
        "initial_b": "Q(s1, b) before the first sweep",
        "last": "is the last sweep counted?",
        "distance": "mean |log(ours / paper)| over the points of the figure",
        "operator": "max, boltz or mm",
        "parameter": "beta or omega, as read off the figure",
        "iterations": "what that choice takes; the limit where it was reached",
        "paper": "what the figure shows",
    },
}
