"""Figure 9 in miniature, for tests of what is around it; as a script, the command line with it.

There are eight cells and one small figure. The cells are made up, for what is tested is that they
survive, not what SARSA learns; where real ones are asked for, there are two, of one program.
"""

from __future__ import annotations

import os
import resource
import sys
import time

import numpy as np
import pandas as pd

from mellowmax.experiments import Verdict, style
from mellowmax.experiments.items import fig9

SMALL = fig9.Config((0.1, 0.2), (1.0, 2.0, 3.0), (0.1, 0.4), 1280, runs=3, shown=())
REAL = fig9.Config((0.1, 0.2), (), (0.1, 0.4), 1280, runs=3, shown=())
N_CELLS = 8
SECONDS_OF_A_CELL = 0.1
RUN = fig9.run


def made_up(spec):
    """A table that depends on the specification alone, as that of a cell must."""
    time.sleep(SECONDS_OF_A_CELL)
    rates = np.array(spec["learning_rates"])
    names = {name: spec[name] for name in ("policy", "parameter", "runs")}
    rewards = {"mean_reward": rates / (1 + spec["parameter"]), "standard_error": 0.01}
    planned = {"planned": 0.5, "planned_converged": True}
    return pd.DataFrame(names | {"learning_rate": rates, "last_tenth": 0.3} | rewards | planned)


def install(patch=setattr, real=False):
    """Put it in place of figure 9."""
    patch(fig9, "SCALES", dict.fromkeys(("quick", "paper"), REAL if real else SMALL))
    patch(fig9, "plot", lambda tables: {"rewards": style.figure()[0]})
    patch(fig9, "planned_reward", lambda softmax, slip: (0.5, True))
    patch(fig9, "run", RUN if real else made_up)
    if real:
        patch(fig9, "POLICIES", fig9.POLICIES[:1])
        patch(fig9, "judge", lambda tables: Verdict((), "It was not judged."))


if __name__ == "__main__":
    if "LARGEST_FILE" in os.environ:  # a disk that is full, as far as this process can tell
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LARGEST_FILE"]),) * 2)
    install(real="REAL" in os.environ)
    from mellowmax.cli import main

    try:
        main()
    finally:
        assert "mellowmax.deep" not in sys.modules, "figure 9 needs no networks"
