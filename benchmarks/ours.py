"""One model solved by this library: `ours.py MODEL OPERATOR RESIDUAL`, a line of JSON.

`memory` is the model and what a solve needs beside it at its peak, over the size of the model.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import jax
from peers.model import again

import mellowmax as mm
from mellowmax.mdp import MDP
from mellowmax.planning import solve

jax.config.update("jax_compilation_cache_dir", str(Path(sys.argv[1]).parent / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # as for jaxdp: see docs/benchmarks.md


def resident():
    """The current size of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def reset_peak():
    """Forget the peak of building the model."""
    Path("/proc/self/clear_refs").write_text("5")


def size_of(mdp):
    """The bytes of a model."""
    arrays = (mdp.successors, mdp.probabilities, mdp.rewards)
    return sum(array.nbytes for array in arrays if array is not None)


def peak_since():
    """The largest it has been since `reset_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


mdp = MDP.load(sys.argv[1])
name, *parameter = sys.argv[2].split()
softmax = mm.Max() if name == "max" else mm.Mellowmax(float(parameter[0]))
times = []
while again(times):
    if len(times) == 1:  # what follows compiles nothing
        reset_peak()
        before = resident() - size_of(mdp)
    began = time.perf_counter()
    solution = solve(mdp, softmax, tolerance=float(sys.argv[3]))
    times.append(time.perf_counter() - began)
print(
    json.dumps(
        {
            "seconds": min(times[1:]),
            "first": times[0],
            "residual": solution.residual,
            "method": f"{solution.method}, {solution.iterations} iterations",
            "memory": (peak_since() - before) / size_of(mdp),
            "peak": peak_since(),
        }
    )
)
