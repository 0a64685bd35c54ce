"""Layer 5: policy gradient, with a network whose last layer is any softmax (section 7.3).

`reinforce` makes a learner, `train` lets runs of it learn in an environment, `evaluate` measures
what they have learned.
"""

from .checkpoint import Saved, load_policy
from .episodes import Episodes
from .evaluate import Evaluation, evaluate, watch
from .network import HeldTemperature, Network, Policy
from .reinforce import Reinforce, State, reinforce
from .result import Progress, Training
from .rollouts.functional import Functional
from .rollouts.gymnasium import Vector
from .rollouts.rollouts import Advance, Source
from .train import train

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
