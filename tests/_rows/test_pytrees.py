"""Dataclasses that JAX sees through, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys


def test_pairs_made_before_jax_is_imported_are_data_to_it():
    code = """
import sys
from mellowmax import Mellowmax
softmax = Mellowmax(2.0)
assert "jax" not in sys.modules
import jax
value = jax.jit(lambda softmax, q: softmax.value(q))(softmax, jax.numpy.arange(3.0))
print(jax.tree_util.tree_leaves(softmax), round(float(value), 4))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[2.0] 1.5222\n", result.stderr
