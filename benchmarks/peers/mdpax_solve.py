"""One model solved by mdpax: `MODEL`, a line of JSON for each of its methods.

A branch is its random event. It compiles for each solver that is made, so that each is made once,
and starts again from its first values. Its relative value iteration is for a discount of 1 alone.
"""

import copy

import jax
import jax.numpy as jnp
import model
import numpy as np
from mdpax.core.problem import Problem
from mdpax.solvers.policy_iteration import PolicyIteration
from mdpax.solvers.value_iteration import ValueIteration

jax.config.update("jax_enable_x64", True)
quantities = successors, probabilities, rewards, discount = model.arrays()
if successors is None:
    n_states = len(rewards)
    successors = np.broadcast_to(np.arange(n_states, dtype=np.int32), probabilities.shape)
leads, chances, earned = map(jnp.asarray, (successors, probabilities, rewards))


class Table(Problem):
    """A table of transitions."""

    name = "table"

    def state_to_index(self, state):
        """The state itself is its number."""
        return state[0]

    def _construct_state_space(self):
        return jnp.arange(len(leads), dtype=jnp.int32)

    def _construct_action_space(self):
        return jnp.arange(leads.shape[1], dtype=jnp.int32)

    def _construct_random_event_space(self):
        return jnp.arange(leads.shape[2], dtype=jnp.int32)

    def random_event_probability(self, state, action, random_event):
        """That of the branch."""
        return chances[state[0], action[0], random_event[0]]

    def transition(self, state, action, random_event):
        """Where the branch leads, and the expected reward."""
        after = leads[state[0], action[0], random_event[0]]
        return after[None], earned[state[0], action[0]]


def method(kind, **options):
    """A function that solves from the beginning."""
    options |= {"verbose": 0, "epsilon": model.TOLERANCE, "max_batch_size": 2**14}
    solver = kind(Table(), gamma=discount, **options)
    start = copy.copy(solver.__dict__)

    def run():
        solver.__dict__.update(start)
        return np.asarray(solver.solve(max_iterations=10**6).values).ravel()

    return run


model.report(
    {
        "value iteration": method(ValueIteration, convergence_test="span"),
        "policy iteration": method(PolicyIteration, convergence_test="span"),
    },
    quantities,
)
