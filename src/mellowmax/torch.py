"""Any softmax as a PyTorch module: values, log-probabilities and distributions of actions.

    >>> import torch
    >>> from mellowmax import Mellowmax
    >>> from mellowmax.torch import SoftmaxLayer
    >>> network = torch.nn.Sequential(torch.nn.Linear(8, 4), SoftmaxLayer(Mellowmax(5.0)))
    >>> network(torch.zeros(32, 8)).exp().sum(-1).allclose(torch.ones(32))
    True

The functions of `mellowmax` itself take tensors too. A layer adds what a module has: a parameter
that is moved, saved and loaded with the network, and learned if it is asked to.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import policies
from ._common.extras import needed_by
from .softmax import EpsilonGreedy, Softmax

with needed_by("mellowmax.torch", "torch"):
    import torch

__all__ = ["SoftmaxLayer"]


class SoftmaxLayer(torch.nn.Module):  # type: ignore[misc]
    """A softmax as the last layer of a network: action values in, log-probabilities out.

    Action values are `[..., actions]`. Each method takes a mask of the actions that are allowed, of
    their shape or one that broadcasts to it: others get probability 0 and do not count.

    The softmax's parameter is an attribute, such as `layer.omega`. A fixed one is a buffer, and so
    is a prior. A learnable one has to be positive, and stays so: its logarithm is what is learned,
    as the parameter `log_omega`, and `layer.omega` is its present value, with gradients.

    Args:
        softmax: `Mellowmax(5.0)`, another, or one of your own.
        learnable: learn its parameter together with the network?

    Raises:
        ValueError: if there is no parameter that could be learned.

    Examples:
        >>> from mellowmax import Mellowmax
        >>> layer = SoftmaxLayer(Mellowmax(5.0), learnable=True)
        >>> [name for name, _ in layer.named_parameters()], layer
        (['log_omega'], SoftmaxLayer(Mellowmax(omega=5.0), learnable=True))
        >>> q = torch.tensor([[0.3, 0.4, 0.5, 9.9]])
        >>> allowed = torch.tensor([[True, True, True, False]])
        >>> actions = layer.distribution(q, where=allowed)
        >>> [round(x, 4) for x in actions.probs[0].tolist()]
        [0.255, 0.3266, 0.4183, 0.0]
        >>> loss = -actions.log_prob(torch.tensor([2])).sum()
        >>> loss.backward()
        >>> print(f"{layer.log_omega.grad:.4f} at {layer.omega:.1f}")
        -0.2029 at 5.0
    """

    learnable: bool
    _pair: Any
    _names: tuple[str, ...]
    _learned: tuple[str, ...]

    def __init__(self, softmax: Softmax, *, learnable: bool = False) -> None:
        super().__init__()
        if not isinstance(softmax, Softmax) or not dataclasses.is_dataclass(softmax):
            raise TypeError(f"`softmax` must be a softmax such as Mellowmax(5.0), got {softmax!r}")
        self.learnable = learnable
        self._pair = softmax
        fields = (f for f in dataclasses.fields(softmax) if not f.metadata.get("static"))
        given = (field.name for field in fields)
        self._names = tuple(name for name in given if getattr(softmax, name) is not None)
        self._learned = tuple(name for name in self._names if learnable and name != "prior")
        if learnable and (not self._learned or isinstance(softmax, EpsilonGreedy)):
            raise ValueError(f"`learnable` must be False for {softmax!r}, got {learnable!r}")
        for name in self._names:
            value = torch.as_tensor(getattr(softmax, name), dtype=torch.get_default_dtype())
            value = value.detach().clone()
            if name not in self._learned:
                self.register_buffer(name, value)
                continue
            if not bool(torch.all((value > 0) & torch.isfinite(value))):
                rule = "must be positive and finite where it is learnable"
                raise ValueError(f"`{name}` {rule}, got {getattr(softmax, name)}")
            self.register_parameter(f"log_{name}", torch.nn.Parameter(value.log()))

    def __getattr__(self, name: str) -> object:
        """What a module has, and the present value of a learnable parameter."""
        if name in self.__dict__.get("_learned", ()):
            return self._parameter(name)
        return super().__getattr__(name)

    @property
    def softmax(self) -> Softmax:
        """The softmax, with its current parameter as a tensor."""
        pair: Softmax = object.__new__(type(self._pair))
        for field in dataclasses.fields(self._pair):
            value = getattr(self._pair, field.name)
            if field.name in self._names:
                value = self._parameter(field.name)
            object.__setattr__(pair, field.name, value)
        return pair

    def _parameter(self, name: str) -> torch.Tensor:
        if name in self._learned:
            return getattr(self, f"log_{name}").exp()
        return super().__getattr__(name)

    def forward(self, q: torch.Tensor, where: torch.Tensor | None = None) -> torch.Tensor:
        """The log-probabilities of the actions."""
        return self.softmax.log_policy(q, where=where)

    def policy(self, q: torch.Tensor, where: torch.Tensor | None = None) -> torch.Tensor:
        """Their probabilities."""
        return self.softmax.policy(q, where=where)

    def value(self, q: torch.Tensor, where: torch.Tensor | None = None) -> torch.Tensor:
        """One value for each row: the expected value of the policy, for targets of Q-learning."""
        return self.softmax.value(q, where=where)

    def entropy(self, q: torch.Tensor, where: torch.Tensor | None = None) -> torch.Tensor:
        """The entropy of each row's policy, with gradients where a probability is 0 too."""
        return policies.entropy(self.policy(q, where=where))

    def kl(
        self, q: torch.Tensor, prior: torch.Tensor, where: torch.Tensor | None = None
    ) -> torch.Tensor:
        """How far each row's policy is from a prior: their Kullback-Leibler divergence."""
        return policies.kl(self.policy(q, where=where), prior)

    def distribution(
        self, q: torch.Tensor, where: torch.Tensor | None = None
    ) -> torch.distributions.Categorical:
        """The distribution of the actions, to sample from, with log-probabilities and entropy."""
        return torch.distributions.Categorical(logits=self(q, where=where))

    def extra_repr(self) -> str:
        """The softmax with its current parameter, as numbers."""
        now = {name: self._parameter(name).tolist() for name in self._names}
        numbers = {name: round(x, 6) if isinstance(x, float) else x for name, x in now.items()}
        pair = dataclasses.replace(self._pair, **numbers)
        return f"{pair!r}{', learnable=True' if self.learnable else ''}"
