"""A demonstrator: a softmax that plans, and a softmax that acts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from .._common import checks
from .._common.pytrees import pytree
from ..softmax import Softmax

if TYPE_CHECKING:
    import jax

__all__ = ["Demonstrator", "AnyDemonstrator", "both"]


@pytree
@dataclasses.dataclass(frozen=True)
class Demonstrator:
    """The softmax whose values a demonstrator has, and the softmax whose policy it acts by.

    | paper | plans | acts |
    | --- | --- | --- |
    | Ramachandran and Amir (2007), Neu and Szepesvari (2007) | `Max` | `Boltzmann` |
    | Babes and others (2011) | `Boltzmann` | `Boltzmann` |
    | Rust (1987), Ziebart (2010) | `LogSumExp` | `LogSumExp`, whose policy is Boltzmann's |
    | the last sentence of Asadi and Littman (2017) | `Mellowmax` | `Mellowmax` |

    Examples:
        >>> from mellowmax import Boltzmann, Max
        >>> Demonstrator(plans=Max(), acts=Boltzmann(5.0))
        Demonstrator(plans=Max(), acts=Boltzmann(beta=5.0))
    """

    plans: Softmax
    acts: Softmax

    def __post_init__(self) -> None:
        for name in ("plans", "acts"):
            rule = "a Softmax such as Mellowmax(5.0)"
            checks.instance(name, getattr(self, name), Softmax, rule)


AnyDemonstrator: TypeAlias = (
    "Softmax | Demonstrator | Callable[[jax.Array], Softmax | Demonstrator]"
)
"""What `fit` takes: a function makes a demonstrator of the parameters."""


def both(demonstrator: object) -> Demonstrator:
    """A pair as it is; a softmax alone does both."""
    if isinstance(demonstrator, Softmax):
        return Demonstrator(demonstrator, demonstrator)
    rule = "a Softmax, or a Demonstrator of two"
    checks.instance("demonstrator", demonstrator, Demonstrator, rule)
    assert isinstance(demonstrator, Demonstrator)
    return demonstrator
