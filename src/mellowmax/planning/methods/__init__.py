"""The methods of `solve`, one a module, and `auto`, which chooses among them."""

from .auto import METHODS, Choice, Task, as_asked, choose, newton_of

__all__ = ["METHODS", "Choice", "Task", "as_asked", "choose", "newton_of"]
