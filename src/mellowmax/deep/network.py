"""A policy network: a few layers, and a softmax as the last one.

The outputs of the layers are treated as action values, and the softmax's own policy turns them into
probabilities (section 7.3). With mellowmax the gradient flows through the inverse temperature that
is solved for in each state; `HeldTemperature` leaves that part out.

`mlp` makes the networks of every learner that is given no other; `trainable` says what else a
`network=` can be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp

from .._common import checks
from .._common.shown import shown
from .._rows.arguments import check_key
from .._typing import ArrayT, Mask, Namespace, Numbers, Parameter, PyTree
from ..policies import boltzmann_log_policy, boltzmann_policy, choose, mellowmax_temperature
from ..softmax import Mellowmax, Softmax
from . import keys
from .observation import as_vector, count, parted

__all__ = ["HeldTemperature", "Mlp", "Network", "Policy", "mlp"]

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}
WEIGHTS = ("glorot", "orthogonal")


def _activation(name: str) -> str:
    return checks.one_of("activation", name, ACTIVATIONS)


class Network(eqx.Module):
    """Layers with an activation function between them: rectified linear units, or tanh.

    An observation that is no vector is raveled, and the parts of a nested one are joined.

    The last layer of a duelling network has one output more, the value of the state. The others are
    advantages of the actions, of which only the differences from their mean count.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: str = eqx.field(static=True, default="relu", converter=_activation)
    duelling: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        rule = "one or more `equinox.nn.Linear`"
        if not checks.instances("layers", self.layers, eqx.nn.Linear, rule):
            raise ValueError(f"`layers` must be {rule}, got none")

    @classmethod
    def init(
        cls,
        key: jax.Array,
        sizes: tuple[int, ...],
        activation: str = "relu",
        weights: str = "glorot",
        duelling: bool = False,
    ) -> Network:
        """A network as it is before it has learned; all biases are 0.

        Args:
            key: a JAX key.
            sizes: the sizes of the input, of each hidden layer, and of the output.
            activation: as for `mlp`.
            weights: as for `mlp`.
            duelling: as for `mlp`.

        Examples:
            >>> network = Network.init(jax.random.key(0), (8, 16, 4))
            >>> network(jnp.zeros(8, jnp.float32)).shape
            (4,)
        """
        check_key(cast(Namespace, jnp), key)
        *sizes_before, n_outputs = _sizes(sizes)
        sizes = (*sizes_before, n_outputs + bool(duelling))
        _activation(activation)
        checks.one_of("weights", weights, WEIGHTS)
        draw = jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)
        layers = []
        of_layers = keys.layers(key, len(sizes) - 1)
        for i, (k, n_in, n_out) in enumerate(zip(of_layers, sizes[:-1], sizes[1:], strict=True)):
            layer = eqx.nn.Linear(n_in, n_out, key=k, dtype=jnp.float32)
            if weights == "orthogonal":
                draw = jax.nn.initializers.orthogonal(_gain(n_out, is_last=i == len(sizes) - 2))
            first = (draw(k, (n_out, n_in), jnp.float32), jnp.zeros(n_out, jnp.float32))
            layers.append(eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, first))
        return cls(tuple(layers), activation, bool(duelling))

    @property
    def n_outputs(self) -> int:
        """How many outputs it has."""
        return int(self.layers[-1].weight.shape[-2]) - self.duelling

    def __call__(self, observation: PyTree) -> jax.Array:
        """The outputs for one observation: an array, such as a vector `[D]`, or a tree of them."""
        x, activate = as_vector(observation), ACTIVATIONS[self.activation]
        for layer in self.layers[:-1]:
            x = activate(layer(x))
        outputs = self.layers[-1](x)
        if not self.duelling:
            return outputs
        value, advantages = outputs[0], outputs[1:]
        return value + (advantages - advantages.mean())


@dataclasses.dataclass(frozen=True)
class Mlp:
    """What `mlp` makes: a function that draws a `Network` for an observation."""

    hidden: int
    depth: int
    activation: str = "relu"
    weights: str = "glorot"
    duelling: bool = False

    def __call__(self, key: jax.Array, observation: PyTree, n_actions: int) -> Network:
        """A network for such observations, as it is before it has learned.

        Args:
            key: a JAX key.
            observation: its shapes and dtypes: a tree of `jax.ShapeDtypeStruct`.
            n_actions: how many outputs it has.
        """
        sizes = (count(observation), *[self.hidden] * self.depth, n_actions)
        return Network.init(key, sizes, self.activation, self.weights, self.duelling)


def mlp(
    hidden: int = 16,
    depth: int = 1,
    activation: str = "relu",
    weights: str = "glorot",
    duelling: bool = False,
) -> Mlp:
    """Layers of equal size, for the `network` of a learner.

    Args:
        hidden: units of a hidden layer.
        depth: the number of hidden layers.
        activation: `"relu"` or `"tanh"`, between the layers.
        weights: how the first weights are drawn: `"glorot"`, uniformly; or `"orthogonal"`, as is
            usual for PPO: times the root of 2 in hidden layers and 0.01 in the last, but 1 in the
            last layer of a network with one output.
        duelling: make the outputs of the value of a state and of the actions' advantages, for
            `dqn`: of Wang et al., "Dueling network architectures for deep reinforcement learning"
            (ICML 2016), but with all hidden layers shared.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> from mellowmax.deep import dqn, mlp
        >>> dqn(Mellowmax(5.0), network=mlp(64, 2, "tanh")).network
        Mlp(hidden=64, depth=2, activation='tanh', weights='glorot', duelling=False)
    """
    _activation(activation)
    checks.one_of("weights", weights, WEIGHTS)
    hidden, depth = checks.whole("hidden", hidden, 1), checks.whole("depth", depth, 0)
    return Mlp(hidden, depth, activation, weights, bool(duelling))


def _gain(n_outputs: int, *, is_last: bool) -> float:
    """The size of the first weights of a layer in PPO."""
    if not is_last:
        return 2**0.5
    return 0.01 if n_outputs > 1 else 1.0


class Policy(eqx.Module):
    """A network whose outputs are the action values of a softmax.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> network = Network.init(jax.random.key(0), (8, 16, 4))
        >>> policy = Policy(network, Mellowmax(8.0))
        >>> print(policy.probabilities(jnp.zeros(8, jnp.float32)))
        [0.25 0.25 0.25 0.25]
    """

    network: Callable[[PyTree], jax.Array]
    """A `Network`, or another Equinox module from an observation to action values, `[A]`."""
    softmax: Softmax

    def __check_init__(self) -> None:
        checks.instance(
            "network", self.network, eqx.Module, "an Equinox module, such as Network.init makes"
        )
        checks.function("network", self.network, "a module that can be called")
        checks.instance("softmax", self.softmax, Softmax, "a Softmax such as Mellowmax(8.0)")

    def probabilities(self, observation: PyTree) -> jax.Array:
        """The probabilities of the actions, `[A]`; those of a `Seen` are of its legal actions."""
        observation, legal = parted(observation)
        return self.softmax.policy(self.network(observation), where=legal)

    def log_probabilities(self, observation: PyTree) -> jax.Array:
        """The logarithms of the probabilities, `[A]`."""
        observation, legal = parted(observation)
        return self.softmax.log_policy(self.network(observation), where=legal)

    def act(self, uniform: jax.Array, observation: PyTree) -> jax.Array:
        """The action that a uniform random number in [0, 1) chooses."""
        return choose(self.probabilities(observation), uniform).astype(jnp.int32)


def _sizes(sizes: object) -> tuple[int, ...]:
    """The sizes of an input, of hidden layers and of an output, checked."""
    given = checks.integers("sizes", sizes)
    if given.ndim != 1 or len(given) < 2:
        raise ValueError(f"`sizes` must be two or more whole numbers, got {shown(sizes)}")
    return tuple(checks.whole("sizes", size, 1) for size in given)


@dataclasses.dataclass(frozen=True)
class HeldTemperature(Softmax):
    """Mellowmax, with the inverse temperature of its policy held fixed when it is differentiated.

    The policy is the same; its gradient is that of a Boltzmann policy with this state's
    inverse temperature, which is not the gradient of the policy.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> q = jnp.array([0.0, 1.0, 3.0])
        >>> def slope(softmax):
        ...     return jax.grad(lambda q: softmax.log_policy(q)[0])(q).tolist()
        >>> [f"{x:.3f}" for x in slope(Mellowmax(2.0))]
        ['0.555', '-0.226', '-0.329']
        >>> [f"{x:.3f}" for x in slope(HeldTemperature(2.0))]
        ['0.727', '-0.125', '-0.601']
    """

    non_expansion: ClassVar[bool] = Mellowmax.non_expansion

    omega: Parameter
    """Mellowmax's parameter: any number, or an array of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "omega", self._mellowmax.omega)

    @property
    def _mellowmax(self) -> Mellowmax:
        return Mellowmax(self.omega)

    def gap(self, n_actions: int) -> float:
        """A bound on how far mellowmax's value is below the maximum."""
        return self._mellowmax.gap(n_actions)

    def value(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax(q, omega)`."""
        return self._mellowmax.value(q, axis=axis, where=where)

    def policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_policy(q, omega)`."""
        return boltzmann_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def log_policy(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_log_policy(q, omega)`."""
        return boltzmann_log_policy(q, self._temperature(q, axis, where), axis=axis, where=where)

    def gradient(self, q: ArrayT | Numbers, *, axis: int = -1, where: Mask = None) -> ArrayT:
        """`mellowmax_gradient(q, omega)`."""
        return self._mellowmax.gradient(q, axis=axis, where=where)

    def _temperature(self, q: ArrayT | Numbers, axis: int, where: Mask) -> ArrayT:
        held = jax.lax.stop_gradient(q)
        return mellowmax_temperature(held, self.omega, axis=axis, where=where)
