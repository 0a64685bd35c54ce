"""Environments of pure JAX functions, which compiled programs play in."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import jax
import jax.numpy as jnp

from ..._common import checks
from ..._common.discount import discount_of
from ..._common.evaluation import MAX_STEPS
from ..._common.shown import shown
from ..._typing import PyTree
from ..observation import Seen, as_kept, count, unmasked
from .names import name_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default=Any)
    ParamsT = TypeVar("ParamsT", contravariant=True, default=Any)
else:  # `default` is of Python 3.13
    from typing import TypeVar

    StateT = TypeVar("StateT")
    ParamsT = TypeVar("ParamsT", contravariant=True)

__all__ = ["EnvironmentFunctions", "FunctionalEnvironment", "ParamsT", "StateT", "observe"]

FUNCTIONS = ("reset", "step", "observe")
"""The functions of a functional environment."""


class EnvironmentFunctions(Protocol[StateT, ParamsT]):
    """An environment as pure functions of one instance: a module, or an object.

    States and parameters are pytrees of any kind. `mellowmax.environments.tabular` is an example.
    There may be a `name` beside the functions, by which checkpoints tell the environment from
    others; the default is the name of the module or type.

    Where not every action is legal, there is a function `legal(state, params)` too. It returns a
    boolean for each action, and no other action is taken; or None, always, if all are legal.

    If `reset` itself takes a step, there may be a function `launch(key)` too. `reset` splits its
    key in two, and returns what `step` makes of `launch(first)` with the `second` key, whatever
    the action. Then beginning an episode does not cost a step of its own.
    """

    def reset(self, key: jax.Array, params: ParamsT, /) -> StateT:
        """The state in which an episode begins."""

    def step(
        self, key: jax.Array, state: StateT, action: jax.Array, params: ParamsT, /
    ) -> tuple[StateT, jax.Array, jax.Array]:
        """The next state, the reward, and whether the episode has ended."""

    def observe(self, state: StateT, params: ParamsT, /) -> PyTree:
        """The observation of a state: an array of any shape, or a tree of arrays."""


class FunctionalEnvironment:
    """An environment of pure JAX functions, with its parameters and its step limit.

    Args:
        functions: a module or an object with the functions `reset(key, params)`,
            `step(key, state, action, params)` and `observe(state, params)`, and with
            `legal(state, params)` where not every action is legal. They are compiled, so the object
            must be hashable and must not change.
        params: the parameters of the environment, a pytree with a number `n_actions`, and with a
            `discount` if the environment has one.
        max_steps: where an episode is cut off.

    Raises:
        ValueError: for an argument that does not fit.

    Examples:
        A walk along a line of five places, which ends to the right of it; every step costs 1:

        >>> from typing import NamedTuple
        >>> import jax.numpy as jnp
        >>> from mellowmax import Boltzmann
        >>> from mellowmax.deep import FunctionalEnvironment, evaluate, mlp, reinforce, train
        >>> class Params(NamedTuple):
        ...     reward: float = -1.0
        ...     n_actions: int = 2
        >>> class Line:
        ...     @staticmethod
        ...     def reset(key, params):
        ...         return jax.random.randint(key, (), 0, 5, jnp.int32)
        ...
        ...     @staticmethod
        ...     def step(key, place, action, params):
        ...         place = jnp.maximum(place + 2 * action - 1, 0)
        ...         return place, params.reward, place == 5
        ...
        ...     @staticmethod
        ...     def observe(place, params):
        ...         return jax.nn.one_hot(place, 5)
        >>> line = FunctionalEnvironment(Line, Params(), max_steps=64)
        >>> learner = reinforce(Boltzmann(1.0), 0.1, network=mlp(depth=0), baseline="leave-one-out")
        >>> result = train(learner, line, episodes=200)
        >>> policy = jax.tree.map(lambda x: x[0], result.policies)
        >>> evaluate(policy, line).mean > -4  # of the best policy it is -3
        True
    """

    def __init__(
        self,
        functions: EnvironmentFunctions[StateT, ParamsT],
        params: ParamsT,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.functions, self.params = functions, params
        self.max_steps = checks.whole("max_steps", max_steps, 1)
        if not all(callable(getattr(functions, name, None)) for name in FUNCTIONS):
            rule = f"`functions` must have the functions {', '.join(FUNCTIONS)}"
            raise TypeError(f"{rule}, got {shown(functions)}")
        checks.instance("functions", functions, Hashable, "hashable")
        if not hasattr(params, "n_actions"):
            raise TypeError(f"`params` must have a number `n_actions`, got {shown(params)}")
        self.n_actions = checks.whole("params.n_actions", params.n_actions, 1)
        self.discount = discount_of(params)
        self.observation = _seen_in(functions, params, self.n_actions)
        self.n_observations = count(unmasked(self.observation))

    @property
    def name(self) -> str:
        """The names of the functions and of the parameters, with a digest of their numbers."""
        own = getattr(self.functions, "name", None)
        return f"{own or name_of(self.functions)} {name_of(self.params)}"


def observe(
    functions: EnvironmentFunctions[StateT, ParamsT], state: StateT, params: ParamsT
) -> PyTree:
    """What is seen in a state: the observation, with the legal actions if there are such."""
    observation = as_kept(functions.observe(state, params))
    legal = functions.legal(state, params) if hasattr(functions, "legal") else None
    return observation if legal is None else Seen(observation, legal)


def _seen_in(
    functions: EnvironmentFunctions[StateT, ParamsT], params: ParamsT, n_actions: int
) -> PyTree:
    """The shapes of what is seen, if the functions return what they should.

    Raises:
        ValueError: for functions that do not. Nothing is compiled.
    """
    key = jax.random.key(0)
    state, observation, step = jax.eval_shape(functools.partial(_step, functions), params, key)
    kinds = ("real floating", "integral", "bool")
    leaves = jax.tree.leaves(observation)
    for leaf in leaves:
        if not jnp.isdtype(leaf.dtype, kinds):
            _refuse("observations that are arrays of numbers", leaf)
    if not leaves:
        raise ValueError("`environment` must return observations that are arrays, got none")
    if not (isinstance(step, tuple) and len(step) == 3):
        rule = "`environment` must return a state, a reward and `terminated` from `step`"
        raise ValueError(f"{rule}, got {type(step).__name__}")
    next_state, reward, terminated = step
    if reward.shape or not jnp.isdtype(reward.dtype, ("real floating", "integral")):
        _refuse("a number as the reward", reward)
    if terminated.shape or terminated.dtype != jnp.bool_:
        _refuse("one boolean as `terminated`", terminated)
    forms = [jax.tree.map(lambda x: (x.shape, x.dtype), x) for x in (state, next_state)]
    trees: list[Any] = [jax.tree.structure(x) for x in (state, next_state)]
    arrays = [[(x.shape, x.dtype) for x in jax.tree.leaves(x)] for x in (state, next_state)]
    if trees[0] != trees[1] or arrays[0] != arrays[1]:  # states may have an `==` of their own
        rule = "`environment` must return states of one form from `reset` and from `step`"
        raise ValueError(f"{rule}, got {forms[0]} and {forms[1]}")
    seen = jax.eval_shape(functools.partial(observe, functions), state, params)
    if isinstance(seen, Seen):
        legal = seen.legal
        if getattr(legal, "shape", None) != (n_actions,) or legal.dtype != jnp.bool_:
            rule = f"{n_actions} booleans from `legal`, one for each action"
            _refuse(rule, legal)
    return seen


@functools.partial(jax.jit, static_argnums=0)
def _step(
    functions: EnvironmentFunctions[StateT, ParamsT], params: ParamsT, key: jax.Array
) -> tuple[StateT, PyTree, tuple[StateT, jax.Array, jax.Array]]:
    """The state in which an episode begins, its observation, and a step from there."""
    state = functions.reset(key, params)
    observation = functions.observe(state, params)
    return state, observation, functions.step(key, state, jnp.int32(0), params)


def _refuse(rule: str, got: object) -> NoReturn:
    given = type(got).__name__
    if isinstance(got, jax.ShapeDtypeStruct):
        given = f"{got.dtype} with the shape {got.shape}"
    raise ValueError(f"`environment` must return {rule}, got {given}")
