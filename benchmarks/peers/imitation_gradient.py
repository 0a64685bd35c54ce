"""A step of maximum causal entropy by imitation: `TASK.npz`, a line of JSON.

The task has `transitions`, `[S, A, S]`, the distribution of the first state, the horizon, and the
rewards of states at which a gradient is computed. A step of its training is counted: the occupancy
measures of the policy, the gradient, and the optimiser's step.
"""

import json
import sys
import time

import numpy as np
import torch
from imitation.algorithms.mce_irl import MCEIRL
from imitation.rewards.reward_nets import RewardNet
from seals import base_envs

torch.set_num_threads(1)
task = np.load(sys.argv[1])
transitions, first, horizon = task["transitions"], task["first"], int(task["horizon"])
n_states = len(transitions)


class Table(RewardNet):
    """A number for each state."""

    def __init__(self, environment):
        super().__init__(environment.observation_space, environment.action_space)
        self.rewards = torch.nn.Parameter(torch.zeros(n_states))

    def forward(self, state, action, next_state, done):
        """Give the rewards of states that are one-hot."""
        return state @ self.rewards


environment = base_envs.TabularModelPOMDP(
    transition_matrix=transitions,
    observation_matrix=np.eye(n_states),
    reward_matrix=np.zeros(n_states),
    horizon=horizon,
    initial_state_dist=first,
)
network = Table(environment)
occupancy = np.full(n_states, (horizon + 1) / n_states)
trainer = MCEIRL(
    occupancy, environment, network, np.random.default_rng(0), discount=float(task["discount"])
)
seen = torch.eye(n_states)
trainer._train_step(seen)
began = time.process_time()
for rewards in task["rewards"]:
    with torch.no_grad():
        network.rewards[:] = torch.as_tensor(rewards)
    trainer._train_step(seen)
print(json.dumps({"seconds": (time.process_time() - began) / len(task["rewards"])}))
