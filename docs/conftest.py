"""Pages are run as users run them; those whose packages are missing are left out, and said."""

from __future__ import annotations

import importlib.util
import os

import jax
import pytest

NEEDS = {
    "howto/distrax_rlax.md": ["distrax", "rlax"],
    "howto/flax.md": ["flax"],
    "howto/gymnax.md": ["gymnax"],
    "howto/jax_environments.md": ["jumanji", "navix", "pgx"],
    "howto/own_network.md": ["gymnax"],
    "howto/pytorch.md": ["torch"],
    "howto/quantecon.md": ["quantecon"],
    "howto/single_file.md": ["torch"],
    "howto/stable_baselines3.md": ["stable_baselines3", "torch"],
}
"""What a page needs beyond the extra `test`."""
LEFT_OUT = [page for page, names in NEEDS.items() if not all(map(importlib.util.find_spec, names))]
collect_ignore = LEFT_OUT
DEFAULTS = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
}
"""JAX as it is for users; the tests are stricter."""

if LEFT_OUT and os.environ.get("MELLOWMAX_REQUIRE_PAGES"):
    raise ImportError(f"not installed, what these pages need: {', '.join(LEFT_OUT)}")


def pytest_report_header() -> str:
    """Say which pages are not run."""
    return f"left out, see `make howto`: {', '.join(LEFT_OUT)}" if LEFT_OUT else "every page"


@pytest.fixture(autouse=True)
def _jax_as_users_have_it(request: pytest.FixtureRequest) -> object:
    if request.path.parent.name != "howto":
        yield
        return
    ours = {name: getattr(jax.config, name) for name in DEFAULTS}
    for name, value in DEFAULTS.items():
        jax.config.update(name, value)
    yield
    for name, value in ours.items():
        jax.config.update(name, value)
