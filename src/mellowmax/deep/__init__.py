"""Policy gradient, with a network whose last layer is any softmax (section 7.3).

`reinforce` makes a learner, `train` lets runs of it learn in an environment, `evaluate` says what a
policy earns. An environment is a functional one of the library, an MDP, the id of a Gymnasium
environment or a function that makes one, or `Rollouts` of an environment of your own.
"""

from .._common.extras import needed_by

with needed_by("mellowmax.deep", "jax"):
    from .checkpoint import SavedPolicy, load_policy
    from .episodes import Episodes
    from .evaluate import EvaluateProgress, Evaluation, evaluate, watch
    from .network import HeldTemperature, Network, Policy
    from .progress import TrainProgress
    from .reinforce import Reinforce, ReinforceState, reinforce
    from .result import DeepResult
    from .rollouts import (
        FunctionalRollouts,
        GymnasiumRollouts,
        Played,
        Rollouts,
        VectorRollouts,
    )
    from .train import train

__all__ = [
    "DeepResult",
    "Episodes",
    "EvaluateProgress",
    "Evaluation",
    "FunctionalRollouts",
    "GymnasiumRollouts",
    "HeldTemperature",
    "Network",
    "Played",
    "Policy",
    "Reinforce",
    "ReinforceState",
    "Rollouts",
    "SavedPolicy",
    "TrainProgress",
    "VectorRollouts",
    "evaluate",
    "load_policy",
    "reinforce",
    "train",
    "watch",
]
