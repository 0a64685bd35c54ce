"""A dozen of the kills and signals that `make stress` sends a thousand of."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "stress.py"


@pytest.fixture(scope="module")
def stress():
    spec = importlib.util.spec_from_file_location("stress", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SLACK = 10.0  # tests share their cores
    train = module.COMMANDS["train, workers"].replace("--episodes 400", "--episodes 20")
    commands = {
        "solve": "solve FrozenLake-v1 --parameter 5 --out out.npz",
        "train": train.replace("--workers 2", "--workers 1"),
    }
    stress = module.Stress(commands)
    stress.prepare()
    yield stress
    shutil.rmtree(stress.root)


@pytest.mark.release
def test_a_dozen_kills_and_signals_do_no_harm(stress):
    for _ in range(6):
        for name in stress.names:
            stress.trial(name)
    assert not any(stress.wrong.values()), stress.wrong
    assert sum(stress.trials.values()) == 12
