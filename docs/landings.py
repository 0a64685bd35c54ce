"""Flights of Lunar Lander: `make landings` trains a pilot, and keeps them for the explorer.

Eight runs of REINFORCE with mellowmax's policy are trained on a CPU, in some minutes. The one that
earns most in the end flies 21 times after a hundred episodes of training, after a thousand, and
after three thousand; of each 21 flights the one with the middle return is kept. Then it flies in
Gymnasium's own LunarLander-v3: its first flight there that earns 200 is the moving picture of the
README.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from mellowmax import Mellowmax
from mellowmax._typing import Floats
from mellowmax.cli.gif import Film
from mellowmax.deep import Policy, mlp, reinforce, train, watch
from mellowmax.environments import lunar_lander
from mellowmax.explorer import Block, landing

FILE = Path(__file__).parent.parent / "src/mellowmax/explorer/data/landings.json"
STAGES = {
    100: "The lander after 100 episodes",
    1000: "After 1,000 episodes",
    3000: "After 3,000 episodes",
}
FLIGHTS = 21
PICTURE = Path(__file__).parent / "images/landing.gif"
GYMNASIUM, SOLVED = "LunarLander-v3", 200.0


def flights(policy: Policy, title: str) -> list[Block]:
    """Flights with actions drawn from a policy, as in training."""
    act = jax.jit(lambda uniform, seen: policy.act(uniform, seen))

    def flight(seed: int) -> Block:
        rng = np.random.default_rng(seed)

        def pilot(seen: Floats) -> int:
            return int(act(np.float32(rng.random()), jnp.asarray(seen, jnp.float32)))

        return landing(pilot, title=title, seed=seed)

    return [flight(seed) for seed in range(FLIGHTS)]


def film(policy: Policy) -> None:
    """The first flight in Gymnasium that earns enough, as a moving picture."""
    for seed in itertools.count():
        *_, (_, earned) = watch(policy, GYMNASIUM, seed=seed)
        print(f"in Gymnasium, seed {seed}: {earned:.0f}")
        if earned >= SOLVED:
            break
    Film(PICTURE, GYMNASIUM, watch(policy, GYMNASIUM, seed=seed)).write()


def main() -> None:
    """Train, and keep the flights."""
    learner = reinforce(Mellowmax(8.0), discount=0.99, network=mlp(16, 2), baseline="leave-one-out")
    with tempfile.TemporaryDirectory() as checkpoint:
        stages = {
            episodes: train(
                learner,
                lunar_lander.params(),
                episodes=episodes,
                runs=8,
                checkpoint=checkpoint,
                callback=lambda now: print(f"{now.episodes} of {now.total}", end="\r"),
            )
            for episodes in STAGES
        }
    last = stages[max(STAGES)].returns[:, -500:].mean(1)
    best = int(last.argmax())
    print(f"run {best} earned {last[best]:.0f} in its last 500 episodes; all: {last.round()}")
    kept = []
    for episodes, title in STAGES.items():
        policy = jax.tree.map(lambda x: x[best], stages[episodes].policies)
        flown = sorted(flights(policy, title), key=lambda flight: flight["return"])
        kept.append(flown[FLIGHTS // 2])
        print(title, [flight["return"] for flight in flown])
    film(policy)
    FILE.write_text(json.dumps(kept, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
