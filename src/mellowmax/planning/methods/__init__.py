"""The methods of `solve`, one a module, and `auto`, which chooses among them."""

from ..loop import Method
from .auto import Choice, choose
from .in_place import InPlace
from .newton import Newton
from .shifted import Shifted
from .synchronous import Synchronous

__all__ = ["METHODS", "Choice", "choose"]

METHODS: dict[str, Method] = {
    method.name: method for method in (InPlace(), Synchronous(), Shifted(), Newton())
}
"""The methods by name, but for `auto`."""
