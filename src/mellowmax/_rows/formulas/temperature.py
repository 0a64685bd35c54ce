"""The inverse temperature of mellowmax's maximum-entropy policy, one root a row.

The root is searched for as a relative temperature (`relative_temperature`), which is what policies
need. Here it is turned into the caller's numbers.
"""

from __future__ import annotations

from ..._typing import Array, Namespace
from ..libraries.torch_compiler import define_search
from ..libraries.tracing import truth
from ..row_function import RowFunction
from .gaps import Gaps, gaps
from .relative_temperature import far_actions, parts_of_omega, search, search_in_fixed_steps
from .temperature_gradients import at_a_limit, d_omega, grad_prior, grad_q

__all__ = ["relative_temperature", "temperature", "temperature_d_omega", "temperature_grad_q"]


def _temperature(
    xp: Namespace, q: Array, omega: Array, counted: Array | None, relative: Array
) -> Array:
    g = gaps(xp, q, omega, counted)
    b = _in_callers_numbers(xp, g, omega, relative, relative)
    if g.weightless is not None:
        # A limit of 0 keeps its sign: what is infinitely far has no weight.
        b = xp.where((relative == 0), g.sign * xp.finfo(b.dtype).smallest_normal, b)
    return b if g.infinite is None else xp.where(g.infinite, g.sign * xp.inf, b)


def _in_callers_numbers(xp: Namespace, g: Gaps, omega: Array, relative: Array, x: Array) -> Array:
    """A relative temperature, or a derivative of it, times omega; 0 where omega is infinite."""
    finite = omega if g.infinite is None else xp.where(g.infinite, 0.0, omega)
    untied = x / parts_of_omega(xp, g) * finite
    if g.ordinary or truth(xp.any(relative < 0)) is False:
        return untied
    length = far_actions(xp, g).length
    return xp.where(relative < 0, x * (-g.sign / length) * (1 / g.scale), untied)


def _grad_q(xp: Namespace, q: Array, omega: Array, counted: Array | None, relative: Array) -> Array:
    g = gaps(xp, q, omega, counted)
    return _in_callers_numbers(xp, g, omega, relative, grad_q(xp, q, omega, counted, relative))


def _d_omega(
    xp: Namespace, q: Array, omega: Array, counted: Array | None, relative: Array
) -> Array:
    g = gaps(xp, q, omega, counted)
    moves = d_omega(xp, q, omega, counted, relative)
    still = (relative < 0) | at_a_limit(xp, g, relative)
    ratio = xp.where(still, 0.0, relative / parts_of_omega(xp, g))
    return _in_callers_numbers(xp, g, omega, relative, moves) + ratio


relative_temperature = RowFunction(
    search,
    (
        RowFunction(grad_q, has_extremes=True),
        RowFunction(d_omega, has_extremes=True),
        RowFunction(grad_prior, has_extremes=True),
    ),
    has_extremes=True,
    without_waiting=search_in_fixed_steps,
)
temperature = RowFunction(_temperature, given=relative_temperature)
temperature_grad_q = RowFunction(_grad_q, given=relative_temperature)
temperature_d_omega = RowFunction(_d_omega, given=relative_temperature)
define_search(search)
