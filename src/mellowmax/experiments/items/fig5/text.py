"""What the report says of figure 5."""

from __future__ import annotations

from ...item import Caption
from ..update_field import FIELD, POINTS

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "Updates of planning under Boltzmann's softmax"
SOURCE = "Figure 5, section 4"
RULE = (
    "There are two stable fixed points, within 0.01 of the figure's two marks: with the fitted "
    "labels, and with the printed ones. Somewhere on the grid a sweep leads farther from every "
    "fixed point, in the maximum norm, with either set of labels. On the segment between the outer "
    "fixed points of the fitted labels no sweep changes a value by more than 1 % of their "
    "distance. The labels were fitted to figure 4, whose curves have these fixed points at the "
    "same beta: that they are where figure 5 marks them holds by construction. What goes beyond is "
    "in the printed labels, and in what a sweep does elsewhere."
)
DEVIATIONS = (
    "Figure 1 prints rounded labels. The two-state MDP here has values that were fitted to figure "
    "4 and round to the printed ones; with the printed ones there is one fixed point at this beta.",
    "The figure marks two fixed points. There is a third between them, which is unstable, so that "
    "no sequence of sweeps ends there.",
    "The paper does not state the ranges of the field. Ours are chosen to hold all fixed points.",
    "The tolerance of 0.01 on the marks was chosen after the fixed points had been seen. The "
    "claims about the printed labels were added after it was known that these have one fixed "
    "point.",
)
CAPTIONS = {
    "field": Caption(
        "Left: what a sweep does to the pair of action values, as an arrow whose colour is the "
        "size of the change. Filled circles are stable fixed points, the empty one is unstable, "
        "pink crosses are the paper's marks, with bars where they were read as a range. In the "
        "shaded area a sweep leads farther from the fixed point that is nearest. Right: the "
        "change that a sweep makes on the straight line between the outer fixed points, in "
        "ten-thousandths; the circles are the fixed points again.",
        "Left: a field of arrows over Q(s1, b) and Q(s1, a) from 0 to 1. They lead to a diagonal "
        "line on which three fixed points lie, at Q(s1, b) = 0.59, 0.78 and 0.88; the paper's two "
        "crosses are at the outer two. Small shaded areas lie beside the fixed points. Right: a "
        "curve that is 0 at the three fixed points and below 0.0004 everywhere between them.",
    ),
}
SETTINGS = {
    "beta": "beta",
    "discount": "discount",
    "low": "lowest action value of the field",
    "high": "highest action value of the field",
    "resolution": "points of the field along each axis",
    "between": "points between the fixed points",
}
COLUMNS = {
    "points": POINTS,
    "field": FIELD,
    "between": {
        "share": "how far along the segment from the lowest to the highest fixed point",
        "q_b": "Q(s1, b) before a sweep",
        "q_a": "Q(s1, a) before it",
        "change": "the larger of the changes of the two by a sweep",
    },
    "printed_points": POINTS,
    "printed_field": FIELD,
}
