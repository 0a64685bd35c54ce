"""DQN on CartPole-v1 as one file of PyTorch: `SETTINGS STEPS SEED`, with the settings as JSON.

CleanRL is no package to install but files to copy. This one is not a copy of its `dqn.py`: it is
written for this comparison, in the same manner. One environment, one call of the network a step,
the replay buffer as NumPy arrays, the squared loss, Adam, and a target network that is copied
after some updates. It prints a line of JSON: the steps of a second, of all steps that learn, and
the mean return of the greedy policy at the end.
"""

import itertools
import json
import time

import dqn_arguments
import gymnasium
import numpy as np
import torch
from torch import nn

EPISODES = 50
"""How many the greedy policy plays."""


def network_of(hidden, depth):
    """Layers with rectified linear units between them."""
    sizes = [4, *[hidden] * depth]
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 2))


class Replay:
    """The last steps, as arrays."""

    def __init__(self, capacity):
        self.seen, self.after = (np.zeros((capacity, 4), np.float32) for _ in range(2))
        self.actions = np.zeros(capacity, np.int64)
        self.rewards, self.ended = (np.zeros(capacity, np.float32) for _ in range(2))
        self.count = 0

    def add(self, seen, action, reward, ended, after):
        """Keep a step in place of the oldest."""
        at = self.count % len(self.actions)
        self.seen[at], self.actions[at], self.rewards[at] = seen, action, reward
        self.ended[at], self.after[at] = ended, after
        self.count += 1

    def sample(self, rng, size):
        """Steps drawn with replacement, as tensors."""
        chosen = rng.integers(0, min(self.count, len(self.actions)), size)
        arrays = (self.seen, self.actions, self.rewards, self.ended, self.after)
        return [torch.from_numpy(array[chosen]) for array in arrays]


def learn(s, steps, seed):
    """The trained network, and how many steps a second took."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    env = gymnasium.make("CartPole-v1")
    network, target = (network_of(s["hidden"], s["depth"]) for _ in range(2))
    target.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(network.parameters(), s["learning_rate"])
    replay = Replay(s["capacity"])
    seen, _ = env.reset(seed=seed)
    began = updates = 0
    for step in range(1, steps + 1):
        share = min(1, step / s["exploration_steps"])
        epsilon = s["first_epsilon"] + share * (s["last_epsilon"] - s["first_epsilon"])
        if rng.random() < epsilon:
            action = int(rng.integers(2))
        else:
            with torch.no_grad():
                action = int(network(torch.from_numpy(seen)).argmax())
        after, reward, terminated, truncated, _ = env.step(action)
        replay.add(seen, action, reward, terminated, after)
        seen = env.reset()[0] if terminated or truncated else after
        if step == s["learning_starts"]:
            began = time.process_time()
        if step < s["learning_starts"] or step % s["train_frequency"]:
            continue
        before, actions, rewards, ended, later = replay.sample(rng, s["minibatch"])
        with torch.no_grad():
            wanted = rewards + s["discount"] * (1 - ended) * target(later).max(1).values
        values = network(before).gather(1, actions[:, None])[:, 0]
        loss = nn.functional.mse_loss(values, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        updates += 1
        if updates % s["target"] == 0:
            target.load_state_dict(network.state_dict())
    return network, (steps - s["learning_starts"]) / (time.process_time() - began)


def evaluate(network, seed):
    """The mean return of the greedy policy."""
    env = gymnasium.make("CartPole-v1")
    returns = []
    for episode in range(EPISODES):
        seen, _ = env.reset(seed=10_000 * seed + episode)
        total, over = 0.0, False
        while not over:
            with torch.no_grad():
                action = int(network(torch.from_numpy(seen)).argmax())
            seen, reward, terminated, truncated, _ = env.step(action)
            total, over = total + reward, terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main():
    """Print a line of JSON."""
    chosen = dqn_arguments.parser(__doc__).parse_args()
    torch.set_num_threads(1)  # a network this small is slower with more
    network, rate = learn(chosen.settings, chosen.steps, chosen.seed)
    found = {"steps_per_cpu_second": rate, "mean_return": evaluate(network, chosen.seed)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
