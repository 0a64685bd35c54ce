"""CleanRL's own `dqn.py` on CartPole-v1: `SETTINGS STEPS SEED CLONE`, with the settings as JSON.

CLONE is a clone of github.com/vwxyzjn/cleanrl. Its network has layers of 120 and 84 units, which no
option changes. It prints a line of JSON: the steps of a CPU second, of all steps that learn, and
the mean return of the greedy policy at the end, as `torch_dqn.py` does.
"""

import json
import time
from pathlib import Path

import cleanrl_file
import dqn_arguments
import torch_dqn


def main():
    """Print a line of JSON."""
    parser = dqn_arguments.parser(__doc__)
    parser.add_argument("clone", type=Path)
    chosen = parser.parse_args()
    s = chosen.settings
    options = {
        "total_timesteps": chosen.steps,
        "seed": chosen.seed,
        "learning_rate": s["learning_rate"],
        "gamma": s["discount"],
        "buffer_size": s["capacity"],
        "target_network_frequency": s["target"] * s["train_frequency"],
        "batch_size": s["minibatch"],
        "start_e": s["first_epsilon"],
        "end_e": s["last_epsilon"],
        "exploration_fraction": s["exploration_steps"] / chosen.steps,
        "learning_starts": s["learning_starts"],
        "train_frequency": s["train_frequency"],
    }
    network = cleanrl_file.run(chosen.clone, "dqn.py", options)["q_network"]
    rate = (chosen.steps - s["learning_starts"]) / (
        time.process_time() - cleanrl_file.times[s["learning_starts"]]
    )
    found = {"steps_per_cpu_second": rate, "mean_return": torch_dqn.evaluate(network, chosen.seed)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
