"""Stable-Baselines3's PPO: `SETTINGS STEPS SEED ENVIRONMENT`, with the settings as JSON.

Its network of two layers of 64 units, its optimiser and its clipping of gradients are left as they
are; they are the same. It prints a line of JSON: the steps of a CPU second, from the second update
on, and the mean return of the last 100 episodes.
"""

import json
import time

import numpy as np
import ppo_arguments
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

LAST = 100


class Clock(BaseCallback):
    """When the second update began, and what episodes returned."""

    def __init__(self):
        super().__init__()
        self.updates, self.began, self.steps, self.returns = 0, None, 0, []

    def _on_rollout_start(self):
        self.updates += 1
        if self.updates == 2:
            self.began, self.steps = time.process_time(), self.num_timesteps

    def _on_step(self):
        self.returns += [x["episode"]["r"] for x in self.locals["infos"] if "episode" in x]
        return True


def main():
    """Print a line of JSON."""
    chosen = ppo_arguments.parser(__doc__).parse_args()
    torch.set_num_threads(1)  # a network this small is slower with more
    s = chosen.settings
    agent = PPO(
        "MlpPolicy",
        make_vec_env(chosen.environment, s["environments"], seed=chosen.seed),
        learning_rate=s["learning_rate"],
        n_steps=s["steps"],
        batch_size=s["steps"] * s["environments"] // s["minibatches"],
        n_epochs=s["epochs"],
        gamma=s["discount"],
        gae_lambda=s["trace"],
        clip_range=s["clip"],
        clip_range_vf=s["clip"],
        ent_coef=s["entropy"],
        vf_coef=s["value"] / 2,  # its critic's loss has no factor of a half
        seed=chosen.seed,
        device="cpu",
    )
    clock = Clock()
    agent.learn(chosen.steps, callback=clock)
    rate = (agent.num_timesteps - clock.steps) / (time.process_time() - clock.began)
    mean = float(np.mean(clock.returns[-LAST:]))
    print(json.dumps({"steps_per_cpu_second": rate, "mean_return": mean}))


if __name__ == "__main__":
    main()
