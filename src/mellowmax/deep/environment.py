"""What an environment is to training and evaluation: its sizes, limit, discount and name.

There are three kinds: pure JAX functions, Gymnasium environments that are made one by one, and
vector environments of someone else. `play` has the ways of playing episodes in each. An object
that plays its own episodes, `Rollouts`, is an environment too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.discount import discount_of
from .._common.evaluation import MAX_STEPS
from .._common.extras import needed_by
from .._common.shown import shown
from .._typing import PyTree
from .episodes import Round
from .network import Policy
from .observation import Seen, as_kept, count, kept, unmasked, vector

if TYPE_CHECKING:
    import gymnasium
    from typing_extensions import TypeVar

    from ..environments.fleet.fleet import Fleet
    from ..environments.fleet.vector_adapter import VectorAdapter

    StateT = TypeVar("StateT", default=Any)
    ParamsT = TypeVar("ParamsT", contravariant=True, default=Any)
else:  # `default` is of Python 3.13
    from typing import TypeVar

    StateT = TypeVar("StateT")
    ParamsT = TypeVar("ParamsT", contravariant=True)

__all__ = [
    "EnvironmentFunctions",
    "FunctionalEnvironment",
    "GymnasiumEnvironment",
    "PlayableEnvironment",
    "Rollouts",
    "VectorEnvironment",
    "name_of",
    "observation_of",
    "observe",
    "shapes_in",
]

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


class GymnasiumEnvironment:
    """A Gymnasium environment with discrete actions.

    Args:
        environment: an id, or a function without arguments that makes an environment. Observations
            stay as they are, and states that are numbers become one-hot.
        workers: how many processes to spread the environments over; 0 for none but this one.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
        action_mask: keep to the actions that the environment allows in `info["action_mask"]`, of
            `reset` and of `step`?

    Raises:
        ValueError: for an unknown environment, or one whose actions are not discrete.
        RuntimeError: for one that fails, or has no such mask.

    Examples:
        >>> environment = GymnasiumEnvironment("CartPole-v1")
        >>> environment.n_observations, environment.n_actions, environment.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        environment: str | Callable[[], gymnasium.Env[Any, Any]],
        *,
        workers: int = 0,
        max_steps: int | None = None,
        action_mask: bool = False,
    ) -> None:
        with needed_by(name_of(environment), "gymnasium"):
            from ..environments.fleet.flatten import make_discrete

        self.environment = environment
        self.workers = checks.whole("workers", workers, 0)
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        with contextlib.closing(make_discrete(environment)) as env:
            self.n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
            legal = self.n_actions if action_mask else None
            self.observation = shapes_in(env.observation_space, legal)
            self.n_observations = count(unmasked(self.observation))
            self.discount = discount_of(env)
            own = None if env.spec is None else env.spec.max_episode_steps
        self._make = functools.partial(make_discrete, environment, action_mask)
        if action_mask:  # is there one?
            with contextlib.closing(self._make()) as env:
                env.reset(seed=0)
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    @property
    def name(self) -> str:
        """The id, or the name of the function that makes the environment."""
        return name_of(self.environment)

    def fleet(self, count: int) -> Fleet:
        """`count` of the environments, side by side."""
        from ..environments.fleet.fleet import Fleet

        return Fleet(self._make, count, workers=self.workers)


class VectorEnvironment:
    """A vector environment: Gymnasium's, envpool's or your own.

    Episodes are played in it as in a `GymnasiumEnvironment`, with the vector environment in place
    of a `Fleet`. envpool takes no seed for an episode: training in it is not repeatable.

    Args:
        make: a function of a count, which makes a vector environment of that many environments. Its
            observations are arrays, and its actions are discrete and count from 0. It is one of
            envpool's, or leaves resets to the caller: its `autoreset_mode` is `DISABLED`.
        max_steps: where an episode is cut off; None for the environment's own limit, or 1000.
        action_mask: as for `GymnasiumEnvironment`.

    Raises:
        ValueError: for an environment that is not as above.
        RuntimeError: for one that fails, or has no mask where one is wanted.

    Examples:
        >>> import gymnasium
        >>> def make(count):
        ...     options = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
        ...     return gymnasium.make_vec("CartPole-v1", count, "sync", vector_kwargs=options)
        >>> environment = VectorEnvironment(make)
        >>> environment.n_observations, environment.n_actions, environment.max_steps
        (4, 2, 500)
    """

    def __init__(
        self,
        make: Callable[[int], gymnasium.vector.VectorEnv[Any, Any, Any]],
        *,
        max_steps: int | None = None,
        action_mask: bool = False,
    ) -> None:
        with needed_by(name_of(make), "gymnasium"):
            from ..environments.fleet.vector_adapter import VectorAdapter

        checks.function("make", make, "a function that makes a vector environment")
        self.make = make
        if max_steps is not None:
            max_steps = checks.whole("max_steps", max_steps, 1)
        self._adapter = functools.partial(VectorAdapter, masked=action_mask)
        with contextlib.closing(self.fleet(1)) as env:
            self.n_actions = env.n_actions
            legal = self.n_actions if action_mask else None
            self.observation = shapes_in(env.single_observation_space, legal)
            if action_mask:  # is there one?
                env.reset(seed=np.zeros(1, np.int32))
            self.n_observations = count(unmasked(self.observation))
            self.discount = discount_of(env)
            own = env.max_episode_steps
        self.max_steps = own or MAX_STEPS if max_steps is None else max_steps

    @property
    def name(self) -> str:
        """The name of the function that makes the environment."""
        return name_of(self.make)

    def fleet(self, count: int) -> VectorAdapter:
        """A vector environment of `count` environments."""
        return self._adapter(self.make(count))


@runtime_checkable
class Rollouts(Protocol):
    """An environment that plays its own episodes, for learners of whole episodes.

    Batches of episodes are played for many lanes side by side, each with a policy of its own, and
    yielded when they are complete. An object of this kind never learns: it calls `policies` for the
    present policies whenever a batch begins, and whoever takes the batches learns in between.

        for lanes, episodes, *_ in rollouts.play(policies, keys, done, until, batch):
            ...

    An episode depends on the policy, the key of its batch and its number in the batch alone.
    Nothing is left over from one batch to the next, so a run can be stopped after any batch and
    resumed later. The object does not change, so it serves many threads at once.
    """

    @property
    def n_observations(self) -> int:
        """The size of an observation."""

    @property
    def n_actions(self) -> int:
        """The number of actions."""

    @property
    def max_steps(self) -> int:
        """The step limit of an episode."""

    @property
    def discount(self) -> float:
        """The environment's own discount, or 0.99 if it has none."""

    @property
    def name(self) -> str:
        """Tells the environment from others: a checkpoint is resumed if it is the same."""

    def play(
        self,
        policies: Callable[[], Policy],
        keys: jax.Array,
        done: Sequence[int],
        until: int,
        batch: int,
    ) -> Generator[Round]:
        """Play batches of episodes, as many as each run still needs.

        Args:
            policies: gives the present policies of all lanes, a `Policy` whose arrays have an axis
                of lanes first. It is called whenever a batch begins, after everything that was
                yielded before has been dealt with.
            keys: the key of each lane's run. The key of a batch is
                `jax.random.fold_in(key, number of the batch)`.
            done: how many batches each run has played before; one number for each lane that has a
                run.
            until: how many batches each run will have played at the end.
            batch: how many episodes a batch has.

        Yields:
            The complete batches of one or more lanes: `Round(lanes, episodes)`. Resources are
            released at the end, or when the generator is closed.
        """


PlayableEnvironment: TypeAlias = (
    FunctionalEnvironment | GymnasiumEnvironment | VectorEnvironment | Rollouts
)
"""Every kind of environment that there is a player for."""


def observation_of(environment: PlayableEnvironment) -> PyTree:
    """The shapes and dtypes of an observation; of `Rollouts` that do not say, those of a vector."""
    return getattr(environment, "observation", vector(environment.n_observations))


def shapes_in(space: gymnasium.Space[Any], legal: int | None) -> PyTree:
    """The shapes of what is seen, as it is kept.

    Args:
        space: the space of the observations: boxes, or dicts and tuples of such.
        legal: of how many actions some may be illegal; None if all are always legal.
    """
    from gymnasium import spaces

    def shapes(space: gymnasium.Space[Any]) -> PyTree:
        if isinstance(space, spaces.Dict):
            return {name: shapes(part) for name, part in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(map(shapes, space.spaces))
        assert isinstance(space, spaces.Box | spaces.MultiBinary)
        return jax.ShapeDtypeStruct(space.shape, kept(space.dtype))

    if legal is None:
        return shapes(space)
    return Seen(shapes(space), jax.ShapeDtypeStruct((legal,), np.dtype(np.bool_)))


def name_of(environment: object) -> str:
    """The name by which a checkpoint tells an environment from others.

    The name of an id is the id. A function, a class or a module has its full name. Any other object
    has the full name of its type, followed by a digest of its numbers if it has any. A partial
    function has its arguments in its name.

    Examples:
        >>> import numpy as np
        >>> name_of("CartPole-v1"), name_of(np), name_of(np.load)
        ('CartPole-v1', 'numpy', 'numpy.load')
        >>> name_of(functools.partial(np.load, "x", mmap_mode=None))
        "numpy.load('x', mmap_mode=None)"
    """
    if isinstance(environment, functools.partial):
        given = [*map(_name_of_argument, environment.args)]
        given += [f"{name}={_name_of_argument(x)}" for name, x in environment.keywords.items()]
        return f"{name_of(environment.func)}({', '.join(given)})"
    if isinstance(environment, str):
        return environment
    if inspect.ismodule(environment):
        return environment.__name__
    kind = environment if callable(environment) else type(environment)
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    kinds = (np.ndarray, np.generic, jax.Array, int, float)
    numbers = [x for x in jax.tree.leaves(environment) if isinstance(x, kinds)]
    digest = hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in numbers))
    return f"{name} {digest.hexdigest()[:16]}" if numbers else name


def _name_of_argument(value: object) -> str:
    """The name of an argument: what one would type, if that says it all."""
    plain = value is None or isinstance(value, str | int | float)
    return repr(value) if plain else name_of(value)
