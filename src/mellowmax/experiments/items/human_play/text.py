"""What the report says of the item on human play."""

from __future__ import annotations

from ....games import HumanPlay
from ...item import Caption
from .verdict import CRITICAL, MODELS

__all__ = ["CAPTIONS", "COLUMNS", "DEVIATIONS", "RULE", "SETTINGS", "SOURCE", "TITLE"]

TITLE = "Is mellowmax a good replacement in quantal response and level-k?"
SOURCE = "Beyond the paper: its section 8 on human decisions in games"
RULE = (
    f"The models are {' and '.join(MODELS.values())}. Each is fitted with logit and with mellowmax "
    "to the games of each paper, with as many parameters. The score of a game is its "
    "log-likelihood under a fit to the other games of its paper, and the gain is mellowmax's score "
    "minus logit's. z is the sum of the gains over its standard error, where games with the same "
    "payoffs count as one observation. Only games count that had not been looked at when this was "
    f"written. The claim is supported if z is above {CRITICAL:g} for both models, partly if it is "
    f"for one of them and for none below -{CRITICAL:g}, refuted if it is below -{CRITICAL:g} for "
    "one, and not decided otherwise. Without such games it is not decided on fresh data, and what "
    "is found in the others is only reported."
)
DEVIATIONS = (
    "The paper has no data on games. Its section 8 says that mellowmax could potentially make a "
    "good replacement of the softmax in quantal level-k.",
    "All games here had been looked at, with another program, before the rule was written, among "
    "others by the same score. So the verdict is about games that are not here yet. A paper whose "
    "games are added counts as fresh.",
    HumanPlay.warning + " Some counts come from percentages, and are not whole.",
    "The likelihood of quantal response is that of the first equilibrium on the principal branch. "
    "Quantal level-k has the levels 0, 1 and 2, their shares, the parameters of the levels 1 and "
    "2, and what level 2 believes that level 1 has.",
    "Counts are of all people together: nothing is said of how single ones differ.",
)
CAPTIONS = {
    "gains": Caption(
        "How much likelier mellowmax makes the games of each paper than logit, if each game is "
        "left out of its fit, in nats for each hundred decisions. To the right of the line "
        "mellowmax is better. A dot is empty if the games had been looked at, and full if they are "
        "fresh.",
        "Two columns of dots, one for each model, with a row for each paper.",
    ),
}
SETTINGS = {
    "papers": "papers",
    "models": "models",
}
_SIDES = {
    "boltzmann": "the log-likelihood under the fit with logit, to all games of the paper",
    "mellowmax": "the same with mellowmax",
    "boltzmann_left_out": "the log-likelihood under the fit with logit to the other games",
    "mellowmax_left_out": "the same with mellowmax",
    "gain": "mellowmax's log-likelihood of what is left out minus logit's",
}
_KEYS = {
    "paper": "who ran the experiment, and when",
    "model": "qre for quantal response, qlk for quantal level-k",
    "fresh": "had the games not been looked at when the rule was written?",
}
COLUMNS = {
    "games": {
        **_KEYS,
        "game": "what the paper calls the game",
        "payoffs": "a number for each different matrix of payoffs",
        "decisions": "how many choices people made",
        "uniform": "the log-likelihood if all choose at random",
        **_SIDES,
    },
    "papers": {
        **_KEYS,
        "games": "how many games",
        "decisions": "how many choices people made",
        "uniform": "the log-likelihood if all choose at random",
        **_SIDES,
    },
    "totals": {
        "model": _KEYS["model"],
        "fresh": _KEYS["fresh"],
        "games": "how many games",
        "payoffs": "how many different matrices of payoffs they have",
        "gain": "the sum of the gains",
        "error": "its standard error",
        "z": "their quotient",
    },
}
