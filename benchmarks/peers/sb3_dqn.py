"""Stable-Baselines3's DQN on CartPole-v1: `SETTINGS STEPS SEED`, with the settings as JSON.

The network is two hidden layers. Its loss is Huber's, and gradients are clipped at a norm of 10:
neither is an argument, or is left as it is. It prints a line of JSON: the steps of a second, of all
steps that learn, and the mean return of the greedy policy at the end.
"""

import json
import time

import dqn_arguments
import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

EPISODES = 50
"""How many the greedy policy plays."""


class Clock(BaseCallback):
    """When the first update was due."""

    def __init__(self, after):
        super().__init__()
        self.after, self.began = after, None

    def _on_step(self):
        if self.num_timesteps == self.after:
            self.began = time.process_time()
        return True


def main():
    """Print a line of JSON."""
    chosen = dqn_arguments.parser(__doc__).parse_args()
    torch.set_num_threads(1)  # a network this small is slower with more
    s = chosen.settings
    agent = DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        learning_rate=s["learning_rate"],
        gamma=s["discount"],
        buffer_size=s["capacity"],
        batch_size=s["minibatch"],
        learning_starts=s["learning_starts"],
        train_freq=s["train_frequency"],
        gradient_steps=1,
        target_update_interval=s["target"] * s["train_frequency"],
        exploration_initial_eps=s["first_epsilon"],
        exploration_final_eps=s["last_epsilon"],
        exploration_fraction=s["exploration_steps"] / chosen.steps,
        policy_kwargs={"net_arch": [s["hidden"]] * s["depth"]},
        seed=chosen.seed,
        device="cpu",
    )
    clock = Clock(s["learning_starts"])
    agent.learn(chosen.steps, callback=clock)
    seconds = time.process_time() - clock.began
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("CartPole-v1"))
    mean, _ = evaluate_policy(agent, env, EPISODES, warn=False)
    rate = (chosen.steps - s["learning_starts"]) / seconds
    print(json.dumps({"steps_per_cpu_second": rate, "mean_return": float(mean)}))


if __name__ == "__main__":
    main()
