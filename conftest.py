"""What tests and examples share: strict settings of JAX, and packages imported as a whole.

Most of the time goes into compiling. XLA rewrites and fuses formulas as it always does, and then,
unless `XLA_FLAGS` says otherwise, makes code of them by the shorter of its two ways and asks LLVM
for no optimisation: programs are compiled in a third of the time. `make release-tests` runs
everything as users do, and so do some tests of numbers, at every run (`AS_USERS` in
`tests/helpers/libraries.py`).

pytest imports a module such as `mellowmax/planning/solve.py` for its examples. Where that comes
before the import of its package, the module takes the place of the function of the same name.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
from pathlib import Path


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


if "XLA_FLAGS" not in os.environ:
    flags = ["--xla_backend_optimization_level=0"]
    if _xla_has("xla_cpu_use_fusion_emitters"):
        flags.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join(flags)

import jax

import mellowmax.deep
import mellowmax.learning
import mellowmax.planning  # noqa: F401

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

collect_ignore = (
    [] if importlib.util.find_spec("torch") else ["src/mellowmax/torch.py", "docs/howto/pytorch.md"]
)
"""Examples with PyTorch, where it is not installed."""
