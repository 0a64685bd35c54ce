"""Tabular learning: SARSA, expected SARSA and Q-learning with any softmax, in many runs."""

from .._common.extras import needed_by

with needed_by("mellowmax.learning", "jax"):
    from .evaluate import Evaluation, evaluate
    from .learner import Learned, Learner, Update, expected_sarsa, q_learning, sarsa
    from .result import TabularResult
    from .train import train

__all__ = [
    "Evaluation",
    "Learned",
    "Learner",
    "TabularResult",
    "Update",
    "evaluate",
    "expected_sarsa",
    "q_learning",
    "sarsa",
    "train",
]
