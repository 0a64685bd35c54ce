"""Private names of other packages: they are there, and mean what is written of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import scipy.sparse
import typer

from helpers.libraries import needs_torch
from mellowmax._common import private_names


def test_the_click_of_typer():
    exceptions = private_names.click("exceptions")
    assert issubclass(typer.BadParameter, exceptions.UsageError)
    kinds = (exceptions.MissingParameter, exceptions.NoSuchOption, exceptions.BadOptionUsage)
    assert all(issubclass(kind, exceptions.UsageError) for kind in kinds)
    context = private_names.click("core").Context
    assert issubclass(typer.Context, context)
    assert context.formatter_class is private_names.click("formatting").HelpFormatter
    assert private_names.click("globals").get_current_context(silent=True) is None


def test_a_product_in_place_takes_each_row_after_the_one_before():
    sweep = private_names.rows_in_place()
    assert sweep is not None
    matrix = np.tril(np.arange(25.0).reshape(5, 5), -1)
    rows = scipy.sparse.csr_array(matrix)
    x = np.arange(1.0, 6.0)
    sweep(rows.indptr, rows.indices, rows.data, x)
    assert x.tolist() == [1.0, 2 + 5, 3 + 10 + 11 * 7, 4 + 15 + 16 * 7 + 17 * 90, 40355.0]


def test_a_compiled_program_is_kept_whole_or_not_at_all(tmp_path):
    code = """
import os, resource, sys
from jax._src.lru_cache import LRUCache
from mellowmax._common.private_names import write_programs_whole
write_programs_whole()
cache = LRUCache(sys.argv[1], max_size=-1)
cache.put("short", b"x" * 10)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    cache.put("long", b"x" * 100)
except OSError:
    print(sorted(os.listdir(sys.argv[1])), cache.get("short"))
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "['short-cache'] b'xxxxxxxxxx'\n", done.stderr


def test_the_compiler_of_pytorch_is_a_module_of_that_name():
    needs_torch()
    assert importlib.util.find_spec(private_names.COMPILER)


def within_torch(look):
    """What `look` says of a tensor: outside, in `torch.func`, and where every operation is seen."""
    torch = needs_torch()
    from torch.fx.experimental.proxy_tensor import make_fx

    x, found = torch.ones(2, 3), []

    def function(y):
        found.append(look(x, y))
        return y.sum()

    function(x)
    torch.func.vmap(function)(x)
    torch.func.grad(function)(x)
    make_fx(function)(x)
    return found


def test_a_mode_that_sees_every_operation():
    assert within_torch(lambda x, y: private_names.is_intercepted()) == [False, False, False, True]


def test_what_is_inside_the_tensors_of_transformations():
    found = within_torch(lambda x, y: private_names.functorch_unwrapped(y) is y)
    assert found == [True, False, False, True]
    torch, shapes = needs_torch(), []

    def look(x):
        shapes.append(tuple(private_names.functorch_unwrapped(x).shape))
        return x

    torch.func.vmap(torch.func.vmap(look))(torch.ones(2, 3, 4))
    assert shapes == [(2, 3, 4)]


def test_whether_nothing_but_autograd_follows():
    """Not even for a tensor of outside, which has no part in the transformation."""
    found = within_torch(lambda x, y: private_names.is_only_for_autograd(x))
    assert found == [True, False, False, False]
    torch, left = needs_torch(), []
    assert private_names.is_only_for_autograd(torch.ones(3, requires_grad=True))

    def leave(x):
        left.append(x)
        return x.sum()

    torch.func.grad(leave)(torch.ones(3))
    assert not private_names.is_only_for_autograd(left[0])
