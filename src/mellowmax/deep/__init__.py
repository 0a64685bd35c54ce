"""Layer 5: policy gradient, with a network whose last layer is any softmax (section 7.3).

`reinforce` makes a learner, `train` lets runs of it learn in an environment, `evaluate` measures
what they have learned.
"""

from .checkpoint import Saved, load_policy
from .episodes import Episodes
from .evaluate import Evaluation, evaluate, watch
from .functional import Functional
from .network import HeldTemperature, Network, Policy
from .reinforce import Reinforce, State, reinforce
from .source import Advance, Source
from .train import train
from .training import Progress, Training
from .vector import Vector

__all__ = [
    "Advance",
    "Episodes",
    "Evaluation",
    "Functional",
    "HeldTemperature",
    "Network",
    "Policy",
    "Progress",
    "Reinforce",
    "Saved",
    "Source",
    "State",
    "Training",
    "Vector",
    "evaluate",
    "load_policy",
    "reinforce",
    "train",
    "watch",
]
