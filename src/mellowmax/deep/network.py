"""A policy network: a few layers, and a softmax as the last one.

The outputs of the layers are treated as action values, and the softmax's own policy turns them into
probabilities (section 7.3). With mellowmax the gradient flows through the inverse temperature that
is solved for in each state; `HeldTemperature` leaves that part out.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp

from .._common import checks
from .._common.shown import shown
from .._rows.arguments import check_key
from .._typing import ArrayT, Mask, Namespace, Numbers, Parameter
from ..policies import boltzmann_log_policy, boltzmann_policy, choose, mellowmax_temperature
from ..softmax import Mellowmax, Softmax
from . import keys

__all__ = ["HeldTemperature", "Network", "Policy"]


class Network(eqx.Module):
    """Layers with rectified linear units between them."""

    layers: tuple[eqx.nn.Linear, ...]

    def __check_init__(self) -> None:
        rule = "one or more `equinox.nn.Linear`"
        if not checks.instances("layers", self.layers, eqx.nn.Linear, rule):
            raise ValueError(f"`layers` must be {rule}, got none")

    @classmethod
    def init(cls, key: jax.Array, sizes: tuple[int, ...]) -> Network:
        """A network with Glorot's uniform weights and zero biases.

        Args:
            key: a JAX key.
            sizes: the sizes of the input, of each hidden layer, and of the output.

        Examples:
            >>> network = Network.init(jax.random.key(0), (8, 16, 4))
            >>> network(jnp.zeros(8, jnp.float32)).shape
            (4,)
        """
        check_key(cast(Namespace, jnp), key)
        sizes = _sizes(sizes)
        glorot = jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)
        layers = []
        of_layers = keys.layers(key, len(sizes) - 1)
        for k, n_in, n_out in zip(of_layers, sizes[:-1], sizes[1:], strict=True):
            layer = eqx.nn.Linear(n_in, n_out, key=k, dtype=jnp.float32)
            first = (glorot(k, (n_out, n_in), jnp.float32), jnp.zeros(n_out, jnp.float32))
            layers.append(eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, first))
        return cls(tuple(layers))

    def __call__(self, observation: jax.Array) -> jax.Array:
        """The outputs for one observation, `[D]`."""
        x = observation
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


class Policy(eqx.Module):
    """A network whose outputs are the action values of a softmax.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> network = Network.init(jax.random.key(0), (8, 16, 4))
        >>> policy = Policy(network, Mellowmax(8.0))
        >>> print(policy.probabilities(jnp.zeros(8, jnp.float32)))
        [0.25 0.25 0.25 0.25]
    """

    network: Network
    softmax: Softmax

    def __check_init__(self) -> None:
        checks.instance("network", self.network, Network, "a Network, such as Network.init makes")
        checks.instance("softmax", self.softmax, Softmax, "a Softmax such as Mellowmax(8.0)")

    def probabilities(self, observation: jax.Array) -> jax.Array:
        """The probabilities of the actions, `[A]`."""
        return self.softmax.policy(self.network(observation))

    def log_probabilities(self, observation: jax.Array) -> jax.Array:
        """The logarithms of the probabilities, `[A]`."""
        return self.softmax.log_policy(self.network(observation))

    def act(self, uniform: jax.Array, observation: jax.Array) -> jax.Array:
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
