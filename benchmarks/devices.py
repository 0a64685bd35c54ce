"""Planning over devices: time and memory as states and devices grow.

`make bench` runs it. XLA splits the CPU into devices, so that the curve has the shape of its work
and of its communication, not the speed of machines with cores of their own: all of them share the
cores of this one. Two processes are joined by `jax.distributed`, as two machines are. A time is the
best of three solves of `SWEEPS` shifted sweeps after the first, which compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time

import jax
import numpy as np
from jax.sharding import Mesh

from mellowmax import Max
from mellowmax.mdp import garnet
from mellowmax.planning import solve
from mellowmax.planning.problem import place

SWEEPS, REPEATS = 20, 3
ACTIONS, BRANCHES = 5, 5
SPLITS = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4))
"""Processes, and devices of each."""
LIMIT = 600
"""Seconds for one line of the table."""


def worker(n_states, processes, number, port):
    """What one process measures, as JSON."""
    if processes > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", processes, number)
    mesh = Mesh(np.array(jax.devices()), ("states",))
    mdp = garnet(n_states, ACTIONS, BRANCHES, 0)
    options = {"method": "shifted", "tolerance": 0.0, "throw": False, "mesh": mesh}
    times = []
    for _ in range(1 + REPEATS):
        began, used = time.perf_counter(), time.process_time()
        solve(mdp, Max(), max_iterations=SWEEPS, **options)
        times.append((time.perf_counter() - began, time.process_time() - used))
    with jax.enable_x64(True):
        arrays = jax.tree.leaves(place(mdp, mesh))
    device = jax.local_devices()[0]
    shards = [s.data for array in arrays for s in array.addressable_shards if s.device == device]
    wall, cpu = (min(column) / SWEEPS for column in zip(*times[1:], strict=True))
    held = sum(shard.nbytes for shard in shards)
    print(json.dumps({"wall": wall, "cpu": cpu, "held": held}))
    if processes > 1:
        jax.distributed.shutdown()


def measured(n_states, processes, devices):
    """The slowest process's time for a sweep, the CPU time of all, and the bytes of a device."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    flag = f"--xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flag}
    numbers = range(processes)
    command = [sys.executable, __file__, "--worker", n_states, processes]
    started = [
        subprocess.Popen(
            [str(part) for part in (*command, number, port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        for number in numbers
    ]
    try:
        said = [process.communicate(timeout=LIMIT)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    found = [json.loads(text.splitlines()[-1]) for text in said]
    wall = max(one["wall"] for one in found)
    return wall, sum(one["cpu"] for one in found), max(one["held"] for one in found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--worker", type=int, nargs=4)
    chosen = parser.parse_args()
    if chosen.worker:
        worker(*chosen.worker)
        return
    print(f"JAX {jax.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print(f"A sweep of a Garnet with {ACTIONS} actions and {BRANCHES} branches, in milliseconds:")
    print("      states  processes  devices      time  CPU time  of one device   MiB a device")
    for n_states in map(int, chosen.states):
        alone = None
        for processes, devices in SPLITS:
            wall, cpu, held = measured(n_states, processes, devices)
            alone = cpu if alone is None else alone
            row = f"{n_states:12,d}{processes:11d}{processes * devices:9d}{1e3 * wall:10.2f}"
            print(f"{row}{1e3 * cpu:10.2f}{cpu / alone:15.2f}{held / 2**20:15.2f}", flush=True)


if __name__ == "__main__":
    main()
