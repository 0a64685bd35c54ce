"""A file of CleanRL, run as it is, with what Gymnasium has changed since it was written.

Its files were written for Gymnasium 0.29. Since 1.0 a vector environment begins an episode with a
step of its own unless it is told otherwise, and says in another form how episodes have ended. What
a file writes for TensorBoard is left out, so that its loop is timed and not its notes.
"""

import runpy
import sys
import time
import types

import gymnasium
import numpy as np

LAST = 100
returns, times = [], []
"""The returns of the episodes that have ended, and the time of the CPU before each step of all."""


class Vector(gymnasium.vector.SyncVectorEnv):
    """Environments whose answers are those of Gymnasium 0.29."""

    def __init__(self, makers):
        super().__init__(makers, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)

    def step(self, actions):
        """As Gymnasium's; the episodes that have ended are written down here."""
        times.append(time.process_time())
        *answer, infos = super().step(actions)
        if (final := infos.pop("final_info", None)) is not None:
            returns.extend(np.asarray(final["episode"]["r"])[final["_episode"]].tolist())
            infos["final_observation"] = infos.pop("final_obs")
        return (*answer, infos)


class NoNotes:
    """In place of TensorBoard's writer."""

    def __init__(self, *_):
        pass

    def add_scalar(self, *_):
        """Nothing."""

    add_text = add_scalar

    def close(self):
        """Nothing."""


def run(clone, name, options):
    """The variables of a file of a clone at its end, called with these options."""
    import torch

    torch.set_num_threads(1)  # a network this small is slower with more
    sys.modules["torch.utils.tensorboard"] = types.SimpleNamespace(SummaryWriter=NoNotes)
    gymnasium.vector.SyncVectorEnv = Vector
    sys.path.insert(0, str(clone))
    options = {"cuda": False, **options}
    given = [_flag(option.replace("_", "-"), value) for option, value in options.items()]
    sys.argv = [name, *given]
    return runpy.run_path(str(clone / "cleanrl" / name), run_name="__main__")


def _flag(option, value):
    """As it is typed."""
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    return f"--{option}={value}"
