"""The array libraries that are installed, each as tests need it: arrays in, NumPy out."""

from __future__ import annotations

import os

import array_api_compat
import array_api_strict
import jax
import numpy as np
import pytest

try:
    import torch

    DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
except ImportError:
    torch, DEVICE = None, None
    if os.environ.get("MELLOWMAX_REQUIRE_TORCH"):
        raise

try:
    import cupy
except ImportError:
    cupy = None


def needs_torch(**options):
    if torch is None:
        pytest.skip("PyTorch is not installed", **options)
    return torch


class Library:
    """One of them."""

    def __init__(self, name: str, module, asarray, to_numpy) -> None:
        self.name, self.module, self._asarray, self.to_numpy = name, module, asarray, to_numpy

    def __repr__(self) -> str:
        return self.name

    def array(self, values, dtype=None):
        """An array of the library, in a dtype given by its name, or in that of the values."""
        values = np.asarray(values)
        return self._asarray(values, getattr(self.module, dtype or str(values.dtype)))


def _read_only(values, dtype):
    copy = values.astype(dtype)
    copy.flags.writeable = False
    return copy


def _libraries():
    numpy = array_api_compat.array_namespace(np.zeros(1))
    yield Library("numpy", numpy, _read_only, np.asarray)
    yield Library(
        "strict",
        array_api_strict,
        lambda x, dtype: array_api_strict.asarray(x, dtype=dtype),
        lambda x: np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x),
    )
    yield Library("jax", jax.numpy, lambda x, dtype: jax.numpy.asarray(x, dtype=dtype), np.asarray)
    if torch is not None:
        yield Library(
            "torch",
            torch,
            lambda x, dtype: torch.asarray(np.array(x), device=DEVICE).to(dtype),
            lambda x: x.detach().to("cpu", torch.float64).numpy(),
        )
    if cupy is not None:
        namespace = array_api_compat.array_namespace(cupy.zeros(1))
        yield Library("cupy", namespace, lambda x, dtype: cupy.asarray(x, dtype), cupy.asnumpy)


AS_USERS = (
    {"xla_cpu_use_fusion_emitters": True, "xla_backend_optimization_level": 3}
    if "fusion_emitters" in os.environ.get("XLA_FLAGS", "")
    else {}
)
"""Compiler options of JAX for what is to be compiled as for users, though it takes longer."""
LIBRARIES = {library.name: library for library in _libraries()}
LIBRARY_NAMES = ["numpy", "strict", "jax", "torch", *(["cupy"] if cupy else [])]
"""With PyTorch even where it is not installed: a test of it is skipped there, and says so."""
