"""Devices and processes that share the runs train what one of them trains, bit for bit."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from helpers.trainings import on_two_states
from mellowmax.deep import load_policy

TRAIN = """
import sys
import jax
import numpy as np

path, runs, *number_and_port = sys.argv[1:]
if number_and_port:
    number, port = number_and_port
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(number))
from helpers.trainings import on_two_states

assert len(jax.devices()) == 2 and len(jax.local_devices()) == (1 if number_and_port else 2)
result = on_two_states(
    episodes=8, runs=int(runs), devices=jax.devices(), checkpoint=path + "-checkpoint"
)
weights = [np.asarray(x) for x in jax.tree.leaves(result.policies.network)]
np.savez(path, *weights, returns=result.returns, lengths=result.lengths)
"""


@pytest.fixture(scope="module")
def alone():
    return on_two_states(episodes=8, runs=80)  # three blocks


def process(path, devices, *arguments, runs=80):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    here = os.pathsep.join(sys.path)
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": here}
    command = [sys.executable, "-c", TRAIN, str(path), str(runs), *arguments]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def assert_is(path, alone):
    with np.load(path) as found:
        np.testing.assert_array_equal(found["returns"], alone.returns)
        np.testing.assert_array_equal(found["lengths"], alone.lengths)
        np.testing.assert_array_equal(found["arr_0"], alone.policies.network.layers[0].weight)


def test_two_devices_train_what_one_trains(tmp_path, alone):
    path = tmp_path / "result.npz"
    training = process(path, 2)
    _, said = training.communicate(timeout=300)
    assert training.returncode == 0, said
    assert_is(path, alone)


def two_processes(paths, **options):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = str(server.getsockname()[1])
    return [process(path, 1, str(i), port, **options) for i, path in enumerate(paths)]


@pytest.mark.release
def test_two_processes_train_what_one_trains(tmp_path, alone):
    paths = [tmp_path / f"{number}.npz" for number in range(2)]
    for training in two_processes(paths):
        _, said = training.communicate(timeout=300)
        assert training.returncode == 0, said
    for path in paths:  # each of them has the whole result
        assert_is(path, alone)
    written = [sorted(x.name for x in tmp_path.glob(f"{i}.npz-checkpoint/*")) for i in range(2)]
    assert written == [["runs-00000.npz", "runs-00064.npz"], ["runs-00032.npz"]]
    policy = load_policy(tmp_path / "1.npz-checkpoint", 40).policy
    weight = alone.policies.network.layers[0].weight
    np.testing.assert_array_equal(policy.network.layers[0].weight, weight[40])


@pytest.mark.release
def test_a_process_without_a_run_is_one_sentence(tmp_path):
    """In both processes, so that none waits for the other."""
    for training in two_processes([tmp_path / "0.npz", tmp_path / "1.npz"], runs=32):
        _, said = training.communicate(timeout=300)
        message = (
            "`devices` must leave some of the 32 runs, 32 at a time, to each process, got none"
        )
        assert said.strip().splitlines()[-1] == f"ValueError: {message} for process 1"
