"""What is trained for figure 11, part by part.

The figure itself is ten settings in the environment of the paper's time. Beside it are the same in
today's environment, with a baseline, with mellowmax's temperature held still, and over a finer grid
of parameters.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from .lander_runs import setting_rows
from .readings import LEARNING_RATE, READINGS, Reading, Weighing

__all__ = ["BASELINE", "FIGURE", "FINER", "HEIGHTS", "HELD", "TODAY", "Config", "settings"]

FIGURE, TODAY, BASELINE, HELD, FINER = (
    "figure",
    "today",
    "baseline",
    "temperature held",
    "finer grid",
)
"""The parts."""
HEIGHTS = {"2016": (FIGURE, BASELINE, HELD, FINER), "v3": (TODAY,)}
"""How the height is observed in each of them."""
WITH_BASELINE = Reading("reward to go, others as baseline", 0.99, Weighing(to_go=1.0, others=1.0))
"""What learns well, whatever the paper did."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What is run."""

    betas: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 10.0)
    """Figure 11."""
    omegas: tuple[float, ...] = (3.0, 5.0, 7.0, 8.0, 11.0)
    """Figure 11."""
    runs: int = 400
    """Figure 11."""
    other_runs: int = 100
    """What an accelerator can do in a few minutes."""
    runs_of_a_row: int = 50
    """Divides both."""
    finer: int = 20
    """The same: betas in steps of 0.5, omegas in steps of 1."""
    episodes: int = 40_000
    """Section 7.3."""
    batch: int = 10
    """Section 7.3."""
    hidden: int = 16
    """Units of the hidden layer (section 7.3)."""
    reading: str = "reward to go, others as baseline"
    """The reading that is nearest to the paper's curves, of those with its learning rate."""
    discount: float = 1.0
    """The same."""
    seed: int = 11
    """Of the random numbers."""


def settings(config: Config, height: str) -> pd.DataFrame:
    """All that is trained in an environment, as `lander_runs.setting_rows` has it."""
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    steps = np.arange(1, config.finer + 1)
    finer = {"boltzmann": (0.5 * steps).tolist(), "mellowmax": (1.0 * steps).tolist()}
    stated = [reading for reading in READINGS if reading.learning_rate == LEARNING_RATE]
    of_paper = (config.reading, config.discount)
    (plain,) = (reading for reading in stated if (reading.name, reading.discount) == of_paper)
    many, few = (runs // config.runs_of_a_row for runs in (config.runs, config.other_runs))
    of_parts = {
        FIGURE: setting_rows(FIGURE, plain, parameters, repeats=many),
        TODAY: setting_rows(TODAY, plain, parameters, repeats=many),
        BASELINE: setting_rows(BASELINE, WITH_BASELINE, parameters, repeats=few),
        HELD: setting_rows(
            HELD, plain, {"mellowmax": config.omegas}, repeats=few, through_temperature=False
        ),
        FINER: setting_rows(FINER, plain, finer, repeats=few),
    }
    return pd.DataFrame([row for part in HEIGHTS[height] for row in of_parts[part]])
