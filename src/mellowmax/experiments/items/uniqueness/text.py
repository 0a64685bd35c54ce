"""What the report says of the item on uniqueness."""

from __future__ import annotations

from ...item import Caption
from .verdict import MARGIN, PAYOFFS

__all__ = ["CAPTIONS", "COLUMNS", "DEVIATIONS", "RULE", "SETTINGS", "SOURCE", "TITLE"]

TITLE = "Does mellowmax make fixed points of games unique?"
SOURCE = "Beyond the paper: its section 9 on game-playing algorithms"
RULE = (
    "The claim is about every game, so that one game with several equilibria refutes it, and no "
    f"number of games with one proves it. The game is the zero-sum game with the payoffs {PAYOFFS} "
    "of the row player, at omega 1. Let left be the column player's first action, and the answer "
    "to a probability of left the one that mellowmax gives it against mellowmax's answer of the "
    "row player. The equilibria are the probabilities that are their own answers. The answer moves "
    "continuously, so that one lies wherever answers change sides, from above what they answer to "
    "below or back. Answers are computed at 501 probabilities. One that is nearer than "
    f"{MARGIN:g} to what it answers does not count; rounding moves an answer by less than 1e-10. "
    "The claim is refuted if answers change sides more than once, and undecided otherwise. No "
    "random number is drawn for it. The equilibria that are counted in random games beside it do "
    "not enter the verdict."
)
DEVIATIONS = (
    "The paper has no games. Its section 8 names them as a field where softmax fixed points rule, "
    "and section 9 leaves the fixed points of game-playing algorithms to future work.",
    "The game was made for this, before the rule was written: the row player has three actions "
    "and a payoff at which mellowmax's response moves against the values, which logit's never "
    "does. Its three equilibria were known. It shows that there are such games, not how common "
    "they are.",
    "What had been seen of random games before: with another program, the roots of 6,000 games of "
    "2 x 2 actions on a grid, at the same parameters; and parts of a draft of this item with "
    "another seed. The games here are new.",
    "With two actions for each player all equilibria are found, with a proof for nearly every "
    "game. In larger games a search finds them, so that the count of games with several is a lower "
    "bound.",
    "The parameter of one softmax is not that of the other: the mean regret, how much more the "
    "best action would pay, says at which parameters they are as far from Nash.",
)
CAPTIONS = {
    "answers": Caption(
        "How far the column player's answer is above the probability of left that it answers, in "
        "the zero-sum game, at the parameter 1. Where it is 0 there is an equilibrium: one under "
        "logit, three under mellowmax. A filled dot is stable, an empty one is not.",
        "Two curves. Logit's falls and crosses zero once. Mellowmax's falls, rises a little and "
        "falls again, and crosses zero three times.",
    ),
    "shares": Caption(
        "How many random games have several equilibria, with 95 % intervals, against the mean "
        "regret of the equilibria: to the left they are nearer to Nash. Each point is a parameter; "
        "from right to left beta is 5, 10, 20, 50 and omega 10, 20, 50, 100.",
        "Three panels, one for each kind of game, with a line for each softmax.",
    ),
}
SETTINGS = {
    "games": "random games with two actions each",
    "larger": "random games of each larger kind",
    "betas": "beta of logit",
    "omegas": "omega of mellowmax",
    "seed": "seed of the random games",
}
COLUMNS = {
    "answers": {
        "softmax": "boltzmann, which is logit, or mellowmax",
        "left": "a probability of left",
        "away": "how far the answer is above it",
    },
    "equilibria": {
        "softmax": "boltzmann, which is logit, or mellowmax",
        "left": "the probability of left",
        "value": "what the row player gets",
        "index": "the sign of det(I - J), with the Jacobian J of the response",
        "radius": "the spectral radius of J: the equilibrium is stable if it is below 1",
    },
    "counts": {
        "kind": "the numbers of actions; zero-sum if what one player gets the other pays",
        "softmax": "boltzmann, which is logit, or mellowmax",
        "parameter": "beta or omega",
        "games": "how many games",
        "several": "how many have several equilibria",
        "share": "the share of these",
        "low": "the lower end of its 95 % interval (Clopper-Pearson)",
        "high": "the upper end",
        "proved": "in how many games the equilibria are proved to be all",
        "equilibria": "how many equilibria there are in all",
        "stable": "how many are stable",
        "regret": "how much more the best action would pay, on average over players and equilibria",
    },
}
