"""Bayesian inverse reinforcement learning: draws of the parameters from their posterior.

The posterior is the likelihood times a prior (Ramachandran and Amir, 2007), and the draws are those
of blackjax's no-U-turn sampler (Hoffman and Gelman, 2014). The chains start around the
maximum of the posterior, or of the likelihood where the prior is a function, further apart than its
curvature says.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._common import checks
from .._common.extras import needed_by
from .._common.shown import shown
from .._typing import ArrayLike, Floats, PyTree
from ..mdp import MDP
from .demonstrations import Demonstrations
from .demonstrator import AnyDemonstrator
from .estimate import Estimate, FitStatus, NotFittedError
from .fit import fit
from .likelihood import Discount, Question, check_result, environments_of, log_likelihood
from .rewards import Reward, names_of

__all__ = ["Posterior", "sample"]

BLOCK = 50
"""Draws of one call of the compiled program; then progress is reported."""
APART = 2.0
"""How far the chains start from the maximum, in its standard errors."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws from a posterior, and whether they can be trusted; printing it shows them."""

    draws: Floats
    """`[chains, draws, k]`."""
    names: tuple[str, ...]
    """What the parameters are called."""
    rhat: Floats
    """`[k]`, how much the chains differ: 1 where they do not (Gelman and Rubin, 1992)."""
    effective_sizes: Floats
    """`[k]`, how many independent draws would give the mean as exactly."""
    divergences: int
    """The number of divergent transitions, which the sampler could not follow; it should be 0."""
    acceptance: float
    """The mean probability of acceptance."""
    prior_deviations: Floats | None
    """`[k]`, the standard deviations of a normal prior; None for another prior."""

    @property
    def mean(self) -> Floats:
        """`[k]`."""
        return np.asarray(self.draws.mean((0, 1)))

    @property
    def deviations(self) -> Floats:
        """`[k]`, the standard deviations."""
        return np.asarray(self.draws.std((0, 1)))

    @property
    def learnt(self) -> Floats:
        """`[k]`, the deviation after over that before: 1 where the prior alone decides."""
        if self.prior_deviations is None:
            return np.full(len(self.names), np.nan)
        return self.deviations / self.prior_deviations

    def rows(self) -> list[tuple[str, str]]:
        """The posterior in words: pairs of a name and a text, as `print` shows them."""
        numbers = zip(self.mean, self.deviations, self.rhat, self.effective_sizes, strict=True)
        rows = [
            (name, f"{mean:.4g} +- {sd:.3g}, R-hat {rhat:.3f}, {size:.0f} effective draws")
            for name, (mean, sd, rhat, size) in zip(self.names, numbers, strict=True)
        ]
        return [*rows, ("divergences", str(self.divergences))]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}s}  {text}" for name, text in rows)

    def __repr__(self) -> str:
        chains, draws, k = self.draws.shape
        return f"Posterior(chains={chains}, draws={draws}, parameters={k})"


NO_CODE_MOTION = {"xla_disable_hlo_passes": "while-loop-invariant-code-motion"}
"""How XLA compiles a sampler. Its loops go round loops that go round the solve, and what XLA moves
out of them on a CPU (JAX 0.10) makes the likelihood NaN, so that no draw would move."""


class _Block(NamedTuple):
    draws: Any  # [chains, draws, k]
    divergent: Any  # [chains, draws]
    acceptance: Any  # [chains, draws]


def sample(
    mdp: MDP | Sequence[MDP],
    demonstrations: Demonstrations | Sequence[Demonstrations],
    reward: Reward,
    demonstrator: AnyDemonstrator,
    prior: ArrayLike | Callable[[jax.Array], jax.Array],
    *,
    discount: Discount = None,
    initial: ArrayLike = 0.0,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    seed: int = 0,
    callback: Callable[[int, int], object] | None = None,
) -> Posterior:
    """Draw the parameters from their posterior, by the no-U-turn sampler.

    It needs blackjax: `pip install 'mellowmax[inverse]'`.

    Args:
        mdp: as in `fit`.
        demonstrations: as in `fit`.
        reward: as in `fit`.
        demonstrator: as in `fit`.
        prior: the standard deviation of a normal distribution around 0, a number or `[k]`, or any
            function from the parameters to a log-density, up to a constant.
        discount: as in `fit`.
        initial: where `fit` starts, to find where the chains do.
        draws: of each chain.
        warmup: steps of each chain before them, in which the sampler adapts.
        chains: how many; at least two, to compare.
        seed: of the random numbers.
        callback: called with the number of draws so far and in all.

    Raises:
        NotFittedError: where the demonstrator's own plan does not converge on the way there.
        TypeError: for an argument of the wrong kind.
        ValueError: for one that is not as above.
    """
    with needed_by("mellowmax.inverse.sample", "inverse"):
        import blackjax
    draws = checks.whole("draws", draws, 4)
    warmup = checks.whole("warmup", warmup, 20)
    chains = checks.whole("chains", chains, 2)
    seed = checks.whole("seed", seed, 0)
    if callback is not None:
        checks.function("callback", callback)
    start = checks.numbers("initial", initial)
    mdps, _, _ = environments_of(mdp, demonstrations)
    question = Question.of(reward, demonstrator, discount)
    k = len(names_of("initial", start.shape, reward, mdps, more=question.more))
    deviations, log_prior = _prior(prior, k)
    estimate = fit(
        mdp,
        demonstrations,
        reward,
        demonstrator,
        discount=discount,
        initial=initial,
        penalty=0.0 if deviations is None else deviations**-2.0,
        throw=False,
    )
    if estimate.status in (FitStatus.INNER, FitStatus.AT_A_FOLD):
        raise NotFittedError(estimate)

    def log_density(parameters: jax.Array) -> jax.Array:
        seen = log_likelihood(
            parameters, mdp, demonstrations, reward, demonstrator, discount=discount
        )
        total = seen + log_prior(parameters)
        return jnp.where(jnp.isfinite(total), total, -jnp.inf)

    warm = blackjax.window_adaptation(blackjax.nuts, log_density, is_mass_matrix_diagonal=False)

    def one_warm(key: jax.Array, start: jax.Array) -> Any:
        (state, adapted), _ = warm.run(key, start, num_steps=warmup)
        return state, adapted

    def one_block(key: jax.Array, state: PyTree, adapted: PyTree) -> Any:
        step = blackjax.nuts(log_density, **adapted).step

        def draw(state: PyTree, key: jax.Array) -> Any:
            state, info = step(key, state)
            return state, _Block(state.position, info.is_divergent, info.acceptance_rate)

        return jax.lax.scan(draw, state, jax.random.split(key, BLOCK))

    with jax.enable_x64(True), _lenient():
        keys = jax.random.split(jax.random.key(seed), 2)
        wide = _widths(estimate, deviations)
        away = np.asarray(jax.random.normal(keys[0], (chains, k)))
        starts = estimate.parameters + APART * wide * away
        warm_up = jax.jit(jax.vmap(one_warm), compiler_options=NO_CODE_MOTION)
        state, adapted = warm_up(jax.random.split(keys[1], chains), starts)
        program = jax.jit(jax.vmap(one_block), compiler_options=NO_CODE_MOTION)
        blocks: list[_Block] = []
        for number, first in enumerate(range(0, draws, BLOCK)):
            each = jax.random.split(jax.random.fold_in(keys[1], number), chains)
            state, block = program(each, state, adapted)
            blocks.append(jax.tree.map(np.asarray, block))
            if callback is not None:
                callback(min(first + BLOCK, draws), draws)
        whole = _Block(
            *(np.concatenate(parts, 1)[:, :draws] for parts in zip(*blocks, strict=True))
        )
        rhat = blackjax.diagnostics.potential_scale_reduction(whole.draws)
        sizes = blackjax.diagnostics.effective_sample_size(whole.draws)
    return Posterior(
        draws=np.asarray(whole.draws),
        names=estimate.names,
        rhat=np.reshape(rhat, k),
        effective_sizes=np.reshape(sizes, k),
        divergences=int(whole.divergent.sum()),
        acceptance=float(whole.acceptance.mean()),
        prior_deviations=deviations,
    )


@contextlib.contextmanager
def _lenient() -> Iterator[None]:
    """Within it blackjax may promote types and ranks, however strict JAX is set to be."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _widths(estimate: Estimate, deviations: Floats | None) -> Floats:
    """`[k]`, about how wide the posterior is."""
    with np.errstate(invalid="ignore"):
        widths = np.sqrt(np.diag(estimate.covariance()))
    return np.where(np.isfinite(widths), widths, 1.0 if deviations is None else deviations)


def _prior(
    prior: ArrayLike | Callable[[jax.Array], jax.Array], k: int
) -> tuple[Floats | None, Callable[[jax.Array], jax.Array]]:
    """The deviations of a normal prior, and the log-density of any."""
    if callable(prior):
        with jax.enable_x64(True):
            theta = jax.ShapeDtypeStruct((k,), np.dtype(np.float64))
            check_result("prior", "a number", prior, theta, [()])
        return None, prior
    given = checks.numbers("prior", prior)
    if given.shape not in ((), (k,)) or not (np.isfinite(given) & (given > 0)).all():
        rule = f"`prior` must be a function, or a deviation above 0, or {k} of them"
        raise ValueError(f"{rule}, got {shown(prior)}")
    deviations = np.broadcast_to(given, k)
    return deviations, lambda x: -0.5 * jnp.sum((x / deviations) ** 2)
