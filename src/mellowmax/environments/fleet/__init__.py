"""Many Gymnasium environments side by side, in processes of their own.

Nothing here imports JAX, and nothing that it imports does. Every process of a fleet imports this
package: without JAX it starts ten times faster and takes a tenth of the memory.
"""

from ..._common.extras import needed_by

with needed_by("mellowmax.environments.fleet", "gymnasium"):
    from .flatten import make_discrete, make_flat
    from .fleet import Fleet

__all__ = ["Fleet", "make_discrete", "make_flat"]
