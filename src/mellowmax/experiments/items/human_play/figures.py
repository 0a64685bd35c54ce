"""How the item on human play is drawn: what mellowmax gains over logit in each paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ... import style
from .verdict import MODELS

__all__ = ["draw_gains"]


def draw_gains(papers: pd.DataFrame) -> Figure:
    """A row for each paper and a panel for each model: the gain for each hundred decisions."""
    names = list(papers["paper"].unique())
    figure, axes = style.figure(2, height=1.2 + 0.32 * len(names))
    colour = style.COLOURS["mellowmax"]["color"]
    for axis, (model, words) in zip(axes, MODELS.items(), strict=True):
        rows = papers[papers["model"] == model].set_index("paper").loc[names]
        gains, places = 100 * rows["gain"] / rows["decisions"], np.arange(len(names))
        axis.axvline(0, color="#555555", lw=1)
        axis.hlines(places, 0, gains, color=colour, lw=1)
        for fresh, fill in ((False, "white"), (True, colour)):
            which = rows["fresh"].to_numpy() == fresh
            axis.plot(gains[which], places[which], "o", color=colour, mfc=fill, ms=6)
        axis.set(title=words, xlabel="nats for each 100 decisions")
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.set_yticks(places, names if axis is axes[0] else [""] * len(names), fontsize=9)
    return figure
