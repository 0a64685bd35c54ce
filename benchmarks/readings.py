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

and `larger-20`, `larger-50`, `larger-75`, `larger-100`, `larger-150` and `larger-200`: updates
after that many episodes with the nearest weighing and the stated rate, each with mellowmax's
inverse temperature in the gradient or held, and with a search for it that overflows or does not.
Boltzmann's runs, which these do not concern, are trained once for all four.
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
    """Readings that can be trained in one program: all have the same batch."""

    readings: Sequence[Reading]
    epochs: int | None = None
    """How often the minibatches go through a batch; None for one step of Adam."""
    max_steps: int = 1000
    seed: int = 110


def in_batches(size):
    """What is not as the paper states it, to see what it would take."""
    names = ("whole return", "reward to go", "reward to go, normalised")
    chosen = [r for r in READINGS if r.name in names and r.learning_rate == LEARNING_RATE]
    return Kind([reading._replace(batch=size) for reading in chosen])


def in_larger_batches(size):
    """The nearest weighing in batches of this many episodes, with mellowmax's root or without."""
    weighing = Weighing(to_go=1.0, others=1.0)
    plain = Reading("reward to go, others as baseline", 0.99, weighing, batch=size)
    readings = [
        plain._replace(temperature=temperature, fallback=fallback)
        for temperature in ("held", "moves")
        for fallback in ("none", "overflow")
    ]
    return Kind(readings, seed=132)


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
} | {f"larger-{size}": in_larger_batches(size) for size in (20, 50, 75, 100, 150, 200)}
RUNS = 40
OF_MELLOWMAX = ["temperature", "fallback"]
"""The columns that do not concern Boltzmann's policy."""


def settings(readings):
    """A row for each reading and setting of figure 11; one of Boltzmann's for all that share it."""
    config = Config()
    parameters = {"boltzmann": config.betas, "mellowmax": config.omegas}
    table = pd.DataFrame(
        [row for reading in readings for row in setting_rows("readings", reading, parameters)]
    )
    concerns = [name for name in READING if name not in OF_MELLOWMAX]
    again = table.duplicated([*concerns, "policy", "parameter"])
    return table[~(again & (table["policy"] == "boltzmann"))].reset_index(drop=True)


def rows_of_readings(table):
    """The rows of each reading of a table of `settings`, with those that it shares."""
    concerns = [name for name in READING if name not in OF_MELLOWMAX]
    for reading, rows in table.groupby(READING, sort=False):
        values = dict(zip(READING, reading, strict=True))
        alike = (table[concerns] == [values[name] for name in concerns]).all(axis=1)
        yield values, table.index[alike & (table["policy"] == "boltzmann")].union(rows.index)


def trained(kind, runs, episodes, checkpoint, seconds):
    """The settings of a kind, and the mean returns and lengths in bins of their runs."""
    readings, epochs, max_steps, seed = KINDS[kind]
    table = settings(readings)
    learner = learner_of(table)
    batch = learner.batch
    if epochs is not None:
        options = {"batch": learner.batch, "network": learner.network, "reward_to_go": False}
        learner = reinforce(learner.softmax, discount=1.0, minibatch=32, epochs=epochs, **options)
    said, width = [-np.inf], BIN if BIN % batch == 0 else batch

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
        episodes=-(-episodes // width) * width,
        runs=runs,
        seed=seed,
        max_steps=max_steps,
        bin=width,
        checkpoint=checkpoint,
        seconds_between_checkpoints=30.0,
        callback=callback,
    )
    returns, lengths = (in_bins(x, episodes, width) for x in (result.returns, result.lengths))
    return table, returns, lengths


def in_bins(means, episodes, width):
    """Means over bins of `width` episodes as means over bins of `BIN`, the last axis.

    All episodes of a batch are played by one policy, so a bin that lies in two is divided by how
    many of its episodes lie in each. Bins after the last of `episodes` are left out.
    """
    ends = np.minimum(width * np.arange(1, means.shape[-1] + 1), episodes)
    starts = np.concatenate([[0], ends[:-1]])
    first = BIN * np.arange(episodes // BIN)[:, None]
    shares = np.clip(np.minimum(ends, first + BIN) - np.maximum(starts, first), 0, None) / BIN
    missing = np.isnan(means)[..., None, :] & (shares > 0)
    return np.where(missing.any(-1), np.nan, np.nan_to_num(means) @ shares.T)


def curves(table, returns, lengths):
    """The curve of each setting of each reading, as far as all its runs have come, and the means.

    Returns:
        The mean return by reading, setting and bin, with its standard error over the runs; and each
        run's mean return over those bins.
    """
    names, parts, means = [*READING, "policy", "parameter"], [], []
    for reading, index in rows_of_readings(table):
        rows = table.loc[index].assign(**reading)
        bins = int(np.isfinite(returns[index]).all((0, 1)).sum())
        runs = rows.loc[rows.index.repeat(returns.shape[1]), names]
        runs["returns"] = list(returns[index, :, :bins].reshape(len(runs), bins))
        runs["lengths"] = list(lengths[index, :, :bins].reshape(len(runs), bins))
        parts.append(mean_curves(runs, names))
        mean = returns[index, :, :bins].mean(-1).ravel().astype(np.float32)
        number = np.tile(np.arange(returns.shape[1]), len(rows))
        means.append(runs[names].assign(run=number, episodes=bins * BIN, mean_return=mean))
    whole = pd.concat(parts, ignore_index=True).drop(columns="mean_length")
    whole = whole.astype({"mean_return": np.float32, "standard_error": np.float32})
    return whole, pd.concat(means, ignore_index=True)


def added(path, new):
    """Rows of some readings in place of those that a file has of them, or beside its others."""
    if path.exists():
        there, _ = read_table(path)
        again = there.set_index(READING).index.isin(new.set_index(READING).index)
        new = pd.concat([there[~again], new], ignore_index=True)
    device = jax.devices()[0].device_kind
    write_table(path, new, {"command": "benchmarks/readings.py", "device": device})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, default="weighings")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where it is resumed from")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after this many")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each setting")
    parser.add_argument("--episodes", type=int, default=Config().episodes)
    parser.add_argument(
        "--out",
        type=Path,
        help="the table of curves, to which this kind's are added; beside it one of runs",
    )
    options = parser.parse_args()
    began = time.perf_counter()
    table, returns, lengths = trained(
        options.kind, options.runs, options.episodes, options.checkpoint, options.seconds
    )
    done = np.isfinite(returns).mean()
    print(f"{options.kind}: {done:.1%} of all bins, {time.perf_counter() - began:.0f} s")
    new, means = curves(table, returns, lengths)
    if options.out:
        added(options.out, new)
        added(options.out.with_stem(f"{options.out.stem}_runs"), means)
    print(fig11.distances(new).to_string(index=False))


if __name__ == "__main__":
    main()
