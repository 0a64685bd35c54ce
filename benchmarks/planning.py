"""Planning against other solvers, as ratios in one run, each to the same residual.

`make bench` runs it. Times are seconds of the processor. Each peer has an environment of its own,
made on the first run in `build/bench`, which finds this library too: for each model a process times
all the peer's methods, and ours before and after each of them. The best method counts. A process
gets `--limit` seconds of the processor for a model. `--peer NAME` and `--model NAME` restrict it;
`--peer none` leaves our own times. Compiling is apart: the first solve of a process, with nothing
kept and with what an earlier process has kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from models import BANDED_OR_GRIDS, MODELS, NEW
from venvs import BUILD, python_of

HERE = Path(__file__).parent
PEERS = {
    "quantecon": [["quantecon==0.11.4"]],
    "pymdptoolbox": [["pymdptoolbox==4.0b3"]],
    "mdpax": [  # which asks for JAX with CUDA
        ["hydra-core", "jaxtyping", "loguru", "chex", "orbax-checkpoint", "numpyro", "jax==0.10.2"],
        ["--no-deps", "mdpax==0.2.2"],
    ],
    "mdpsolver": [["mdpsolver==0.10.2"]],
    "jaxdp": [["jaxdp==0.4.0", "jax==0.10.2"]],
}
DENSE_ONLY = {"jaxdp"}
TWICE, ADJOINT = 2.0, 1.5
"""Goals: mellowmax over max on grids and banded models, `vjp` over a solve with mellowmax."""


def saved(name):
    """The model's file."""
    path = BUILD / "models" / f"{name.replace(' ', '-')}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        MODELS[name]().save(path)
    return path


def spent(pid):
    """The seconds of the processor that a process has used by now."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in after_name[11:13]) / os.sysconf("SC_CLK_TCK")


def run(command, limit, **environment):
    """The lines of JSON that a process has printed within the limit, and how it ended."""
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    own = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=error,
            env=own | one_thread | environment,
        )
        why = ""
        while process.poll() is None:
            time.sleep(0.1)
            if spent(process.pid) > limit:
                process.kill()
                process.wait()
                why = f"over {limit:g} s"
        out.seek(0)
        error.seek(0)
        said = error.read().strip().splitlines()
        if process.returncode and not why:
            why = said[-1][:70] if said else f"exit code {process.returncode}"
        return [json.loads(line) for line in out if line.startswith("{")], why


def ours(name):
    """Our times for a model: later solves, and first ones without and with what was kept."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, HERE / "ours.py", saved(name)]
        cold, why = run([*command, "first"], 600, XDG_CACHE_HOME=cache)
        warm, why = run(command, 600, XDG_CACHE_HOME=cache)
    if not warm:
        raise RuntimeError(f"{name}: {why}")
    return cold[0], warm[0]


def table_of_ours(names):
    """Print our times, and return those that miss a goal."""
    missed = []
    print("seconds of the processor      max  mellowmax       vjp   first solve  kept   memory")
    for name in names:
        cold, warm = ours(name)
        best, soft = warm["max"]["seconds"], warm["mellowmax"]["seconds"]
        ratio, adjoint = soft / best, warm["vjp"] / soft
        stars = [" ", " "]
        if name in BANDED_OR_GRIDS and ratio > TWICE:
            stars[0] = "*"
            missed.append(f"mellowmax takes {ratio:.1f} times as long as max: {name}")
        if adjoint > ADJOINT:
            stars[1] = "*"
            missed.append(f"vjp takes {adjoint:.1f} times as long as a solve: {name}")
        both = [x["max"]["first"] + x["mellowmax"]["first"] for x in (cold, warm)]
        memory = max(warm["max"]["memory"], warm["mellowmax"]["memory"])
        new = "new" if name in NEW else ""
        print(
            f"{name:18s}{new:4s}{best:12.5f}{soft:9.5f}{ratio:6.1f}{stars[0]}{adjoint:6.2f}{stars[1]}"
            f"{both[0]:12.2f}{both[1]:6.2f}{memory:7.1f} x",
            flush=True,
        )
    return missed


def table_of_peer(peer, names, limit):
    """Print a peer's best method for each model, and return where we are behind."""
    behind = []
    python = python_of(peer, *PEERS[peer], beside_ours=True)
    print(f"\n{peer:24s}seconds     ours  ours is  residual  its best method")
    for name in names:
        found, why = run([python, HERE / "peers" / f"{peer}_solve.py", saved(name)], limit)
        done = [one for one in found if one["residual"] <= 1e-5]
        if not done:
            print(f"{name:20s} {why or 'no method has solved it'}", flush=True)
            continue
        best = min(done, key=lambda one: one["seconds"])
        ours = min(one["ours"] for one in found)
        ratio = best["seconds"] / ours
        star = "" if ratio >= 1 else "*"
        if star:
            behind.append(f"{peer} takes {ratio:.2f} times as long as we do: {name}")
        faster = f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"
        note = f" ({why} for the others)" if why else ""
        print(
            f"{name:20s}{best['seconds']:11.5f}{ours:9.5f}{faster:>8s} x{star:1s}"
            f"{best['residual']:9.1e}  {best['method']}{note}",
            flush=True,
        )
    return behind


def main():
    """Print a table of our times, one for each peer, and which goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=[*PEERS, "none"], action="append")
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--limit", type=float, default=60.0)
    chosen = parser.parse_args()
    names = chosen.model or list(MODELS)
    print(f"{platform.machine()}, Python {platform.python_version()}, one thread of BLAS\n")
    missed = table_of_ours(names)
    for peer in chosen.peer or PEERS:
        if peer != "none":
            some = [name for name in names if peer not in DENSE_ONLY or name.startswith("dense")]
            missed += table_of_peer(peer, some, chosen.limit)
    print("\nGoals that are missed: " + ("; ".join(missed) or "none"))


if __name__ == "__main__":
    main()
