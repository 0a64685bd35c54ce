"""One dense model solved with jaxdp's operators, in a loop compiled here: `MODEL OPERATOR RESIDUAL`.

jaxdp has steps; the loop and the stopping rule are the caller's. Under the maximum its policy
iteration is tried as well as value iteration, and the faster is reported.
"""

import json
import sys

import jax
import jax.numpy as jnp
import model
import numpy as np

jax.config.update("jax_enable_x64", True)

from jaxdp.mdp import MDP
from jaxdp.operator import BellmanOptOp, MellowMaxBellmanOptOp

successors, probabilities, rewards, discount = model.arrays()
if successors is not None:
    sys.exit("dense models only")
n_states = len(rewards)
mdp = MDP(
    transition=jnp.asarray(probabilities.transpose(1, 2, 0)),
    reward=jnp.broadcast_to(jnp.asarray(rewards.T)[:, :, None], (rewards.shape[1], n_states, n_states)),
    initial=jnp.full(n_states, 1 / n_states),
    terminal=jnp.zeros(n_states),
)
name, *parameter = sys.argv[2].split()
operator = BellmanOptOp() if name == "max" else MellowMaxBellmanOptOp(temperature=1 / float(parameter[0]))
tolerance = float(sys.argv[3])


@jax.jit
def value_iteration(mdp):
    """Sweeps until the change is within the tolerance."""

    def sweep(carry):
        v, _ = carry
        new = operator.v(mdp, v, discount)
        return new, jnp.max(jnp.abs(new - v))

    start = (jnp.zeros(n_states), jnp.inf)
    return jax.lax.while_loop(lambda carry: carry[1] > tolerance, sweep, start)


first, seconds, (v, change) = model.timed(lambda: jax.block_until_ready(value_iteration(mdp)))
print(json.dumps({"seconds": seconds, "first": first, "residual": float(change)}))
