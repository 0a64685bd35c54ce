"""Policy gradient and deep Q-learning with any softmax.

`reinforce` makes a learner whose policy is a network with the softmax as its last layer (section
7.3), `dqn` one whose targets have the softmax's value in place of the maximum. `train` lets runs of
it learn in an environment, `evaluate` says what a policy earns. An environment is a functional one
of the library, an MDP, the id of a Gymnasium environment or a function that makes one, or
`Rollouts` of an environment of your own.
"""

from .._common.extras import needed_by

with needed_by("mellowmax.deep", "jax"):
    from .checkpoint import SavedPolicy, load_policy
    from .dqn import Dqn, DqnState, dqn
    from .episodes import Episodes
    from .evaluate import EvaluateProgress, Evaluation, evaluate, watch
    from .network import HeldTemperature, Network, Policy
    from .progress import TrainProgress
    from .reinforce import Reinforce, ReinforceState, reinforce
    from .replay import Replay, Transitions
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
    "Dqn",
    "DqnState",
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
    "Replay",
    "Rollouts",
    "SavedPolicy",
    "TrainProgress",
    "Transitions",
    "VectorRollouts",
    "dqn",
    "evaluate",
    "load_policy",
    "reinforce",
    "train",
    "watch",
]
