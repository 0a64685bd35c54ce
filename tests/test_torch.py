"""PyTorch: small batches, what compilers and transformations make of them, and modules."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import mellowmax as mm
from helpers import adversarial
from helpers.libraries import DEVICE, needs_torch
from mellowmax._rows.quick import formulas, host_arrays

torch = needs_torch(allow_module_level=True)
FULL = {"backend": "aot_eager", "fullgraph": True}
"""Traced as for users, without the minutes of a compiler of C++."""
RNG = np.random.default_rng(0)
Q = RNG.normal(size=(8, 4))
ALLOWED = (RNG.random(Q.shape) < 0.6) | (np.arange(4) == 1)
FILLED = np.where(np.arange(4) == 2, -1e30, Q)
"""Rows that the quick formulas do not get right."""


@pytest.fixture(autouse=True)
def nothing_compiled():
    """PyTorch compiles a function a few times at most, whoever asks for it."""
    torch.compiler.reset()


def tensor(values=Q, **options):
    return torch.tensor(values, device=DEVICE, **options)


def close(x, y, tolerance=1e-12):
    np.testing.assert_allclose(
        *(np.asarray(a.detach().cpu() if isinstance(a, torch.Tensor) else a) for a in (x, y)),
        rtol=tolerance,
        atol=tolerance,
    )


# Small batches.


@pytest.fixture
def asked(monkeypatch):
    """Did the quick formulas know the answer? One truth value a question."""
    answers = []
    ask = host_arrays._compute

    def note(*arguments):
        known = ask(*arguments)
        answers.append(known is not None)
        return known

    monkeypatch.setattr(host_arrays, "_compute", note)
    return answers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_host_arrayses_are_as_right_as_large_ones(dtype, asked):
    """Rows with and without extremes, against extended precision; nearly half have none."""
    rng = np.random.default_rng(5)
    compute = adversarial.libraries()
    for i in range(60):
        draw = adversarial.ordinary_rows if i % 4 else adversarial.rows
        q, omegas = draw(rng, (2, 4, 9)[i % 3], 8, dtype)
        if i % 2:  # gaps of very different sizes
            q = rng.normal(size=q.shape) * 10.0 ** rng.uniform(-8, 1, size=q.shape)
            q = (q + rng.choice([0, 1000])).astype(dtype)
        omega = omegas[0] if i % 8 == 0 else omegas.dtype.type(10 ** rng.uniform(-3, 2.5))
        cotangent = rng.normal(size=q.shape).astype(dtype)
        with np.errstate(all="ignore"):
            exact = adversarial.Exact(q, np.full(8, omega))
            for library in ("numpy", "torch"):
                number = float(omega) if library == "numpy" else omega  # a tensor of one number
                found = compute[library](q, number, cotangent)
                if library == "torch":  # one omega for all rows, and so one derivative
                    info, total = np.finfo(dtype), np.sum(exact.by_omega)
                    off = np.minimum(found["by_omega"], info.max) - np.minimum(total, info.max)
                    assert np.abs(off) <= adversarial.LOOSE[dtype] * total + info.tiny
                    found["by_omega"] = np.minimum(exact.by_omega, info.max)
                for check, bad in adversarial.wrong(found, exact, dtype, cotangent).items():
                    assert not np.any(bad), f"{library}, {check}: {q[bad]!r}, {omega!r}"
    assert 0.4 < np.mean(asked) < 0.95


@pytest.mark.parametrize(
    "name", ["mellowmax", "mellowmax_policy", "boltzmann_policy", "mellowmax_log_policy"]
)
def test_a_mask_in_a_host_arrays_is_the_rows_without_those_actions(name, asked):
    function = getattr(mm, name)
    q = tensor(np.where(ALLOWED, Q, np.nan), requires_grad=True)
    omega = tensor(3.0, dtype=torch.float64, requires_grad=True)
    result = function(q, omega, where=tensor(ALLOWED))
    rows = result if result.ndim == 1 else [r[m] for r, m in zip(result, ALLOWED, strict=True)]
    of_rows = torch.stack([row.square().sum() for row in rows])
    by_q, by_omega = torch.autograd.grad(of_rows.sum(), (q, omega))
    assert asked == [True]
    total = 0.0
    for i, allowed in enumerate(ALLOWED):
        few = tensor(Q[i, allowed][None], requires_grad=True)
        one = tensor([3.0], dtype=torch.float64, requires_grad=True)  # one a row: the general path
        expected = function(few, one)
        gradients = torch.autograd.grad(expected.square().sum(), (few, one))
        close(rows[i], expected[0], 1e-11)
        close(by_q[i, allowed], gradients[0][0], 1e-9)
        assert torch.all(by_q[i, ~allowed] == 0)
        total += float(gradients[1])
    close(by_omega, total, 1e-9)


def test_one_mask_for_all_rows_and_none_left():
    q = tensor()
    close(
        mm.mellowmax_policy(q, 5.0, where=tensor(ALLOWED[1])),
        mm.mellowmax_policy(q, 5.0, where=tensor(np.tile(ALLOWED[1], (8, 1)))),
    )
    with pytest.raises(ValueError, match=r"`where` must leave an action in every row, got none in"):
        mm.mellowmax_policy(q, 5.0, where=tensor(ALLOWED & (np.arange(8) != 3)[:, None]))


def test_integers_as_a_mask_take_the_same_path(asked):
    for dtype in (torch.int64, torch.uint8):
        found = mm.mellowmax_policy(tensor(), 5.0, where=tensor(ALLOWED).to(dtype))
        assert torch.equal(found, mm.mellowmax_policy(tensor(), 5.0, where=tensor(ALLOWED)))
    assert asked == [True] * 4


@pytest.mark.parametrize("compiled", [False, True])
def test_padded_steps_leave_no_mark_on_gradients(compiled):
    """The recipe of the how-to page: rows without an allowed action, from a network."""
    network = torch.nn.Linear(3, 4, dtype=torch.float64, device=DEVICE)
    observations = tensor(RNG.normal(size=(8, 3)))
    allowed = tensor(ALLOWED & (np.arange(8) % 3 != 0)[:, None])
    real = allowed.any(-1)

    def loss(observations, allowed):
        real = allowed.any(-1)
        logarithm = mm.mellowmax_log_policy(
            network(observations), 5.0, where=allowed | ~real[:, None]
        )
        picked = logarithm[torch.arange(len(allowed)), allowed.to(torch.int64).argmax(-1)]
        return torch.where(real, picked, 0.0).sum()

    def gradients(loss, *arguments):
        return torch.autograd.grad(loss(*arguments), list(network.parameters()))

    found = torch.compile(loss, **FULL) if compiled else loss
    padded = gradients(found, observations, allowed)
    for one, other in zip(padded, gradients(loss, observations[real], allowed[real]), strict=True):
        assert torch.any(one != 0)
        close(one, other, 1e-9)


@pytest.mark.parametrize("keepdims", [False, True])
def test_shapes_and_dtypes_of_host_arrayses(keepdims):
    for shape in ((4,), (1, 4), (2, 3, 4), (3, 1)):
        q = torch.zeros(shape, device=DEVICE)
        value = mm.mellowmax(q, 5.0, keepdims=keepdims)
        assert value.shape == (shape[:-1] + (1,) * keepdims)
        assert value.dtype == mm.mellowmax_policy(q, 5.0).dtype == torch.float32
        assert mm.mellowmax_policy(q, 5.0).shape == shape
        array = np.zeros(shape, np.float32)
        assert np.shape(mm.mellowmax(array, 5.0, keepdims=keepdims)) == value.shape
        assert mm.mellowmax(array, 5.0).dtype == np.float32


def test_kernels_of_ordinary_rows_know_their_limits():
    q = np.array([[0.0, 1.0]]).T
    for parameter in (0.0, math.inf, 1e-300, 1e300):
        assert formulas.mellowmax(q, parameter, None) is None
    with np.errstate(all="ignore"):
        for row in ([0.0, math.nan], [0.0, -math.inf], [0.0, 1.0, -1e30]):
            assert formulas.policy(np.array([row]).T, 5.0, None) is None


# Compilers and transformations.


def everything(q, omega, where=None):
    """Values and policies, as one number."""
    value = mm.mellowmax(q, omega, where=where)
    policy = mm.mellowmax_policy(q, omega, where=where)
    logarithm = mm.mellowmax_log_policy(q, omega, where=where)
    log_prob = torch.where(policy > 0, logarithm, 0.0)
    return value.sum() + (policy**3).sum() + (policy * log_prob).sum()


def with_gradients(function, values, where=None):
    q = tensor(values, requires_grad=True)
    omega = tensor(4.0, dtype=torch.float64, requires_grad=True)
    result = function(q, omega, None if where is None else tensor(where))
    return [result, *torch.autograd.grad(result, (q, omega))]


def agree(one, other, *arguments):
    for x, y in zip(
        with_gradients(one, *arguments), with_gradients(other, *arguments), strict=True
    ):
        close(x, y, 1e-9)


def test_the_compiler_reads_one_graph():
    """Of a size that changes, with a mask or without, omega a tensor or a number that changes."""
    read = torch.compile(everything, backend="eager", fullgraph=True)
    for arguments in ((Q,), (Q[:5],), (Q[:7],), (Q, ALLOWED)):
        agree(read, everything, *arguments)
    for omega in (1.0, 2.5, 3.5):
        close(read(tensor(), omega), everything(tensor(), omega), 1e-12)


def test_compiled_forwards_and_backwards():
    """One program, for rows with extreme numbers and for others."""
    compiled = torch.compile(mm.Mellowmax(5.0).log_policy, **FULL)
    for values in (Q, FILLED, np.zeros_like(Q), 1e-9 * Q):
        q = tensor(values, requires_grad=True)
        found, expected = compiled(q), mm.mellowmax_log_policy(q, 5.0)
        close(found, expected, 1e-9)
        gradients = (torch.autograd.grad(x[:, 1].sum(), q)[0] for x in (found, expected))
        close(*gradients, 1e-9)


def test_the_other_softmaxes_are_read_as_one_graph():
    """Sparsemax sorts there, where its loop cannot look at the numbers."""
    softmaxes = (
        mm.LogSumExp(2.0),
        mm.FreeEnergy(2.0, prior=torch.tensor([0.1, 0.2, 0.3, 0.4], device=DEVICE).double()),
        mm.Sparsemax(2.0),
        mm.Resmax(2.0),
    )

    def every(q):
        values = [softmax.value(q) for softmax in softmaxes]
        policies = [softmax.policy(q) for softmax in softmaxes]
        return torch.stack(values, -1), torch.stack(policies, -1), mm.entropy(policies[2])

    read = torch.compile(every, backend="eager", fullgraph=True)
    for values in (Q, 10 * Q, np.zeros_like(Q)):
        for found, expected in zip(read(tensor(values)), every(tensor(values)), strict=True):
            close(found, expected, 1e-12)


@pytest.mark.release
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what PyTorch's compiler imports
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_with_everything_that_may_change(backend):
    """And as machine code."""
    compiled = torch.compile(everything, backend=backend, fullgraph=True)
    for arguments in ((Q,), (FILLED,), (Q[:5],), (1e-9 * Q[:7],), (Q, ALLOWED)):
        agree(compiled, everything, *arguments)
    for omega in (1.0, 2.5, 3.5):
        close(compiled(tensor(), omega), everything(tensor(), omega), 1e-9)


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.release)])
def test_transformations_inside_a_compiled_program(backend):
    def gradients(q):
        by_row = torch.func.vmap(lambda row: mm.mellowmax_policy(row, 5.0))(q)
        return by_row + torch.func.grad(lambda q: mm.mellowmax_log_policy(q, 5.0)[:, 0].sum())(q)

    compiled = torch.compile(gradients, backend=backend, fullgraph=True)
    close(compiled(tensor()), gradients(tensor()), 1e-10)


def test_exported_for_batches_of_any_size():
    from mellowmax.torch import SoftmaxLayer

    layer = SoftmaxLayer(mm.Mellowmax(5.0)).to(DEVICE)
    shapes = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(layer, (tensor().float(),), dynamic_shapes=shapes).module()
    for values in (Q[:3], FILLED):
        q = tensor(values).float()
        close(exported(q), mm.mellowmax_log_policy(q, 5.0), 2e-6)


def test_meta_tensors_have_shapes_and_gradients():
    q = torch.empty(8, 4, device="meta", requires_grad=True)
    value, logarithm = mm.mellowmax(q, 5.0), mm.mellowmax_log_policy(q, 5.0)
    (value.sum() + logarithm.sum()).backward()
    shapes = [tuple(x.shape) for x in (value, logarithm, q.grad)]
    assert shapes == [(8,), (8, 4), (8, 4)]
    assert q.grad.is_meta


def test_transformations_of_functions():
    q = tensor()
    policies = torch.func.vmap(lambda row, omega: mm.mellowmax_policy(row, omega))
    omegas = tensor(np.linspace(-3, 5, 8))
    close(policies(q, omegas), mm.mellowmax_policy(q, omegas))
    jacobian = torch.func.jacrev(lambda row: mm.mellowmax_policy(row, 5.0))(q[0])
    close(torch.func.jacfwd(lambda row: mm.mellowmax_policy(row, 5.0))(q[0]), jacobian, 1e-9)
    vectorised = torch.autograd.functional.jacobian(
        lambda row: mm.mellowmax_policy(row, 5.0), q[0], vectorize=True
    )
    close(vectorised, jacobian, 1e-9)
    close(torch.func.grad(lambda q: mm.mellowmax(q, 5.0).sum())(q), mm.mellowmax_gradient(q, 5.0))
    hessian = torch.func.hessian(lambda row: mm.mellowmax(row, 5.0))(q[0])
    weights = mm.mellowmax_gradient(q[0], 5.0)
    close(hessian, 5.0 * (torch.diag(weights) - torch.outer(weights, weights)), 1e-9)


@pytest.mark.parametrize("dual", ["q", "omega"])
def test_forward_mode_derivatives(dual):
    """Of a value by one argument: the other, and a mask, are as they are outside."""
    mask, tangent = torch.as_tensor(ALLOWED, device=DEVICE), {"q": 1.0, "omega": 2.0}[dual]
    with torch.autograd.forward_ad.dual_level():
        given = {"q": tensor(), "omega": tensor(np.array(5.0))}
        of_one = given[dual]
        given[dual] = torch.autograd.forward_ad.make_dual(of_one, torch.full_like(of_one, tangent))
        value = mm.mellowmax(**given, where=mask)
        found = torch.autograd.forward_ad.unpack_dual(value).tangent
        plain = mm.mellowmax(tensor(), 5.0, where=mask)
        assert torch.autograd.forward_ad.unpack_dual(plain).tangent is None
    step = 1e-5
    ahead = {"q": tensor(), "omega": tensor(np.array(5.0))}
    back = dict(ahead)
    ahead[dual], back[dual] = ahead[dual] + step * tangent, back[dual] - step * tangent
    slope = mm.mellowmax(**ahead, where=mask) - mm.mellowmax(**back, where=mask)
    close(found, slope / (2 * step), 1e-8)


@pytest.mark.filterwarnings("ignore")  # `torch.jit` is deprecated, and warns of each shape
def test_a_program_that_was_traced_computes_anew():
    traced = torch.jit.trace(lambda q: mm.mellowmax(q, 5.0), tensor())
    close(traced(tensor(2 * Q)), mm.mellowmax(tensor(2 * Q), 5.0))


def test_autocast_forwards_and_backwards():
    linear = torch.nn.Linear(4, 4, device=DEVICE)

    def loss(x):
        q = linear(x)
        logarithm, value = mm.mellowmax_log_policy(q, 5.0), mm.mellowmax(q, 5.0)
        return logarithm[:, 0].sum() + value.sum(), logarithm

    gradients = []
    for function in (loss, torch.compile(loss, backend="eager", fullgraph=True)):
        for is_half in (True, False):
            linear.zero_grad()
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=is_half):
                total, logarithm = function(tensor().float())
            assert logarithm.dtype == (torch.bfloat16 if is_half else torch.float32)
            total.backward()
            gradients.append(linear.weight.grad.clone())
    for gradient in gradients:
        close(gradient, gradients[1], 0.1)


# Modules.


def test_a_learnable_parameter_is_learned_saved_and_stays_positive():
    from mellowmax.torch import SoftmaxLayer

    layer = SoftmaxLayer(mm.Mellowmax(2.0), learnable=True).to(DEVICE)
    start = copy.deepcopy(layer.state_dict())
    assert list(start) == [name for name, _ in layer.named_parameters()] == ["log_omega"]
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
    q = tensor(np.array([[0.0, 1.0]])).float()
    for _ in range(200):  # make the worse action likely: omega falls towards 0
        optimiser.zero_grad()
        (-layer(q)[0, 0]).backward()
        optimiser.step()
    assert 0 < float(layer.softmax.omega.detach()) < 0.5
    layer.load_state_dict(start)
    close(layer.omega, 2.0, 1e-6)
    (by_log,) = torch.autograd.grad(layer.omega**2, layer.log_omega)
    close(by_log, 8.0, 1e-5)  # the derivative of exp(2 x) at log(2)
    close(layer.policy(q), mm.mellowmax_policy(q, 2.0), 1e-6)
    assert str(layer) == "SoftmaxLayer(Mellowmax(omega=2.0), learnable=True)"


def test_a_fixed_parameter_is_moved_saved_and_changed_in_place():
    from mellowmax.torch import SoftmaxLayer

    layer = SoftmaxLayer(mm.Boltzmann(2.0)).to(DEVICE)
    assert list(layer.parameters()) == []
    assert list(layer.state_dict()) == ["beta"]
    layer.beta.fill_(3.0)
    close(layer.value(tensor()), mm.boltzmann(tensor(), 3.0))


@pytest.mark.parametrize("pair", [mm.Max(), mm.Mean(), mm.EpsilonGreedy(0.2), mm.Mellowmax(5.0)])
def test_any_softmax_is_a_module(pair):
    from mellowmax.torch import SoftmaxLayer

    layer = SoftmaxLayer(pair).to(DEVICE)
    q, allowed = tensor(), tensor(ALLOWED)
    policy = pair.policy(q, where=allowed)
    actions = layer.distribution(q, where=allowed)
    close(actions.probs, policy, 1e-7)  # omega is in the layer's single precision
    close(layer.value(q, where=allowed), torch.where(allowed, policy * q, 0).sum(-1), 1e-7)
    terms = np.array([[p * math.log(p) if p else 0.0 for p in row] for row in policy.tolist()])
    close(actions.entropy(), -np.sum(terms, axis=-1), 1e-6)
    for _ in range(20):
        assert torch.all(policy.gather(-1, actions.sample()[:, None]) > 0)


def test_a_prior_is_a_buffer_and_the_bonus_of_a_layer_has_gradients():
    """A mask, a prior, and an entropy whose gradient is not a number in many libraries."""
    from mellowmax.torch import SoftmaxLayer

    softmax = mm.FreeEnergy(2.0, prior=[0.2, 0.3, 0.5, 1.0])
    layer = SoftmaxLayer(softmax, learnable=True).to(DEVICE)
    assert [name for name, _ in layer.named_parameters()] == ["log_beta"]
    assert sorted(layer.state_dict()) == ["log_beta", "prior"]
    q, allowed = tensor().requires_grad_(), tensor(ALLOWED)
    close(layer.value(q, where=allowed), softmax.value(q, where=allowed), 1e-6)
    close(layer.entropy(q, where=allowed), mm.entropy(layer.policy(q, where=allowed)), 1e-12)
    prior = torch.tensor(softmax.prior, device=DEVICE)
    loss = layer.entropy(q, where=allowed) + layer.kl(q, prior / prior.sum(), where=allowed)
    loss.sum().backward()
    assert torch.all(torch.isfinite(q.grad))
    assert torch.all(q.grad[~allowed] == 0)
    assert layer.log_beta.grad != 0


def test_modules_say_what_is_wrong():
    from mellowmax.torch import SoftmaxLayer

    for pair in (mm.Max(), mm.EpsilonGreedy(0.1)):
        with pytest.raises(ValueError, match=r"`learnable` must be False for .*, got True"):
            SoftmaxLayer(pair, learnable=True)
    with pytest.raises(ValueError, match=r"`omega` must be positive and finite .*, got -1.0"):
        SoftmaxLayer(mm.Mellowmax(-1.0), learnable=True)
    with pytest.raises(AttributeError, match="no attribute 'beta'"):
        SoftmaxLayer(mm.Mellowmax(5.0), learnable=True).beta  # noqa: B018
    with pytest.raises(TypeError, match=r"`softmax` must be a softmax such as .*, got 5.0"):
        SoftmaxLayer(5.0)
