"""Compiled programs are kept for the next process, unless JAX was told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import os, sys
from pathlib import Path
import jax
from mellowmax import Max
from mellowmax._common.compiled_programs import keep_compiled_programs
from mellowmax.mdp import garnet
from mellowmax.planning import solve

def directory(home, enabled, already=None):
    os.environ["XDG_CACHE_HOME"] = str(home)
    jax.config.update("jax_enable_compilation_cache", enabled)
    jax.config.update("jax_compilation_cache_dir", already)
    keep_compiled_programs()
    return jax.config.jax_compilation_cache_dir

here = Path(sys.argv[1])
file = here / "file"
file.touch()
print(directory(here / "home", False), directory(here, True, "other"), directory(file, True))
solve(garnet(3, 2, 2, seed=0), Max())  # in memory
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append("cache_hit" in event))
for _ in range(2):
    print(jax.config.jax_compilation_cache_dir, any(hits))
    os.environ["XDG_CACHE_HOME"] = str(here / "home")
    solve(garnet(3, 2, 2, seed=0), Max(), method="shifted")
    jax.clear_caches()
kept = (here / "home/mellowmax/jax").iterdir()
print(any(hits), any(path.name.startswith("jit_whole") for path in kept))
"""


def test_programs_are_kept_where_jax_has_no_place_for_them(tmp_path):
    own = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # tests compile quickly
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=own)
    kept = tmp_path / "home" / "mellowmax" / "jax"
    expected = ["None other None", "None False", f"{kept} False", "True True"]
    assert done.stdout.splitlines() == expected, done.stderr
