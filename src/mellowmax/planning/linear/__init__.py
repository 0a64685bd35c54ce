"""The linear systems of Newton's method in main memory: `(I - J) d = F`, and their transposes.

A sweep of state values `v -> f(r + discount * P v)` has the derivative `J = discount * W P`, where
`W` is the gradient of the softmax's operator: weights of the actions of each state. With a policy
as the weights, `(I - J) v = r` is the equation of the policy's values. `form_of` says which way of
solving suits the MDP:

- A few states: a dense matrix and its LU factorisation.
- A state leads to states near to it in number, as in inventories, queues and ageing: a banded
  matrix and its LU factorisation by LAPACK, which is exact too and takes time in proportion to the
  number of states.

For what is neither there is no form here: `methods.newton` solves roughly, without a matrix.
"""

from .forms import Form, form_of

__all__ = ["Form", "form_of"]
