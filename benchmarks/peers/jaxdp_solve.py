"""One dense model solved with jaxdp in a compiled loop: `MODEL`, a line of JSON for each method.

jaxdp has steps; the loop and the stopping rule are the caller's. Its checks are turned off, since
they cannot be compiled.
"""

import sys

import chex
import jax
import jax.numpy as jnp
import model

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)
chex.disable_asserts()

from jaxdp.mdp import MDP
from jaxdp.operator import BellmanOptOp
from jaxdp.planning import PolicyIteration

quantities = successors, probabilities, rewards, discount = model.arrays()
if successors is not None:
    sys.exit("dense models only")
n_states = len(rewards)
mdp = MDP(
    transition=jnp.asarray(probabilities.transpose(1, 2, 0)),
    reward=jnp.broadcast_to(
        jnp.asarray(rewards.T)[:, :, None], (rewards.shape[1], n_states, n_states)
    ),
    initial=jnp.full(n_states, 1 / n_states),
    terminal=jnp.zeros(n_states),
)
operator, tolerance = BellmanOptOp(), model.TOLERANCE


@jax.jit
def value_iteration(mdp):
    """Sweeps until the change is within the tolerance."""

    def sweep(carry):
        v, _ = carry
        new = operator.v(mdp, v, discount)
        return new, jnp.ptp(new - v) / 2

    start = (jnp.zeros(n_states), jnp.inf)
    return jax.lax.while_loop(lambda carry: carry[1] > tolerance, sweep, start)


@jax.jit
def policy_iteration(mdp):
    """Exact policy iteration until a sweep changes the values by no more than the tolerance."""
    method = PolicyIteration(gamma=discount)

    def update(carry):
        state, _ = carry
        state = method.update(mdp, state)
        return state, jnp.max(jnp.abs(operator.v(mdp, state.v_val, discount) - state.v_val))

    uniform = jnp.full(rewards.T.shape, 1 / rewards.shape[1])
    start = (method.init(mdp, uniform), jnp.inf)
    return jax.lax.while_loop(lambda carry: carry[1] > tolerance, update, start)


model.report(
    {
        "value iteration": lambda: jax.block_until_ready(value_iteration(mdp))[0],
        "policy iteration": lambda: jax.block_until_ready(policy_iteration(mdp))[0].v_val,
    },
    quantities,
)
