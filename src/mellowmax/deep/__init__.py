"""Policy gradient, actors with critics and deep Q-learning, with any softmax.

`reinforce`, `ppo` and `sac` make learners whose policy is a network with the softmax as its last
layer (section 7.3), `dqn` a learner whose targets have the softmax's value in place of the maximum.
`train` lets runs of a learner learn in an environment, `evaluate` plays with the policy that was
learned. An environment is a functional one of the library, an MDP, the id of a Gymnasium
environment or a function that makes one, or a `FunctionalEnvironment` of your own.

A reader can take the modules in this order. `observation`, `network`, `trainable`,
`policy_gradient`, `segments`, `replay` and `optimiser` are the parts of the four learners,
`reinforce`, `ppo`, `dqn` and `sac`; all of them are pure functions of one run. `environment` says
what an environment is, and what `train` takes as one. `play` has the six ways of playing in an
environment, and `keys` every random key. `train` and `worker` put them together, with the help of
`log`, `progress`, `description` and `checkpoint`. `saved_policy` reads a policy from a checkpoint.
"""

from typing import TYPE_CHECKING

from .._common.extras import needed_by

with needed_by("mellowmax.deep", "jax"):
    from .deprecated import deprecated
    from .dqn import Dqn, DqnState, dqn
    from .environment import (
        FunctionalEnvironment,
        GymnasiumEnvironment,
        Rollouts,
        VectorEnvironment,
    )
    from .episodes import Episodes, Round
    from .evaluate import EvaluateProgress, Evaluation, evaluate, watch
    from .network import HeldTemperature, Network, Policy, mlp
    from .observation import Seen
    from .play.player import DivergedError
    from .ppo import Ppo, PpoState, ppo
    from .progress import TrainProgress
    from .reinforce import Reinforce, ReinforceState, reinforce
    from .replay import Replay, Transitions
    from .result import DeepResult
    from .sac import Sac, SacState, sac
    from .saved_policy import SavedPolicy, load_policy
    from .schedule import Linear, linear
    from .segments import Segment
    from .train import train
    from .trainable import Trainable

__all__ = [
    "DeepResult",
    "DivergedError",
    "Dqn",
    "DqnState",
    "Episodes",
    "EvaluateProgress",
    "Evaluation",
    "FunctionalEnvironment",
    "GymnasiumEnvironment",
    "HeldTemperature",
    "Linear",
    "Network",
    "Policy",
    "Ppo",
    "PpoState",
    "Reinforce",
    "ReinforceState",
    "Replay",
    "Rollouts",
    "Round",
    "Sac",
    "SacState",
    "SavedPolicy",
    "Segment",
    "Seen",
    "TrainProgress",
    "Trainable",
    "Transitions",
    "VectorEnvironment",
    "dqn",
    "evaluate",
    "linear",
    "load_policy",
    "mlp",
    "ppo",
    "reinforce",
    "sac",
    "train",
    "watch",
]


if not TYPE_CHECKING:  # which would take any name for a former one

    def __getattr__(name: str) -> type:
        """The former names, with a warning."""
        return deprecated(name)
