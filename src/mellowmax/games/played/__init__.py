"""What people did in games that they played once, or for the first time.

`games.jsonl` has a game a line: the paper, the name of the game, one matrix of payoffs for a
symmetric game and two for others (rows are the first player's actions in both), and how often each
action was chosen: one list for a symmetric game, with both players pooled. The numbers are facts of
the papers. They were transcribed from them in the repositories that `_PAPERS` names, and slips that
showed were mended: in game 11 of Haruvy, Stahl and Wilson a count of "8 35" is taken for 8, and in
game 4b of Costa-Gomes, Crawford and Broseta one count is taken for 20, which gives as many choices
as their other games have. In game 6 of the former there is one choice fewer than in others.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import ClassVar, overload

import numpy as np

from ..._fixed_points.maps import read_only
from ..game import Game, Profile

__all__ = ["HumanPlay", "PlayedGame", "human_play"]

_MATRIX_GAMES = "github.com/polomsca/ml-matrix-game"
_OOTTEST = "github.com/PhilippKuelpmann/oottest, MIT"
_PAPERS = {
    "stahlwilson1994": ("Stahl and Wilson (1994)", _MATRIX_GAMES),
    "stahlwilson1995": ("Stahl and Wilson (1995)", _MATRIX_GAMES),
    "rogersetal2009": ("Rogers, Palfrey and Camerer (2009)", _MATRIX_GAMES),
    "haruvyetal2001": ("Haruvy, Stahl and Wilson (2001)", _MATRIX_GAMES),
    "haruvystahl2007": ("Haruvy and Stahl (2007)", _MATRIX_GAMES),
    "stahlharuvy2008": ("Stahl and Haruvy (2008)", _MATRIX_GAMES),
    "goereeholt2001": ("Goeree and Holt (2001)", _MATRIX_GAMES),
    "rydvalortmann2005": ("Rydval and Ortmann (2005)", _MATRIX_GAMES),
    "haruvystahl1998": ("Haruvy and Stahl (1998)", _MATRIX_GAMES),
    "costa-gomes2001": ("Costa-Gomes, Crawford and Broseta (2001)", _MATRIX_GAMES),
    "kuelpmann-kuzmics": ("Kuelpmann and Kuzmics", _OOTTEST),
}
"""The papers, and the repositories of the transcriptions."""


@dataclasses.dataclass(frozen=True, eq=False)
class PlayedGame:
    """A game, and how often people chose each action."""

    paper: str
    """Who ran the experiment, and when."""
    game: Game
    counts: Profile
    """How often each action was chosen, for each player; one array for both players pooled."""
    note: str
    """What is special about the counts, such as that they come from percentages."""
    source: str
    """The repository that has the transcription."""

    @property
    def decisions(self) -> float:
        """How many choices there were."""
        return float(sum(own.sum() for own in self.counts))


@dataclasses.dataclass(frozen=True, eq=False)
class HumanPlay(Sequence[PlayedGame]):
    """The games; printing it shows how many each paper has, and the sources."""

    played: tuple[PlayedGame, ...]
    warning: ClassVar[str] = (
        "The numbers were transcribed from the papers by others, and were not checked against them."
    )

    @property
    def papers(self) -> tuple[str, ...]:
        """Each paper once, in order."""
        return tuple(dict.fromkeys(one.paper for one in self.played))

    def of(self, paper: str) -> HumanPlay:
        """The games of one paper."""
        return HumanPlay(tuple(one for one in self.played if one.paper == paper))

    @overload
    def __getitem__(self, index: int) -> PlayedGame: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PlayedGame, ...]: ...
    def __getitem__(self, index: int | slice) -> PlayedGame | tuple[PlayedGame, ...]:
        return self.played[index]

    def __len__(self) -> int:
        return len(self.played)

    def __iter__(self) -> Iterator[PlayedGame]:
        return iter(self.played)

    def __str__(self) -> str:
        lines = [f"{'games':>5}  {'decisions':>9}  paper, and the source of the transcription"]
        for paper in self.papers:
            own = self.of(paper)
            decisions = sum(one.decisions for one in own)
            lines.append(f"{len(own):5d}  {decisions:9.0f}  {paper}; {own[0].source}")
        return "\n".join([*lines, self.warning])


def human_play() -> HumanPlay:
    """What people did in 166 games that they played once, or for the first time.

    The numbers were not checked against the papers.

    Returns:
        A sequence of `PlayedGame`.

    Examples:
        >>> played = human_play()
        >>> print(len(played), round(sum(one.decisions for one in played)))
        166 16606
        >>> one = played.of("Goeree and Holt (2001)")[1]
        >>> print(one.game, *one.counts)
        Game(2 x 2, 'asymmetricmatchingpennies') [24.  1.] [ 4. 21.]
        >>> print(played.warning)
        The numbers were transcribed from the papers by others, and were not checked against them.
    """
    text = (resources.files(__package__) / "games.jsonl").read_text()
    return HumanPlay(tuple(map(_played, text.splitlines())))


def _played(line: str) -> PlayedGame:
    fields = json.loads(line)
    payoffs = [np.array(payoff) for payoff in fields["payoffs"]]
    name = fields["game"]
    game = Game.symmetric(*payoffs, title=name) if len(payoffs) == 1 else Game(payoffs, title=name)
    key, _, kind = fields["paper"].partition(" ")
    paper, source = _PAPERS[key]
    counts = tuple(read_only(own) for own in fields["counts"])
    title = f"{paper}, {kind}" if kind else paper
    return PlayedGame(title, game, counts, fields["note"], source)
