"""CleanRL's own `ppo.py`: `SETTINGS STEPS SEED ENVIRONMENT CLONE`, with the settings as JSON.

CLONE is a clone of github.com/vwxyzjn/cleanrl. It prints a line of JSON: the steps of a CPU second,
from the second update on, and the mean return of the last 100 episodes.
"""

import json
import time
from pathlib import Path

import cleanrl_file
import ppo_arguments


def main():
    """Print a line of JSON."""
    parser = ppo_arguments.parser(__doc__)
    parser.add_argument("clone", type=Path)
    chosen = parser.parse_args()
    s = chosen.settings
    options = {
        "env_id": chosen.environment,
        "total_timesteps": chosen.steps,
        "seed": chosen.seed,
        "learning_rate": s["learning_rate"],
        "gamma": s["discount"],
        "gae_lambda": s["trace"],
        "num_envs": s["environments"],
        "num_steps": s["steps"],
        "update_epochs": s["epochs"],
        "num_minibatches": s["minibatches"],
        "clip_coef": s["clip"],
        "ent_coef": s["entropy"],
        "vf_coef": s["value"],
        "anneal_lr": False,
    }
    cleanrl_file.run(chosen.clone, "ppo.py", options)
    later = len(cleanrl_file.times) - s["steps"]
    seconds = time.process_time() - cleanrl_file.times[s["steps"]]
    last = cleanrl_file.returns[-cleanrl_file.LAST :]
    rate = later * s["environments"] / seconds
    print(json.dumps({"steps_per_cpu_second": rate, "mean_return": sum(last) / len(last)}))


if __name__ == "__main__":
    main()
