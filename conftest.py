"""What tests and examples share: strict settings of JAX, and packages imported as a whole.

Most of the time goes into compiling. XLA rewrites formulas as it always does, and then asks LLVM
for no optimisation, unless `XLA_FLAGS` says otherwise: programs are compiled in two thirds of the
time. `make release-tests` runs everything as users do.

pytest imports a module such as `mellowmax/planning/solve.py` for its examples. Where that comes
before the import of its package, the module takes the place of the function of the same name.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax

import mellowmax.deep
import mellowmax.learning
import mellowmax.planning  # noqa: F401

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
