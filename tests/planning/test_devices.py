"""Planning over several devices, and over several processes, is planning on one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from mellowmax import Max, Mellowmax
from mellowmax.mdp import garnet, grid_world
from mellowmax.planning import solve

STRICT = """
import json, sys
from unittest import mock
import jax, numpy as np
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
from jax.sharding import Mesh
from mellowmax import Boltzmann, EpsilonGreedy, Max, Mellowmax
from mellowmax.mdp import MDP, garnet, grid_world
from mellowmax.planning import evaluate, sensitivity, solve
"""

EIGHT_DEVICES = (
    STRICT
    + """
mesh = Mesh(np.array(jax.devices()), ("states",))
assert mesh.size == 8
rng = np.random.default_rng(0)
allowed = rng.random((19, 3)) < 0.6
allowed[:, 1] = True
models = {
    "garnet": garnet(11, 3, 4, seed=0, discount=0.95),  # two states a device; two have none
    "ladder": MDP.from_function(
        lambda s, a: [(1.0, s + 1 + a, s % 3 - 1.0, s + a > 10)] if s != 5 else [], 12, 2, 0.95
    ),
    "dense": MDP.from_arrays(
        rng.dirichlet(np.full(19, 0.3), (19, 3)),
        rng.normal(size=(19, 3, 19)),
        0.9,
        allowed=allowed,
    ),
}
own = Mellowmax(np.linspace(0.5, 5.0, 11))  # a parameter for each state
cases = [
    ("garnet", own, "shifted"),
    ("garnet", own, "newton"),
    ("garnet", Boltzmann(0.3), "synchronous"),
    ("ladder", Max(), "auto"),
    ("dense", EpsilonGreedy(0.2), "newton"),
]
start = rng.normal(size=(11, 3))


def apart(one, other):
    finite = np.isfinite(one)
    assert (finite == np.isfinite(other)).all()
    return float(abs(one[finite] - other[finite]).max())


results = []
for name, softmax, method in cases:
    options = {"method": method, "tolerance": 1e-9, "history": True}
    options["initial"] = start if method == "shifted" else 0.0
    one, many = (solve(models[name], softmax, mesh=m, **options) for m in (None, mesh))
    result = {
        "case": f"{name}, {type(softmax).__name__}, {method}",
        "apart": float(max(apart(one.q, many.q), apart(one.value, many.value))),
        "size": float(abs(one.value).max()),
        "bounds": (one.error_bound or 0.0) + (many.error_bound or 0.0),
        "same": (one.method, one.status, one.q.shape) == (many.method, many.status, many.q.shape),
        "iterations": [one.iterations, many.iterations],
        "method": many.method,
        "loss": [one.suboptimality_bound, many.suboptimality_bound],
    }
    weights = rng.normal(size=one.q.shape)
    here = one.vjp(weights)
    with mock.patch.multiple(sensitivity, _in_memory=None, _pulled_back=None):
        there = many.vjp(weights)  # of these, each device holds its own states alone
    for mine, yours in zip(*map(jax.tree.leaves, (here, there)), strict=True):
        assert apart(mine, yours) <= 1e-7 * max(np.abs(mine).max(), 1.0)
    results.append(result)
for extra in ({"horizon": 4, "final": np.arange(11.0)}, {"average": True}):
    single = Mesh(np.array(jax.devices()[:1]), ("states",))  # not main memory
    one, many = (
        solve(models["garnet"], EpsilonGreedy(0.2), mesh=m, **extra) for m in (single, mesh)
    )
    assert apart(one.q, many.q) <= 1e-13 * abs(one.q).max()
    assert (one.q.shape, one.error_bound) == (many.q.shape, many.error_bound)
policy, bonus = rng.dirichlet(np.ones(2), 12), rng.normal(size=12)
options = {"bonus": bonus, "tolerance": 1e-13, "throw": False}
one, many = (evaluate(policy, models["ladder"], mesh=m, **options) for m in (None, mesh))
assert many.value[5] == 0  # a terminal state has no bonus
evaluated = apart(one.q, many.q)
try:
    solve(models["garnet"], own, method="in-place", mesh=mesh)
except ValueError as error:
    message = str(error)
alone = Mesh(np.array(jax.devices()[3:4]), ("states",))
options = {"method": "shifted", "initial": start}
one, other = (solve(models["garnet"], own, mesh=m, **options) for m in (None, alone))
print(json.dumps({
    "results": results,
    "apart": evaluated,
    "in place": message,
    "alone": bool((one.q == other.q).all()),
    "solved in": str(one.q.dtype),
    "flag": jax.config.jax_enable_x64,
    "dtype": str(jax.numpy.arange(3.0).dtype),
}))
"""
)

TWO_PROCESSES = (
    STRICT
    + """
port, number, path = sys.argv[1:]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(number))
mesh = Mesh(np.array(jax.devices()), ("states",))
assert (mesh.size, len(jax.local_devices())) == (4, 2)
softmax = Mellowmax(np.linspace(1.0, 4.0, 57))
random = solve(garnet(57, 3, 4, seed=0, discount=0.9), softmax, method="shifted", mesh=mesh)
grid = solve(grid_world((4, 5), discount=0.9), Max(), method="newton", mesh=mesh)
moved = random.vjp(np.ones((57, 3))).rewards
np.savez(path, random=random.q, grid=grid.q, moved=moved, bound=grid.error_bound)
jax.distributed.shutdown()
"""
)


def environment(devices):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    return os.environ | {"XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"}


def test_eight_devices_find_what_one_finds():
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", EIGHT_DEVICES],
        capture_output=True,
        text=True,
        env=environment(8),
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert len(found["results"]) == 5
    for result in found["results"]:
        assert result["same"], result
        if result["method"] in ("synchronous", "shifted"):
            assert result["apart"] <= 1e-13 * max(result["size"], 1.0), result
            assert len(set(result["iterations"])) == 1, result
        else:
            assert result["apart"] <= result["bounds"] <= 1e-6, result
        np.testing.assert_allclose(*result["loss"], rtol=1e-6, atol=1e-6)
    assert found["apart"] <= 1e-12  # for a policy
    assert found["alone"]  # a mesh of one device, whichever
    # Planning is in float64 though JAX's flag is not set, and leaves the flag alone.
    assert (found["solved in"], found["flag"], found["dtype"]) == ("float64", False, "float32")
    rule = "`mesh` must have one device for in-place sweeps, which go state by state"
    assert found["in place"] == rule


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.mark.release
def test_two_processes_find_what_one_finds(tmp_path):
    port = str(free_port())
    paths = [tmp_path / f"{number}.npz" for number in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, port, str(number), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(2),
        )
        for number, path in enumerate(paths)
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()  # SIGTERM is caught by JAX
            process.wait()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    softmax = Mellowmax(np.linspace(1.0, 4.0, 57))
    random = solve(garnet(57, 3, 4, seed=0, discount=0.9), softmax, method="shifted")
    grid = solve(grid_world((4, 5), discount=0.9), Max(), method="newton")
    moved = random.vjp(np.ones((57, 3))).rewards
    for name, one, apart in (
        ("random", random.q, 1e-12),
        ("grid", grid.q, grid.error_bound + float(np.load(paths[0])["bound"])),
        ("moved", moved, 1e-9),
    ):
        first, second = (np.load(path)[name] for path in paths)
        assert np.array_equal(first, second)
        np.testing.assert_allclose(first, one, rtol=0, atol=apart)
