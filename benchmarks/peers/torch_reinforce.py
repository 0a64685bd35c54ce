"""REINFORCE as it is usually written in PyTorch: `SOFTMAX_PARAMETER EPISODES`.

One environment, one network call and one step at a time; an update after every ten episodes. The
network, the optimiser and the batch are those of the paper, with a Boltzmann policy. It prints the
episodes and steps of a second in a line of JSON, after a warm-up of one batch.
"""

import argparse
import json
import time

import gymnasium
import torch


def play(env, network, beta):
    """The logarithms of an episode's action probabilities, and its rewards."""
    seen, _ = env.reset()
    logs, rewards, over = [], [], False
    while not over:
        values = network(torch.from_numpy(seen))
        policy = torch.distributions.Categorical(logits=beta * values)
        action = policy.sample()
        logs.append(policy.log_prob(action))
        seen, reward, terminated, truncated, _ = env.step(action.item())
        rewards.append(reward)
        over = terminated or truncated
    return logs, rewards


def to_go(rewards, discount=0.99):
    """What was earned from each step on."""
    result, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + discount * later
        result.append(later)
    return result[::-1]


def batch(env, network, optimiser, beta):
    """Play ten episodes and learn from them; how many steps they had."""
    loss, steps = 0.0, 0
    for _ in range(10):
        logs, rewards = play(env, network, beta)
        loss = loss - (torch.stack(logs) * torch.tensor(to_go(rewards))).sum() / 10
        steps += len(rewards)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return steps


def main():
    """Print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("beta", type=float)
    parser.add_argument("episodes", type=int)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a network this small is slower with more
    env = gymnasium.make("LunarLander-v3")
    env.reset(seed=0)
    network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005)
    batch(env, network, optimiser, chosen.beta)
    began, steps = time.perf_counter(), 0
    for _ in range(chosen.episodes // 10):
        steps += batch(env, network, optimiser, chosen.beta)
    seconds = time.perf_counter() - began
    found = {"episodes_per_second": chosen.episodes / seconds, "steps_per_second": steps / seconds}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
