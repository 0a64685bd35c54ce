"""What the report says of the item on target networks."""

from __future__ import annotations

from ...item import Caption

__all__ = [
    "CAPTIONS",
    "COLUMNS",
    "DEVIATIONS",
    "ENOUGH",
    "FEW",
    "MARGIN",
    "RULE",
    "SETTINGS",
    "SOURCE",
    "TITLE",
]

TITLE = "Deep Q-learning without a target network"
SOURCE = "Beyond the paper: Kim, Asadi, Littman and Konidaris, IJCAI 2019"
ENOUGH = 100
"""How many runs of each setting it takes to judge."""
FEW = 10
"""With fewer runs of a method no interval is shown with its difference."""
MARGIN = 20.0
"""How much less mellowmax may earn without a target network than max with one."""
RULE = (
    "What is compared is the mean return over all episodes of a run. Omega is the best one of the "
    "runs with even numbers, and the returns are those of the others. The interval of a "
    "difference is that of 95 %, by Welch's test. Max needs its target network if it earns more "
    "with it than without it: the interval is above 0. The target network can go if mellowmax "
    f"without one earns at most {MARGIN:g} less than max with one. This is a test of "
    f"non-inferiority: it holds if the interval is above {-MARGIN:g}, it does not if the interval "
    f"is below {-MARGIN:g}, and otherwise it is undecided. The margin was fixed before the paper "
    "scale was run. It is a twentieth of the way from what a policy at random earns, about -500 in "
    "Acrobot and -200 in Lunar Lander, to what Gymnasium counts as solved, -100 and 200. "
    "Mellowmax outperforms max with a target network if the interval is above 0. A false claim "
    "is found to hold at most once in 40 times. "
    f"With fewer than {ENOUGH} runs of each method nothing is judged."
)
DEVIATIONS = (
    "The paper has no deep Q-learning. The claim that is tested here is from a later paper, by two "
    "of its authors and two others. The settings are those of the program that its first author "
    "has published (github.com/seungchan-kim/DeepMellow), except for what follows.",
    "What is called the paper scale is not that program's own: it has as many runs, or more, but "
    "shorter ones, and in Lunar Lander a smaller network and smaller minibatches.",
    "Acrobot: a run has 250 episodes, theirs 1000. Exploration falls linearly, over 200 steps; "
    "theirs falls by 1 % with each update, which makes as many random actions.",
    "Lunar Lander: three layers of 64 units, where theirs have 512; minibatches of 64, not 1024; "
    "an update every 4 steps, not after each; a replay buffer of 50,000 steps, not of a million; "
    "800 episodes, not 1200. Theirs takes thousands of times the arithmetic. The learning rate "
    "goes with that: 5e-4 for theirs of 5e-5. They let exploration fall further below 0.05, by "
    "3 % with each episode, and have a little weight decay; there is neither here.",
    "An episode that a limit of steps cuts off has not ended here. It has in their targets.",
    "They ran Lunar Lander 50 times, and Acrobot 100 times as here. None of these settings was "
    "tuned for a method, and all methods have the same.",
    "Max is mellowmax at omega = infinity, which is the same number.",
)
CAPTIONS = {
    "curves": Caption(
        "The mean return of an episode while learning, with 95 % intervals over the runs: the "
        "maximum with a target network and without one, and mellowmax without one at each omega.",
        "A panel for each environment, with a rising line for each method.",
    ),
    "means": Caption(
        "The mean return over all episodes by mellowmax's omega, with 95 % intervals over the "
        "runs. The lines across are the maximum's, with a target network and without one, and "
        "their bands are its intervals.",
        "A panel for each environment: points with bars against omega, and two lines with bands.",
    ),
}
SETTINGS = {
    "environments": "environments",
    "omegas": "omegas of mellowmax",
    "target": "updates between two copies to the target network",
    "runs": "runs of each setting",
    "discount": "discount",
    "depth": "hidden layers",
    "minibatch": "steps of an update",
    "seed": "seed of the random numbers",
    "episodes": "episodes of a run, in each environment",
    "hidden": "units of a hidden layer",
    "learning_rate": "learning rate of Adam",
    "capacity": "steps in the replay buffer",
    "learning_starts": "steps before the first update",
    "train_frequency": "steps from one update to the next",
    "exploration_steps": "steps in which exploration falls",
    "last_epsilon": "exploration from then on",
}
COLUMNS = {
    "curves": {
        "environment": "acrobot or lunar_lander",
        "method": "max with a target network or without one, or mellowmax without one",
        "omega": "omega of mellowmax; infinity for max",
        "episode": "the middle of a bin of episodes",
        "mean_return": "averaged over the bin and the runs",
        "low": "the lower end of its 95 % interval, over the runs",
        "high": "the upper end",
        "runs": "how many runs",
    },
    "runs": {
        "environment": "acrobot or lunar_lander",
        "method": "as in the curves",
        "omega": "as in the curves",
        "run": "its number",
        "mean_return": "averaged over all episodes",
        "last_return": "averaged over the last fifth of them",
    },
    "means": {
        "environment": "acrobot or lunar_lander",
        "method": "as in the curves",
        "omega": "as in the curves",
        "mean_return": "averaged over all episodes and runs",
        "low": "the lower end of its 95 % interval, over the runs",
        "high": "the upper end",
        "last_return": "averaged over the last fifth of the episodes",
        "last_low": "the lower end of its 95 % interval",
        "last_high": "the upper end",
        "runs": "how many runs",
        "episodes": "episodes of each run",
    },
    "differences": {
        "environment": "acrobot or lunar_lander",
        "question": "which method earns more",
        "omega": "omega of mellowmax, if it is one of them: the best one of the other runs",
        "difference": "how much more the first earns, over all episodes",
        "low": "the lower end of its 95 % interval",
        "high": "the upper end",
        "p_value": "how often chance alone gives as large a difference",
        "runs": "how many runs of each are compared",
    },
}
