"""No two random numbers of a run, of its neighbours or of an evaluation have the same key."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import numpy as np
import pytest

import mellowmax.deep
from mellowmax.deep import keys

RUNS, BATCHES, EPISODES, STEPS, CHUNKS, EPOCHS, UPDATES = 3, 3, 4, 6, 3, 2, 12
ENVIRONMENTS = 3
SOURCES = Path(mellowmax.deep.__file__).parent


def of_networks(**networks):
    """The first weights."""
    for name, network in networks.items():
        yield name, network
        for i, layer in enumerate(keys.layers(network, 3)):
            yield f"{name} layer {i}", layer


def of_functional_episode(episode):
    """A launch is the first half of a reset, and the second is the step -1."""
    reset = keys.reset(episode)
    yield "reset", reset
    yield "launch", keys.launch(reset)
    yield "step -1", keys.step(episode, -1)[1]
    for t in range(STEPS):
        action, environment = keys.step(episode, t)
        yield f"action {t}", action
        yield f"step {t}", environment


def of_gymnasium_episode(episode):
    yield "seed", keys.reset(episode)  # `seeds` draws with it
    for t in range(STEPS):
        yield f"action {t}", keys.action(episode, t)


def of_steps(run, of_episode, networks=1):
    """A run that learns from single steps, with one network or three."""
    first = keys.first_weights(run)
    if networks == 1:
        yield from of_networks(network=first)
    else:
        yield "first weights", first
        made = keys.networks(first, networks)
        yield from of_networks(**{f"network {i}": key for i, key in enumerate(made)})
    learning = keys.learning(run)
    yield "learning", learning
    for steps in range(UPDATES):
        yield f"minibatch {steps}", keys.minibatch(learning, steps)
    for number in range(EPISODES):
        episode = keys.episode(run, number)
        yield f"episode {number}", episode
        for name, key in of_episode(episode):
            yield f"episode {number}: {name}", key


def of_segments(run, of_episode):
    """A run that learns from segments, with two networks and some environments."""
    first = keys.first_weights(run)
    yield "first weights", first
    yield from of_networks(**dict(zip(("policy", "critic"), keys.networks(first), strict=True)))
    learning = keys.learning(run)
    yield "learning", learning
    for number in range(BATCHES):
        segment = keys.segment(learning, number)
        yield f"segment {number}", segment
        for epoch in range(EPOCHS):
            yield f"segment {number}: epoch {epoch}", keys.epoch(segment, epoch)
    for place, environment in enumerate(keys.environments(run, ENVIRONMENTS)):
        yield f"environment {place}", environment
        for number in range(EPISODES):
            episode = keys.episode(environment, number)
            yield f"environment {place}: episode {number}", episode
            for name, key in of_episode(episode):
                yield f"environment {place}: episode {number}: {name}", key


def of_batches(run, of_batch):
    """A run that learns from whole episodes, with two networks."""
    first = keys.first_weights(run)
    yield "first weights", first
    yield from of_networks(**dict(zip(("policy", "baseline"), keys.networks(first), strict=True)))
    for number in range(BATCHES):
        (batch,) = keys.batches(run[None], np.uint32([number]))
        yield f"batch {number}", batch
        learning = keys.learning_batch(batch)
        yield f"batch {number}: learning", learning
        for epoch in range(EPOCHS):
            yield f"batch {number}: epoch {epoch}", keys.epoch(learning, epoch)
        for name, key in of_batch(batch):
            yield f"batch {number}: {name}", key


def of_functional_batch(batch):
    for number, episode in enumerate(keys.episodes(batch, EPISODES)):
        yield f"episode {number}", episode
        for name, key in of_functional_episode(episode):
            yield f"episode {number}: {name}", key


def of_gymnasium_batch(batch):
    yield "seeds", keys.reset(batch)
    for chunk in range(CHUNKS):
        yield f"actions {chunk}", keys.actions(batch, chunk)


WAYS = {
    "functional episodes": lambda run: of_batches(run, of_functional_batch),
    "Gymnasium episodes": lambda run: of_batches(run, of_gymnasium_batch),
    "functional steps": lambda run: of_steps(run, of_functional_episode),
    "steps of an actor and two critics": lambda run: of_steps(run, of_functional_episode, 3),
    "Gymnasium steps": lambda run: of_steps(run, of_gymnasium_episode),
    "functional segments": lambda run: of_segments(run, of_functional_episode),
    "Gymnasium segments": lambda run: of_segments(run, of_gymnasium_episode),
}


def all_runs():
    """Some runs of two settings, and some lanes of their evaluations."""
    for seed in range(2):
        data = np.asarray(jax.random.key_data(jax.random.key(seed, impl="threefry2x32")))
        numbers = np.arange(RUNS, dtype=np.uint32)
        for i, key in enumerate(keys.run_keys(np.tile(data, (RUNS, 1)), numbers)):
            yield f"seed {seed} run {i}", key
        for i, key in enumerate(keys.evaluation_keys(seed, 0, RUNS)):
            yield f"seed {seed} evaluation {i}", key


@pytest.mark.parametrize("way", WAYS)
def test_no_two_keys_are_the_same(way):
    used = {}
    for name, run in all_runs():
        some = [("run", run), *WAYS[way](run)]
        stacked = np.asarray(jax.random.key_data(jax.numpy.stack([key for _, key in some])))
        for (what, _), data in zip(some, stacked.tolist(), strict=True):
            other = used.setdefault(tuple(data), f"{name}: {what}")
            assert other == f"{name}: {what}", f"{other} and {name}: {what}"
    assert len(used) > 4 * RUNS * 20


def test_seeds_are_drawn_with_a_key_of_their_own():
    key = jax.random.key(3, impl="threefry2x32")
    bits = jax.random.bits(keys.reset(key), (5,), np.uint32)
    np.testing.assert_array_equal(keys.seeds(key[None], 5)[0], np.asarray(bits) >> 1)


def test_keys_are_made_nowhere_else():
    for path in SOURCES.rglob("*.py"):
        made = [
            f"{path.name}:{node.lineno}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and node.attr in {"fold_in", "split"}
            and ast.unparse(node).startswith("jax.random")
        ]  # fmt: skip
        assert not made or path.name == "keys.py", made
