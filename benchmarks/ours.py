"""One model solved by this library: `ours.py MODEL [first]`, a line of JSON.

Times are seconds of the processor, of the first solve of a process and the best of later ones.
`memory` is the model and what a solve needs beside it at its peak, over the size of the model.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from peers.model import TOLERANCE, timed

import mellowmax as mm
from mellowmax.mdp import MDP
from mellowmax.planning import solve


def resident():
    """The current size of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def size_of(mdp):
    """The bytes of a model."""
    arrays = (mdp.successors, mdp.probabilities, mdp.rewards)
    return sum(array.nbytes for array in arrays if array is not None)


def peak():
    """The largest it has been since the peak was forgotten."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


mdp = MDP.load(sys.argv[1])
found = {}
for name, softmax in (("max", mm.Max()), ("mellowmax", mm.Mellowmax(5.0))):

    def solved(softmax=softmax):
        return solve(mdp, softmax, tolerance=TOLERANCE)

    began = time.process_time()
    solution = solved()
    first = time.process_time() - began
    found[name] = {"first": first}
    if "first" not in sys.argv:
        Path("/proc/self/clear_refs").write_text("5")
        before = resident() - size_of(mdp)
        found[name]["seconds"] = timed(solved)[1]
        found[name]["memory"] = (peak() - before) / size_of(mdp)
if "first" not in sys.argv:
    weights = np.random.default_rng(0).normal(size=solution.q.shape)
    found["vjp"] = timed(lambda: solution.vjp(weights))[1]
print(json.dumps(found))
