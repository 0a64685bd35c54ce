"""One fixture for every array library, and random numbers that are the same for every test."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from helpers.libraries import LIBRARIES, LIBRARY_NAMES, needs_torch, torch

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    if torch is None:
        return "PyTorch is not installed: its tests are skipped (`make install EXTRAS=test,torch`)"
    return f"PyTorch {torch.__version__}"


@pytest.fixture(params=LIBRARY_NAMES)
def library(request):
    if request.param == "torch":
        needs_torch()
    return LIBRARIES[request.param]


@pytest.fixture
def rng():
    """Random numbers that are the same whatever ran before."""
    return np.random.default_rng(0)
