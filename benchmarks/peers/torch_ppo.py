"""PPO as one file of PyTorch: `SETTINGS STEPS SEED ENVIRONMENT`, with the settings as JSON.

CleanRL is no package to install but files to copy. This one is not a copy of its `ppo.py`: it is
written for this comparison, in the same manner. A synchronous vector of environments, a policy and
a critic of two layers of 64 units, tanh and orthogonal weights, generalised advantages, clipped
losses, and Adam with clipped gradients. It prints a line of JSON: the steps of a CPU second, from
the second update on, and the mean return of the last 100 episodes.
"""

import json
import time

import gymnasium
import numpy as np
import ppo_arguments
import torch
from torch import nn
from torch.distributions import Categorical

LAST = 100


def layer(n_in, n_out, gain):
    """A layer with orthogonal weights and zero biases."""
    made = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


def network_of(n_in, n_out, gain):
    """Two hidden layers."""
    hidden = 2**0.5
    return nn.Sequential(
        layer(n_in, 64, hidden), nn.Tanh(), layer(64, 64, hidden), nn.Tanh(), layer(64, n_out, gain)
    )


def learn(s, steps, seed, name):
    """The steps of a CPU second, and the returns."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    count, length = s["environments"], s["steps"]
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(name)] * count,
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    n_seen, n_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    policy, critic = network_of(n_seen, n_actions, 0.01), network_of(n_seen, 1, 1.0)
    weights = [*policy.parameters(), *critic.parameters()]
    optimiser = torch.optim.Adam(weights, s["learning_rate"], eps=1e-5)
    seen, _ = envs.reset(seed=seed)
    totals, returns, began = np.zeros(count), [], None
    updates = steps // (count * length)
    for update in range(updates):
        if update == 1:
            began = time.process_time()
        rows = []
        for _ in range(length):
            before = torch.as_tensor(seen, dtype=torch.float32)
            with torch.no_grad():
                choice, value = Categorical(logits=policy(before)), critic(before)[:, 0]
            action = choice.sample()
            seen, reward, terminated, truncated, info = envs.step(action.numpy())
            ended, after = terminated | truncated, seen
            totals += reward
            if ended.any():
                after = seen.copy()
                for i in np.flatnonzero(ended):
                    after[i] = info["final_obs"][i]
                    returns.append(totals[i])
                    totals[i] = 0.0
            with torch.no_grad():
                later = critic(torch.as_tensor(after, dtype=torch.float32))[:, 0]
            arrays = (reward.astype(np.float32), terminated, ended)
            numbers = [torch.as_tensor(x) for x in arrays]
            rows.append((before, action, choice.log_prob(action), value, later, *numbers))
        before, action, log_p, value, later, reward, terminated, ended = map(
            torch.stack, zip(*rows, strict=True)
        )
        errors = reward + s["discount"] * later * ~terminated - value
        advantages, last = torch.zeros_like(errors), torch.zeros(count)
        for t in reversed(range(length)):
            last = errors[t] + s["discount"] * s["trace"] * last * ~ended[t]
            advantages[t] = last
        columns = (before, action, log_p, value, advantages, advantages + value)
        flat = [x.reshape(count * length, *x.shape[2:]) for x in columns]
        for _ in range(s["epochs"]):
            order = torch.as_tensor(rng.permutation(count * length))
            for chosen in order.chunk(s["minibatches"]):
                x, a, old, v_old, advantage, target = (column[chosen] for column in flat)
                choice = Categorical(logits=policy(x))
                ratio = (choice.log_prob(a) - old).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                near = ratio.clamp(1 - s["clip"], 1 + s["clip"])
                gain = torch.min(ratio * advantage, near * advantage).mean()
                v = critic(x)[:, 0]
                v_near = v_old + (v - v_old).clamp(-s["clip"], s["clip"])
                miss = torch.max((v - target) ** 2, (v_near - target) ** 2).mean() / 2
                entropy = choice.entropy().mean()
                loss = -gain + s["value"] * miss - s["entropy"] * entropy
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(weights, 0.5)
                optimiser.step()
    rate = (updates - 1) * count * length / (time.process_time() - began)
    return rate, returns


def main():
    """Print a line of JSON."""
    chosen = ppo_arguments.parser(__doc__).parse_args()
    torch.set_num_threads(1)  # a network this small is slower with more
    rate, returns = learn(chosen.settings, chosen.steps, chosen.seed, chosen.environment)
    mean = float(np.mean(returns[-LAST:]))
    print(json.dumps({"steps_per_cpu_second": rate, "mean_return": mean}))


if __name__ == "__main__":
    main()
