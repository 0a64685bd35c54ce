"""The page computes what the library computes: a thousand cases, in a real Chromium, to 1e-9."""

from __future__ import annotations

import json

import numpy as np
import pytest

from helpers.browser import browser
from mellowmax import (
    Boltzmann,
    Mellowmax,
    log_sum_exp,
    mellowmax_temperature,
    resmax,
    sparsemax,
)
from mellowmax.explorer.inline import inlined
from mellowmax.games import Game, equilibria
from mellowmax.mdp import MDP, two_state
from mellowmax.planning import fixed_points, trace_fixed_points

TOLERANCE = 1e-9
PAIRS = {"boltzmann": Boltzmann, "mellowmax": Mellowmax}
NAMES = ("ra", "pa", "rb", "pb", "discount")
PAPER = dict(zip(NAMES, (0.12211, 0.65867, 0.03284, 0.99075, 0.98), strict=True))
# Of 20,000 random MDPs, one with a window of each kind: low, high, wide.
BROKEN = [
    (0.007, 0.009, 0.152, 0.975, 0.98),
    (0.199, 0.996, 0.942, 0.298, 0.98),
    (0.078, 0.988, 0.914, 0.196, 0.98),
    (0.092, 0.995, 0.754, 0.038, 0.98),
    (0.145, 0.998, 0.194, 0.468, 0.98),
    (0.122, 0.66, 0.033, 0.99, 0.98),
]


def library_mdp(mdp):
    """The MDP of the page, as one of the library."""
    stays = [[mdp["pa"], 1 - mdp["pa"]], [mdp["pb"], 1 - mdp["pb"]]]
    rewards = [[mdp["ra"], mdp["rb"]], [0.0, 0.0]]
    terminal = [False, True]
    return MDP.from_arrays([stays, [[0, 1]] * 2], rewards, mdp["discount"], terminal=terminal)


def random_mdps(rng, count):
    drawn = [dict(zip(NAMES, (*rng.random(4), 0.98), strict=True)) for _ in range(count)]
    return [PAPER, *(dict(zip(NAMES, mdp, strict=True)) for mdp in BROKEN), *drawn][:count]


@pytest.fixture(scope="module")
def compute():
    """From the modules, a function and cases to its results in Chromium."""
    with browser() as tab:
        yield lambda modules, function, cases: tab.evaluate(
            f"(() => {{ {inlined(*modules)}\n return {json.dumps(cases)}.map({function}); }})()"
        )


def test_there_are_a_thousand_cases():
    assert OPERATORS + POINTS + FOLDS + TRAJECTORIES == 1000


OPERATORS, POINTS, FOLDS, TRAJECTORIES = 500, 288, 12, 200


def test_operators_policies_and_gradients(compute, rng):
    cases = []
    for i in range(OPERATORS):
        kind = ("boltzmann", "mellowmax")[i % 2]
        scale = 10.0 ** rng.integers(-4, 3)
        qa, qb = (scale * rng.normal(size=2)).tolist()
        if i % 20 < 2:
            qb = qa  # a tie
        parameter = 0.0 if i % 50 < 2 else float(10.0 ** rng.uniform(-3, 3))
        cases.append({"kind": kind, "parameter": parameter, "qa": qa, "qb": qb})
    found = compute(
        ["operators"],
        """({kind, parameter, qa, qb}) => {
        const s = {kind, parameter}, {value, policy, gradient, temperature} = $operators;
        return [value(s, qa, qb), policy(s, qa, qb), ...gradient(s, qa, qb),
                kind === "mellowmax" ? temperature(qa, qb, parameter) : parameter]; }""",
        cases,
    )
    for case, (value, policy, by_a, by_b, b) in zip(cases, found, strict=True):
        pair, q = PAIRS[case["kind"]](case["parameter"]), np.array([case["qa"], case["qb"]])
        size = abs(q).max()
        assert abs(value - pair.value(q)) <= TOLERANCE * size, case
        assert abs(policy - pair.policy(q)[0]) <= TOLERANCE, case
        assert abs(np.array([by_a, by_b]) - pair.gradient(q)).max() <= TOLERANCE * (
            1 + case["parameter"] * size
        )
        if case["kind"] == "mellowmax":
            expected = mellowmax_temperature(q, case["parameter"])
            assert abs(b - expected) <= TOLERANCE * max(1, expected), case


def test_the_other_operators(compute, rng):
    kinds = {"logSumExp": log_sum_exp, "sparsemax": sparsemax, "resmax": resmax}
    cases = []
    for i in range(90):
        qa, qb = (10.0 ** rng.integers(-3, 3) * rng.normal(size=2)).tolist()
        parameter = float(10.0 ** rng.uniform(-2, 3))
        qb = qa if i % 10 == 0 else qb
        cases.append({"kind": list(kinds)[i % 3], "parameter": parameter, "qa": qa, "qb": qb})
    script = "({kind, parameter, qa, qb}) => $operators[kind](qa, qb, parameter)"
    for case, value in zip(cases, compute(["operators"], script, cases), strict=True):
        expected = kinds[case["kind"]]([case["qa"], case["qb"]], case["parameter"])
        assert abs(value - expected) <= TOLERANCE * max(abs(expected), abs(case["qa"])), case


def test_fixed_points_and_their_stability(compute, rng):
    mdps = random_mdps(rng, POINTS // 2)
    cases = [
        {"mdp": mdp, "kind": kind, "parameter": float(rng.uniform(0, 40))}
        for mdp in mdps
        for kind in PAIRS
    ]
    for case, mdp in zip(cases[::2], [PAPER, *BROKEN], strict=False):  # these in their windows
        case["parameter"] = 16.6 if mdp is PAPER else 0.0
    windows = compute(
        ["broken_mdp"],
        "(mdp) => $broken_mdp.windowOf($fixed_points.branch(mdp))?.middle ?? null",
        [dict(zip(NAMES, mdp, strict=True)) for mdp in BROKEN],
    )
    for case, middle in zip(cases[2::2], windows, strict=False):
        case["parameter"] = middle
    found = compute(
        ["fixed_points"],
        "({mdp, kind, parameter}) => $fixed_points.fixedPoints(mdp, {kind, parameter})",
        cases,
    )
    counts = []
    for case, points in zip(cases, found, strict=True):
        pair = PAIRS[case["kind"]](case["parameter"])
        expected = fixed_points(library_mdp(case["mdp"]), pair)
        assert expected.complete
        assert len(points) == len(expected), case
        counts.append(len(points))
        for ours, theirs in zip(points, expected, strict=True):
            scale = max(1.0, abs(theirs.value[0]))
            assert abs(ours["value"] - theirs.value[0]) <= TOLERANCE * scale, case
            assert abs(abs(ours["slope"]) - theirs.spectral_radius) <= 1e3 * TOLERANCE, case
            assert ours["stable"] == theirs.stable, case
    assert counts.count(3) >= 7  # the case that matters is among them


def test_folds(compute, rng):
    mdps = random_mdps(rng, FOLDS)
    found = compute(
        ["fixed_points"],
        "(mdp) => $fixed_points.branch(mdp).folds.sort((a, b) => a.parameter - b.parameter)",
        mdps,
    )
    several = 0
    for mdp, folds in zip(mdps, found, strict=True):
        highest = 1.5 * max([10.0, *(fold["parameter"] for fold in folds)])
        trace = trace_fixed_points(library_mdp(mdp), Boltzmann, [0.0, highest])
        inside = [fold for fold in folds if 0 < fold["parameter"] < highest]
        assert len(inside) == len(trace.folds), mdp
        several += bool(inside)
        for ours, theirs in zip(inside, trace.folds, strict=True):
            assert abs(ours["parameter"] - theirs.parameter) <= TOLERANCE * theirs.parameter, mdp
            assert abs(ours["value"] - theirs.value[0]) <= 1e-6 * abs(theirs.value[0]), mdp
    assert several >= 6


def test_trajectories(compute, rng):
    """Two hundred sweeps from anywhere, and the fixed point that they say they end at."""
    mdps = random_mdps(rng, TRAJECTORIES // 2)
    cases = [
        {
            "mdp": mdp,
            "kind": kind,
            "parameter": 16.6 if mdp is PAPER else float(rng.uniform(0, 20)),
            "from": dict(zip(("qa", "qb"), rng.uniform(-1, 2, 2).tolist(), strict=True)),
        }
        for mdp in mdps
        for kind in PAIRS
    ]
    found = compute(
        ["fixed_points"],
        """({mdp, kind, parameter, from}) => {
        const s = {kind, parameter};
        const points = $fixed_points.fixedPoints(mdp, s);
        const {values} = $sweeps.trajectory(mdp, s, from, 200);
        const end = $sweeps.basins(mdp, s, points)(values[0]);
        return {values, end: points[end].value}; }""",
        cases,
    )
    for kind, family in PAIRS.items():  # all of one operator at once
        chosen = [(c, f) for c, f in zip(cases, found, strict=True) if c["kind"] == kind]
        ours = np.array([(f["values"] + 201 * [np.nan])[:201] for _, f in chosen])
        pair = family(np.array([c["parameter"] for c, _ in chosen]))
        models = [library_mdp(c["mdp"]) for c, _ in chosen]
        rewards = np.array([mdp.to_numpy()[1][0] for mdp in models])
        stays = np.array([mdp.discount * mdp.to_numpy()[0][0, :, 0] for mdp in models])
        q = np.array([[c["from"]["qa"], c["from"]["qb"]] for c, _ in chosen])
        for sweep in range(4000):
            value = np.asarray(pair.value(q))
            scale = np.maximum(1, abs(value))
            if sweep <= 200:
                near = abs(ours[:, sweep] - value) <= TOLERANCE * scale
                assert (near | np.isnan(ours[:, sweep])).all()  # some have settled before
            q = rewards + stays * value[:, None]
        assert np.isfinite(ours[:, :10]).all()
        assert (abs(value - [f["end"] for _, f in chosen]) <= 1e-5 * scale).all()


def library_game(payoffs):
    """The game of the page, as one of the library."""
    return Game(np.moveaxis(np.reshape(payoffs, (2, 2, 2)), -1, 0))


def random_games(rng, count):
    """Games that are shown first, others, and a parameter at which the answers are steep."""
    shown = [(4, 4, 0, 3, 3, 0, 3, 3), (3, -1, -1, 1, -1, 1, 1, -1)]
    payoffs = [*shown, *rng.normal(size=(count - len(shown), 8)).tolist()]
    kinds = [*PAIRS] * count
    return [
        {"payoffs": own, "kind": kind, "parameter": float(rng.uniform(1, 20))}
        for own, kind in zip(payoffs, kinds, strict=False)
    ]


def test_equilibria_of_games(compute, rng):
    """All that the library proves to be all."""
    cases = random_games(rng, 120)
    found = compute(
        ["game"],
        "({payoffs, kind, parameter}) => $game.equilibria(payoffs, {kind, parameter})",
        cases,
    )
    counts = []
    for case, points in zip(cases, found, strict=True):
        softmax = PAIRS[case["kind"]](case["parameter"])
        expected = equilibria(library_game(case["payoffs"]), softmax)
        assert expected.complete
        assert len(points) == len(expected), case
        counts.append(len(points))
        ordered = sorted(expected, key=lambda point: point.profile[0][0])
        for ours, theirs in zip(points, ordered, strict=True):
            assert abs(ours["p"] - theirs.profile[0][0]) <= TOLERANCE, case
            assert abs(ours["q"] - theirs.profile[1][0]) <= TOLERANCE, case
            assert abs(ours["values"] - theirs.values).max() <= 1e2 * TOLERANCE, case
            assert abs(abs(ours["slope"]) - theirs.spectral_radius**2) <= 1e-4, case
            assert ours["stable"] == theirs.stable, case
    assert counts.count(3) >= 5


def test_branches_of_games(compute, rng):
    """Each piece is next to an equilibrium, stable or not, and none of those is without one."""
    cases = random_games(rng, 8)
    found = compute(
        ["game"], "({payoffs, kind}) => $game.branches(payoffs, kind, 12, 60, 100)", cases
    )
    for case, pieces in zip(cases, found, strict=True):
        softmax = PAIRS[case["kind"]](8.1)
        expected = equilibria(library_game(case["payoffs"]), softmax)
        there = [piece for piece in pieces if piece["from"][0] < 8.1 < piece["to"][0]]
        there += [piece for piece in pieces if piece["to"][0] < 8.1 < piece["from"][0]]
        own = sorted(
            (np.interp(8.1, *zip(*sorted([one["from"], one["to"]]), strict=True)), one["stable"])
            for one in there
        )
        theirs = sorted((point.profile[0][0], point.stable) for point in expected)
        assert [stable for _, stable in own] == [stable for _, stable in theirs], case
        np.testing.assert_allclose([p for p, _ in own], [p for p, _ in theirs], atol=0.005)


def test_players_who_answer_each_other_end_at_a_stable_equilibrium(compute):
    hunt, pennies = (one["payoffs"] for one in random_games(np.random.default_rng(0), 2))
    cases = [[hunt, 14, p] for p in (0.1, 0.79, 0.84)] + [[pennies, 12, 0.9]]
    script = """([payoffs, parameter, p]) => {
        const {corners, settled} = $game.answers(payoffs, {kind: "mellowmax", parameter}, p);
        return [settled, ...corners[corners.length - 1]]; }"""
    found = compute(["game"], script, cases)
    low, _, high = (point.profile[0][0] for point in equilibria(library_game(hunt), Mellowmax(14)))
    for (settled, p, q), end in zip(found, (low, low, high), strict=False):
        assert settled
        assert [p, q] == pytest.approx([end, end], abs=1e-7)
    (only,) = equilibria(library_game(pennies), Mellowmax(12))
    assert found[-1][0] is only.stable


def test_the_default_mdp_is_the_librarys(compute):
    [paper] = compute(["sweeps"], "() => $sweeps.PAPER", [0])
    transitions, rewards = two_state().to_numpy()
    assert [paper["ra"], paper["rb"]] == rewards[0].tolist()
    assert [paper["pa"], paper["pb"]] == transitions[0, :, 0].tolist()
    assert paper["discount"] == two_state().discount


def test_a_broken_mdp_has_a_wide_window(compute):
    found = compute(
        ["broken_mdp"],
        """(seed) => { const mdp = $broken_mdp.brokenMDP(seed);
        return {mdp, window: $broken_mdp.windowOf($fixed_points.branch(mdp))}; }""",
        list(range(40)),
    )
    assert len({json.dumps(one["mdp"]) for one in found}) == 40
    for one in found:
        assert one["window"]["high"] - one["window"]["low"] >= 0.25 * one["window"]["middle"]
    middle = found[0]["window"]["middle"]
    assert len(fixed_points(library_mdp(found[0]["mdp"]), Boltzmann(middle))) == 3


def test_sarsa_with_small_steps_learns_the_values_of_the_uniform_policy(compute):
    """At beta 0 planning has one fixed point; the mean of 40 runs has a standard error of 0.003."""
    mdp = dict(zip(NAMES, (0.3, 0.5, 0.6, 0.8, 0.9), strict=True))
    found = compute(
        ["sarsa"],
        f"""(seed) => {{ const run = new $sarsa.Sarsa({{qa: 0, qb: 0}}, seed);
        run.run({json.dumps(mdp)}, {{kind: "boltzmann", parameter: 0}}, 0.002, 40000, 0);
        return [run.qa, run.qb, run.steps, run.below]; }}""",
        list(range(1, 41)),
    )
    [point] = fixed_points(library_mdp(mdp), Boltzmann(0.0))
    means = np.mean(found, axis=0)
    np.testing.assert_allclose(means[:2], point.q[0], atol=0.02)
    assert means[2] == 40000
    assert means[3] == 0  # values rise from 0
