"""purejaxrl's PPO: `SETTINGS STEPS SEED ENVIRONMENT CLONE`, with the settings as JSON.

CLONE is a clone of github.com/luchris429/purejaxrl, whose `ppo.py` is run as it is. Its wrappers
import brax and navix, which are not needed here, and want the five values that a step of gymnax had
before version 1.0. It prints a line of JSON: the steps of a CPU second without compiling, and the
mean return of the last 100 episodes.
"""

import json
import sys
import time
import types
from pathlib import Path

import ppo_arguments

LAST = 100
UNUSED = ("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix")


class FiveValues:
    """An environment of gymnax 1.0 whose step returns what it returned before."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    def step(self, key, state, action, params=None):
        """The observation, the state, the reward, whether the episode has ended, and more."""
        observation, state, reward, terminated, truncated, info = self.env.step(
            key, state, action, params
        )
        return observation, state, reward, terminated | truncated, dict(info)


def main():
    """Print a line of JSON."""
    parser = ppo_arguments.parser(__doc__)
    parser.add_argument("clone", type=Path)
    chosen = parser.parse_args()
    for name in UNUSED:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["brax"].envs = sys.modules["brax.envs"]
    for name in ("EpisodeWrapper", "AutoResetWrapper"):
        setattr(sys.modules["brax.envs.wrappers.training"], name, None)
    sys.path.insert(0, str(chosen.clone / "purejaxrl"))
    import gymnax
    import jax
    import numpy as np

    make = gymnax.make

    def made(name):
        env, params = make(name)
        return FiveValues(env), params

    gymnax.make = made
    import ppo

    s = chosen.settings
    config = {
        "LR": s["learning_rate"],
        "NUM_ENVS": s["environments"],
        "NUM_STEPS": s["steps"],
        "TOTAL_TIMESTEPS": chosen.steps,
        "UPDATE_EPOCHS": s["epochs"],
        "NUM_MINIBATCHES": s["minibatches"],
        "GAMMA": s["discount"],
        "GAE_LAMBDA": s["trace"],
        "CLIP_EPS": s["clip"],
        "ENT_COEF": s["entropy"],
        "VF_COEF": s["value"],
        "MAX_GRAD_NORM": 0.5,
        "ACTIVATION": "tanh",
        "ENV_NAME": chosen.environment,
        "ANNEAL_LR": False,
    }
    key = jax.random.PRNGKey(chosen.seed)
    program = jax.jit(ppo.make_train(config)).lower(key).compile()
    began = time.process_time()
    metrics = jax.block_until_ready(program(key))["metrics"]
    seconds = time.process_time() - began
    ended, returns = (
        np.asarray(metrics[name]).reshape(-1, s["environments"])
        for name in ("returned_episode", "returned_episode_returns")
    )
    taken = ended.size / seconds
    mean = float(returns[ended.astype(bool)][-LAST:].mean())
    print(json.dumps({"steps_per_cpu_second": taken, "mean_return": mean}))


if __name__ == "__main__":
    main()
