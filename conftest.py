"""What tests and examples share: strict settings of JAX, and packages imported as a whole.

Most of the time goes into compiling. XLA rewrites and fuses formulas as it always does, and then,
unless `XLA_FLAGS` says otherwise, makes code of them by the shorter of its two ways, asks LLVM for
no optimisation, and gives it each program in one piece, not in a piece for each core: programs are
compiled in a quarter of the time. `make release-tests` runs everything as users do, and so do some
tests of numbers, at every run (`AS_USERS` in `tests/helpers/libraries.py`).

The linear algebra of NumPy and PyTorch has one thread, in the processes that pytest-xdist and tests
start. Several threads spin while they wait for each other, ten times as long as they work.

Tracing makes many small objects, and Python would look for garbage among millions of them again
and again. So it looks more seldom, and not among those that were there before the first test.

pytest-xdist gives all tests of a file to one process. All files on the lander or on inverse
reinforcement learning go to one, too: their programs are shared, and take seconds to compile.
JAX could keep programs on disk for all processes, but looking up every program takes longer than
the few that are found would take to compile.

pytest imports a module such as `mellowmax/planning/solve.py` for its examples. Where that comes
before the import of its package, the module takes the place of the function of the same name.
"""

from __future__ import annotations

import gc
import importlib.util
import mmap
import os
from pathlib import Path

import pytest


def _xla_has(flag: str) -> bool:
    """Is there such a flag in the XLA that is installed? It ends the process if there is not.

    A flag is a whole string of the library. One that is gone may still be among the names that are
    not to be used again, which have no zero around them.
    """
    spec = importlib.util.find_spec("jaxlib")
    libraries = Path(spec.origin).parent.glob("*.so") if spec and spec.origin else ()
    for path in libraries:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as found:
            if found.find(b"\0" + flag.encode() + b"\0") >= 0:
                return True
    return False


for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

if "XLA_FLAGS" not in os.environ:
    flags = ["xla_backend_optimization_level=0"]
    for flag in ("xla_cpu_use_fusion_emitters=false", "xla_cpu_parallel_codegen_split_count=1"):
        if _xla_has(flag.split("=")[0]):
            flags.append(flag)
    os.environ["XLA_FLAGS"] = " ".join(f"--{flag}" for flag in flags)


import jax

import mellowmax.deep
import mellowmax.learning
import mellowmax.planning  # noqa: F401

jax.config.update("jax_enable_x64", True)
if jax.config.jax_compilation_cache_dir is None:  # the tests leave nothing in the user's
    jax.config.update("jax_enable_compilation_cache", False)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

collect_ignore = (
    [] if importlib.util.find_spec("torch") else ["src/mellowmax/torch.py", "docs/howto/pytorch.md"]
)
"""Examples with PyTorch, where it is not installed."""


SHARING = ("lunar_lander", "inverse")
"""Parts of the names of files whose tests share programs that take long to compile."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `--dist loadfile`, let one process have all files that share programs."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Sharing(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((part for part in SHARING if part in file), file)

    return Sharing(config, log)


def pytest_collection_finish() -> None:
    """Look for garbage more seldom, and not among what has been imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
