"""Objects that JAX sees through, whichever is imported first."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest

from mellowmax._common.pytrees import register


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


def test_fields_are_data_unless_they_are_static():
    @dataclasses.dataclass(frozen=True)
    class Scaled:
        scale: float
        name: str = dataclasses.field(default="x", metadata={"static": True})

    register(Scaled)
    register(Scaled)  # once more changes nothing
    twice = jax.tree.map(lambda x: 2 * x, Scaled(1.5, "y"))
    assert twice == Scaled(3.0, "y")
    assert jax.tree.structure(Scaled(1.0)) != jax.tree.structure(Scaled(1.0, "y"))
    assert jax.tree_util.tree_leaves_with_path(twice)[0][0][0].name == "scale"


def test_attributes_of_a_plain_object_are_data_unless_they_are_text_or_functions():
    class Plain:
        def __init__(self, scale):
            self.scale, self.name, self.function = scale, "plain", abs

    register(Plain)
    twice = jax.tree.map(lambda x: 2 * x, Plain(np.ones(2)))
    assert (twice.name, twice.function, twice.scale.tolist()) == ("plain", abs, [2.0, 2.0])


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_class_that_its_author_has_registered_stays_so(by_hand):
    class Own:
        pass

    if by_hand:
        jax.tree_util.register_pytree_node(Own, lambda tree: ([7], None), lambda _, data: Own())
    register(Own)
    assert jax.tree.leaves(Own()) == ([7] if by_hand else [])
