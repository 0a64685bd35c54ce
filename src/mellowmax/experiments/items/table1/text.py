"""What the report says of the table of section 7.1."""

from __future__ import annotations

from collections.abc import Mapping

from ...item import Caption
from .printed import PRINTED

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "Value iteration on random MDPs"
SOURCE = "The table of section 7.1"
RULE = """\
A setting is beta = omega, a discount, a delta, and whether the mean counts MDPs that did not
terminate as 1000 iterations or leaves them out. Each of the six printed numbers is compared with
ours: counts by Fisher's exact test of two proportions (which for many MDPs is the binomial range of
200), means by the normal test with our spread, for 200 MDPs against ours. Both give a z, and a
number is reproduced where |z| <= 1.96 (95 %). The nearest setting has the smallest root mean square
of the six z on the grid, where all settings have the same MDPs. The claims are the six numbers at
the nearest setting, from the most MDPs that were run there, and that mm is better than boltz there
in all three respects. The summary names the numbers that no setting of the grid reproduces, and the
most that one setting reproduces together. Two numbers of mm can only be 0, by theorem, and are no
evidence: they are marked. All this is for sweeps in place, the paper's Algorithm 2; synchronous
sweeps are run too, and do not affect the verdict."""
DEVIATIONS = (
    "beta = omega, delta, the discount and the initial values are not stated: a grid of the first "
    "three, and initial values of 0.",
    "Fixed points are counted by a search from many starts, for boltz; it is checked by the sum of "
    "their indices, and can still miss a pair. mm has one fixed point by the paper's theorem.",
    "What enters the mean for an MDP that did not terminate is not stated: 1000 iterations, or "
    "nothing.",
    "Synchronous sweeps are run on the grid too, since the paper's own program is not known; they "
    "do not enter the verdict.",
    "Negative entries of the raw transitions become 0; the paper does not mention them.",
    "The rule was written after runs on 1,000 other MDPs (seed 0) had been seen; deltas were made "
    "finer, and the synchronous sweeps added, after the first results.",
)
CAPTIONS = {
    "iterations": Caption(
        "The mean number of iterations, by beta = omega, for sweeps in place: boltz on the left, "
        "mm on the right, a row for each discount, a line for each delta, all on one scale. The "
        "pink lines are the paper's means, 231.65 and 201.32. A setting that reproduces both has "
        "the line of one delta on the pink line in both panels of a row.",
        "Two columns of panels of mean iterations against beta = omega on a logarithmic axis. "
        "Curves of mm lie below those of boltz with the same delta; both rise with the discount "
        "and with a smaller delta. The paper's lines are crossed by some curves of the larger "
        "discounts.",
    ),
    "unterminated": Caption(
        "The share of MDPs that did not terminate within 1000 iterations, by beta = omega, in the "
        "same way. The paper's line for boltz is at 4 %, that for mm at 0.",
        "Two columns of panels of shares against beta = omega. Under mm none fails except for the "
        "smallest deltas with the largest discounts; under boltz some do at middle values of beta.",
    ),
    "several": Caption(
        "The share of MDPs in which Boltzmann's softmax has more than one fixed point, by beta "
        "and discount, with 95 % intervals. The pink line is the paper's count, 3 of 200. "
        "Mellowmax has one fixed point always.",
        "Four curves of shares against beta. They are 0 for small beta, rise with the discount, "
        "and are of the size of the paper's 1.5 % at most for middle and large beta.",
    ),
}
SETTINGS = {
    "grid": "MDPs of every setting of the grid",
    "rates": "MDPs of the settings with rates",
    "parameters": "beta = omega of the grid",
    "discounts": "discounts of the grid",
    "exponents": "deltas of the grid, as powers of 10",
    "rated": "settings with rates: beta = omega, discount",
    "rated_exponents": "deltas of the rates, as powers of 10",
    "limit": "iterations after which an MDP does not terminate",
    "seed": "seed of the random MDPs",
}
_SETTING = {
    "sweeps": "in place, as in Algorithm 2, or synchronous",
    "beta": "beta of boltz, and omega of mm",
    "discount": "discount of the MDPs",
    "delta": "a sweep whose changes are all smaller ends the run",
}
_COUNTED = {
    **_SETTING,
    "operator": "boltz or mm",
    "mdps": "how many MDPs",
    "several": "how many have more than one fixed point, as far as the search finds them",
    "unstable": "how many have no fixed point at which synchronous sweeps are stable",
    "doubtful": "how many have fixed points whose indices do not sum to 1: one is missing",
    "unterminated": "how many took more than the limit of 1000 iterations",
    "iterations": "their mean number, where those that did not terminate count as the limit",
    "error": "the standard error of that mean",
    "terminated_iterations": "the mean of those that terminated",
    "terminated_error": "its standard error",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "sample": _COUNTED,
    "rates": {
        **_COUNTED,
        **{
            f"{name}_{end}": f"the {which} end of the 95 % interval (Clopper-Pearson) of the share"
            for name in ("unterminated", "several")
            for end, which in (("low", "lower"), ("high", "upper"))
        },
    },
    "settings": {
        **_SETTING,
        "left_out": "does the mean leave out MDPs that did not terminate?",
        **{f"z_{o}_{n}": f"z of the printed number: {n} under {o}" for o, n in PRINTED},
        "reproduced": "how many of the six have |z| <= 1.96",
        "distance": "the root mean square of the six z",
    },
}
