"""The linear systems of Newton's method in main memory: `(I - J) d = F`, and their transposes.

A sweep of state values `v -> f(r + discount * P v)` has the derivative `J = discount * W P`, where
`W` is the gradient of the softmax's operator: weights of the actions of each state. With a policy
as the weights, `(I - J) v = r` is the equation of the policy's values. `rule` says which form of
the matrix suits an MDP:

- `dense`, for a few states: an LU factorisation.
- `banded`, where a state leads to states with numbers near its own, as in inventories, queues and
  ageing: an LU factorisation by LAPACK, which is exact too, and takes time in proportion to the
  number of states.
- `gauss_seidel`, for any sparse model: BiCGSTAB with Gauss-Seidel sweeps.

The form of an MDP is `direct_form(mdp)`, or `swept_form(mdp)` where that is None. Its
`factors(weights)` solve `(I - J) x = b`, and with `transposed=True` the transposed system.

A dense model of many states has no form here: a factorisation would take as many times longer than
a product with the matrix as there are states.
"""

from .form import Form
from .gauss_seidel import SlowError
from .rule import direct_form, is_numbered, swept_form

__all__ = ["Form", "SlowError", "direct_form", "is_numbered", "swept_form"]
