"""A short tour: `python -m mellowmax.tour` prints the five pairs and their properties."""

from __future__ import annotations

import numpy as np

from .policies import mellowmax_temperature
from .properties import probe
from .softmax import Boltzmann, EpsilonGreedy, Max, Mean, Mellowmax, Softmax

__all__ = ["main"]

PAIRS: tuple[Softmax, ...] = (
    Max(),
    Mean(),
    EpsilonGreedy(0.1),
    Boltzmann(16.55),
    Mellowmax(16.55),
)
TO_COME = (
    "SARSA and REINFORCE with any of them, thousands of runs at once",
    "each figure and table of the paper, with a verdict on each claim",
)


def main() -> None:
    """Print the tour."""
    q = np.array([0.5, 0.4, 0.1])
    print("mellowmax: softmax operators for reinforcement learning\n")
    print(f"The action values q = {q} under each operator, and the policy that attains it:\n")
    print(f"  {'':<28}{'value':>8}   {'policy':<24}sum(policy * q)")
    for pair in PAIRS:
        policy = pair.policy(q)
        shown = " ".join(f"{p:.4f}" for p in policy)
        print(f"  {pair!s:<28}{pair.value(q):>8.4f}   {shown:<24}{np.sum(policy * q):>8.4f}")
    b = mellowmax_temperature(q, 16.55)
    print(f"\nMellowmax's policy is Boltzmann's at the inverse temperature {b:.4f} (section 6).\n")
    print("The four properties that the paper asks for (section 1), each put to a search:\n")
    for pair in PAIRS:
        print(probe(pair), end="\n\n")
    print("Still to come:")
    for part in TO_COME:
        print(f"  - {part}")


if __name__ == "__main__":
    main()
