"""What the report says of figure 6."""

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

TITLE = "Updates of planning under mellowmax"
SOURCE = "Figure 6, section 7"
RULE = (
    "There is one fixed point, within 0.01 of the figure's mark, and it is proved to be the only "
    "one, at every omega of the range. Every update of the field reduces the distance to it, in "
    "the maximum norm, to at most the discount times what it was."
)
DEVIATIONS = (
    "Figure 1 prints rounded labels. The two-state MDP here has values that were fitted to figure "
    "4 and round to the printed ones.",
    "The paper does not state the ranges of the field. Ours are those of figure 5 here.",
    "The figure shows one omega; the range of omegas is ours.",
    "The tolerance of 0.01 on the marks was chosen after the fixed points had been seen.",
)
CAPTIONS = {
    "field": Caption(
        "Left: what a sweep does to the pair of action values, as an arrow whose colour is the "
        "size of the change, on the same scales as in figure 5. Every arrow leads nearer to the "
        "one fixed point, the filled circle; the pink cross is the paper's mark. Right: the "
        "values of the two actions at the fixed point of each omega, of which the paper shows "
        "16.55 alone.",
        "Left: a field of arrows over Q(s1, b) and Q(s1, a) from 0 to 1 that all lead to one "
        "fixed point near (0.45, 0.40), where the paper's cross is. Right: two curves that rise "
        "smoothly with omega from 1 to 100, without folds.",
    ),
}
SETTINGS = {
    "omega": "omega",
    "discount": "discount",
    "low": "lowest action value of the field",
    "high": "highest action value of the field",
    "resolution": "points of the field along each axis",
    "first": "first omega of the range",
    "last": "last omega of the range",
    "omegas": "how many omegas of the range",
}
COLUMNS = {
    "points": POINTS,
    "field": FIELD,
    "range": {
        "omega": "the parameter",
        "fixed_points": "how many there are",
        "complete": "is it proved, without the non-expansion, that there are no others?",
        "q_b": "Q(s1, b) at the lowest fixed point",
        "q_a": "Q(s1, a) at the lowest fixed point",
        "spectral_radius": "spectral radius of the Jacobian of a sweep there",
    },
}
