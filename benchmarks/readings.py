"""Which reading of section 7.3 gives the paper's learning curves?

The paper leaves open how an action is weighed, how many layers there are, and how an update is
made. Each reading is trained with all ten settings of figure 11, on a seed of its own, in the Lunar
Lander of 2016, and compared with the paper's curves over all 40,000 episodes:

    python benchmarks/readings.py --checkpoint DIR [--seconds 540] [--out readings.parquet]

It wants an accelerator. It may be stopped at any moment, is resumed by the same command, on the
same machine or another, and says how far it is; the table has as many episodes of a reading as all
its runs have played. The readings of one kind are trained side by side:

    weighings      how an action is weighed, one hidden layer or two
    usual-rate     the learning rate 0.001, which is most libraries' for Adam, in place of 0.005
    minibatches    updates as Keras makes them: Adam's steps on 32 steps each, in one epoch
    epochs         the same in three epochs
    no-limit       episodes of up to 10,000 steps in place of 1000
    batches-50     updates after 50 episodes in place of the stated 10
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from mellowmax.deep import reinforce, train
from mellowmax.environments import lunar_lander
from mellowmax.experiments.items import fig11
from mellowmax.experiments.items.fig11.parts import Config
from mellowmax.experiments.items.fig11.readings import (
    AT_USUAL_RATE,
    LEARNING_RATE,
    READING,
    READINGS,
    Reading,
    Weighing,
    learner_of,
)
from mellowmax.experiments.items.fig11.runs import BIN, mean_curves, setting_rows
from mellowmax.experiments.store import read_table, write_table


class Kind(NamedTuple):
    """Readings that can be trained in one program."""

    readings: Sequence[Reading]
    batch: int = 10
    """How many episodes there are between two updates."""
    epochs: int | None = None
    """How often the minibatches go through a batch; None for one step of Adam."""
    max_steps: int = 1000


def in_batches(size):
    """What is not as the paper states it, to see what it would take."""
    names = ("whole return", "reward to go", "reward to go, normalised")
    chosen = [r for r in READINGS if r.name in names and r.learning_rate == LEARNING_RATE]
    named = [r._replace(name=f"{r.name}, batches of {size} episodes") for r in chosen]
    return Kind(named, batch=size)


KINDS = {
    "weighings": Kind(READINGS),
    "usual-rate": Kind(AT_USUAL_RATE),
    "minibatches": Kind([Reading("whole return, minibatches of 32", 1.0, Weighing())], epochs=1),
    "epochs": Kind(
        [Reading("whole return, minibatches of 32, 3 epochs", 1.0, Weighing())], epochs=3
    ),
    "no-limit": Kind(
        [Reading("whole return, no limit of steps", 1.0, Weighing())], max_steps=10_000
    ),
    "batches-50": in_batches(50),
}
RUNS, SEED = 40, 110


def settings(readings):
    """A row for each reading and setting of figure 11."""
    config = Config()
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    return pd.DataFrame(
        [row for reading in readings for row in setting_rows("readings", reading, parameters)]
    )


def trained(kind, runs, episodes, checkpoint, seconds):
    """The settings of a kind, and what was trained."""
    readings, batch, epochs, max_steps = KINDS[kind]
    table = settings(readings)
    learner = learner_of(table, batch)
    if epochs is not None:
        options = {"batch": learner.batch, "hidden": learner.hidden, "reward_to_go": False}
        learner = reinforce(learner.softmax, discount=1.0, minibatch=32, epochs=epochs, **options)
    said = [-np.inf]

    def callback(progress):
        share = progress.episodes / progress.total
        if progress.seconds - said[0] > 10:
            said[0] = progress.seconds
            rate = progress.played / progress.seconds
            line = {"seconds": round(progress.seconds, 1), "share": round(share, 4)}
            line |= {"episodes_per_second": round(rate, 1), "mean": round(progress.mean_return, 2)}
            line |= {"million_steps_per_second": round(progress.steps / progress.seconds / 1e6, 2)}
            line |= {"wasted": round(1 - progress.steps / max(1, progress.computed), 3)}
            print(json.dumps(line), flush=True)
        return progress.seconds > seconds

    result = train(
        learner,
        lunar_lander.params(height="2016"),
        episodes=episodes,
        runs=runs,
        seed=SEED,
        max_steps=max_steps,
        bin=BIN,
        checkpoint=checkpoint,
        seconds_between_checkpoints=30.0,
        callback=callback,
    )
    return table, result


def curves(table, result):
    """The mean return by reading, setting and bin, with its standard error over the runs.

    As far as all runs of a reading have come.
    """
    names, parts = [*READING, "policy", "parameter"], []
    for _, rows in table.groupby(READING, sort=False):
        returns, lengths = result.returns[rows.index], result.lengths[rows.index]
        bins = int(np.isfinite(returns).all((0, 1)).sum())
        runs = rows.loc[rows.index.repeat(returns.shape[1]), names]
        runs["returns"] = list(returns[..., :bins].reshape(len(runs), bins))
        runs["lengths"] = list(lengths[..., :bins].reshape(len(runs), bins))
        parts.append(mean_curves(runs, names))
    whole = pd.concat(parts, ignore_index=True).drop(columns="mean_length")
    return whole.astype({"mean_return": np.float32, "standard_error": np.float32})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, default="weighings")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where it is resumed from")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so many")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each setting")
    parser.add_argument("--episodes", type=int, default=Config().episodes)
    parser.add_argument("--out", type=Path, help="the table, to which this kind's rows are added")
    options = parser.parse_args()
    began = time.perf_counter()
    table, result = trained(
        options.kind, options.runs, options.episodes, options.checkpoint, options.seconds
    )
    done = np.isfinite(result.returns).mean()
    print(f"{options.kind}: {done:.1%} of all bins, {time.perf_counter() - began:.0f} s")
    new = curves(table, result)
    if options.out:
        if options.out.exists():
            there, _ = read_table(options.out)
            again = there.set_index(READING).index.isin(new.set_index(READING).index)
            new = pd.concat([there[~again], new], ignore_index=True)
        device = jax.devices()[0].device_kind
        write_table(options.out, new, {"command": "benchmarks/readings.py", "device": device})
    print(fig11.distances(new).to_string(index=False))


if __name__ == "__main__":
    main()
