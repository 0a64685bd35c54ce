"""Every public callable refuses an argument of a wrong kind at once, in one sentence that names it.

What may be raised is a TypeError or a ValueError of one line, with the argument in backticks. A
call below has the arguments that it needs, and would do; the others have their defaults. Each of
them is replaced by every wrong value in turn.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from pathlib import Path

import jax
import numpy as np
import pytest

import mellowmax as mm
from helpers.libraries import torch
from mellowmax import (
    deep,
    experiments,
    explorer,
    games,
    inverse,
    learning,
    mdp,
    planning,
    properties,
    report,
)
from mellowmax.environments import (
    acrobot,
    brax,
    cartpole,
    fleet,
    gymnax,
    jumanji,
    lunar_lander,
    mountain_car,
    navix,
    pgx,
    tabular,
    taxi,
    two_state,
)
from mellowmax.environments import gymnasium as of_gymnasium
from mellowmax.planning import batch

WRONG = {
    "None": None,
    "text": "text",
    "object": object(),
    "texts": ["a", "b"],
    "complex": np.array([1j, 2j]),
    "nan": float("nan"),
    "huge": 10**400,
    "empty": np.zeros(0),
    "0-d": np.array(0.5),
    "dict": {"a": 1},
    "function": lambda *_: None,
    "class": mm.Mellowmax,
    "ragged": [[1.0], [1.0, 2.0]],
}
if torch:
    WRONG["tensor"] = torch.tensor(0.5)

NUMBERS, CALLABLE = {"0-d", "tensor", "empty"}, {"function", "class"}
FINE = {
    "beta omega eta epsilon final learning_rate discount target initial uniform": NUMBERS,
    "dqn.munchausen": NUMBERS,
    "ppo.trace ppo.clip ppo.value_clip ppo.entropy ppo.value": NUMBERS,
    "sac.temperature sac.entropy_target sac.averaging": NUMBERS,
    "penalty prior": {"0-d", "tensor"},
    "callback environment family make pilot report transition": CALLABLE,
    "sarsa.softmax expected_sarsa.softmax q_learning.softmax": {"function"},
    "sarsa.learning_rate expected_sarsa.learning_rate q_learning.learning_rate": NUMBERS | CALLABLE,
    "checkpoint directory name out path text title version": {"text"},
    "linear.start linear.end linear.updates": NUMBERS,
    "dqn.network load_policy.network ppo.network reinforce.network sac.network": CALLABLE,
    "blocks entries finished items names states values": {"empty"},
    "Linear.names": {"dict"},
    "missing": {"empty", "texts", "dict"},
    "action_labels players state_labels": {"texts"},
    "key seed": {"huge"},
}
"""Which of these may be right for arguments of these names: a parameter may be an array, and what a
caller's own function does is its own affair."""
RIGHT = {name: kinds for names, kinds in FINE.items() for name in names.split()}
Q = [[0.0, 1.0, 2.0], [0.5, -1.0, 0.0]]
POLICY = np.array([[0.2, 0.8], [0.5, 0.5]])
DISCOUNT = {"discount": 0.9}
SOFTMAX = mm.Mellowmax(5.0)
ANYTHING = object()
LIKE_BRAX = types.SimpleNamespace(action_size=1)


def of_arrays():
    for name in mm.__all__:
        function = getattr(mm, name)
        if inspect.isfunction(function) and name not in ("choose", "sample", "entropy", "kl"):
            required = [one.name for one in parameters(function) if one.default is one.empty]
            yield function, dict.fromkeys(required, 0.5) | {"q": Q}
    yield mm.entropy, {"policy": POLICY}
    yield mm.kl, {"policy": POLICY, "prior": POLICY}
    yield mm.sample, {"key": 0, "policy": POLICY}
    yield mm.choose, {"policy": POLICY, "uniform": np.array([0.3, 0.6])}


def of_softmaxes():
    for kind in (*mm.SOFTMAXES.values(), *mm.OTHERS.values()):
        given = {one.name: 0.5 for one in parameters(kind) if one.default is one.empty}
        pair = kind(**given)
        yield kind, given
        for method in (pair.value, pair.policy, pair.log_policy, pair.gradient):
            yield method, {"q": Q}
        yield pair.sample, {"key": 0, "q": Q}
        yield pair.gap, {"n_actions": 3}
        yield pair.curvature, {"width": 1.0}
    yield properties.probe, {"softmax": SOFTMAX}


def of_mdps():
    p, r = np.full((2, 2, 2), 0.5), np.ones((2, 2))
    dense = {"transitions": p, "rewards": r, **DISCOUNT}
    pairs = {"states": np.array([0, 0, 1]), "actions": np.array([0, 1, 0])}
    size = {"n_states": 2, "n_actions": 2}
    yield mdp.MDP, {"successors": None, "probabilities": p, "rewards": r, **DISCOUNT}
    yield mdp.MDP.from_arrays, dense
    yield mdp.MDP.from_sparse, {**dense, "transitions": [p[0], p[1]]}
    of_pairs = {"successors": np.array([1, 1, 0]), "probabilities": np.ones(3)}
    yield mdp.MDP.from_coo, {**pairs, **of_pairs, "rewards": np.ones(3), **DISCOUNT}
    yield mdp.MDP.from_mdptoolbox, dense
    rows = {"rewards": np.ones(3), "transitions": p[[0, 0, 1], 0]}
    yield mdp.MDP.from_state_actions, {**rows, **DISCOUNT, **pairs}
    yield mdp.MDP.from_gymnasium, {"environment": "FrozenLake-v1", **DISCOUNT}
    yield mdp.MDP.from_function, {"transition": lambda s, a: [(1.0, 0, 1.0)], **size, **DISCOUNT}
    yield mdp.two_state().save, {"path": "file.npz"}
    yield mdp.MDP.load, {"path": "file.npz"}
    yield mdp.chain, {"n_states": 3}
    yield mdp.garnet, {**size, "branching": 1, "seed": 0}
    yield mdp.grid_world, {"layout": (2, 2)}
    yield mdp.multi_passenger_taxi, {}
    yield mdp.random_mdp, {"seed": 0}
    yield mdp.two_state, {}


def of_planning():
    model = mdp.two_state()
    pair = {"mdp": model, "softmax": SOFTMAX}
    yield planning.solve, pair
    yield planning.solve, {**pair, "horizon": 2}
    yield planning.solve, {"mdp": mdp.chain(2), "softmax": SOFTMAX, "average": True}
    yield planning.evaluate, {"policy": POLICY, "mdp": model}
    yield planning.simulate, {"policy": POLICY, "mdp": model, "steps": 2}
    yield planning.suboptimality, {"softmax": SOFTMAX, "n_actions": 2, **DISCOUNT}
    yield planning.fixed_points, pair
    yield planning.trace_fixed_points, {"mdp": model, "family": mm.Boltzmann, "parameters": [1, 2]}
    yield (
        planning.vector_field,
        {**pair, "ranges": ((0.0, 1.0), (0.0, 1.0)), "at": np.zeros((2, 2))},
    )
    yield batch.Batch.of, {"mdps": [model]}
    several = {"batch": batch.Batch.of([model]), "softmax": SOFTMAX}
    yield batch.find_fixed_points, several
    yield batch.fixed_point, several
    yield planning.fixed_point, {"model": model, "softmax": SOFTMAX}
    yield batch.value_iteration, several


def of_games():
    game = games.Game.zero_sum(np.eye(2))
    payoffs = np.ones((2, 3, 2, 2))
    yield games.Game, {"payoffs": [np.eye(2), np.eye(2)]}
    yield games.Game.symmetric, {"payoffs": np.eye(2)}
    yield games.Game.zero_sum, {"payoffs": np.eye(2)}
    yield games.Game.load, {"path": "file.nfg"}
    yield game.save, {"path": "file.nfg"}
    yield game.action_values, {"profile": POLICY}
    yield games.trace, {"game": game, "family": mm.Boltzmann, "parameters": [0.0, 1.0]}
    yield games.equilibria, {"game": game, "softmax": SOFTMAX}
    yield games.level_k, {"game": game, "softmax": SOFTMAX}
    yield games.fit, {"games": game, "counts": [[1, 2], [3, 4]], "family": mm.Boltzmann}
    yield games.batch.principal, {"payoffs": payoffs, "softmax": SOFTMAX}


def of_environments():
    yield acrobot.params, {}
    yield cartpole.params, {}
    yield mountain_car.params, {}
    yield lunar_lander.params, {}
    yield tabular.params, {"mdp": mdp.two_state()}
    yield tabular.cumulative, {"probabilities": POLICY}
    yield taxi.params, {}
    yield two_state.params, {}
    yield gymnax.functional, {"env": None, "params": ANYTHING}
    for package in (jumanji, navix, pgx):
        yield package.functional, {"env": None}
    yield brax.functional, {"env": LIKE_BRAX, "actions": [[1.0]]}
    yield of_gymnasium.TabularEnv, {"mdp": mdp.two_state()}
    yield of_gymnasium.MultiPassengerTaxi, {}
    yield of_gymnasium.TwoState, {}
    yield of_gymnasium.Height2016, {"env": of_gymnasium.TwoState()}
    yield fleet.Fleet, {"environment": "CartPole-v1", "num_envs": 1}
    yield fleet.make_flat, {"environment": "CartPole-v1"}
    yield fleet.make_discrete, {"environment": "CartPole-v1"}


def of_learning():
    for make in (learning.sarsa, learning.expected_sarsa, learning.q_learning):
        yield make, {"softmax": SOFTMAX}
    environment = {"environment": mdp.two_state()}
    yield learning.train, {"learner": learning.sarsa(SOFTMAX), **environment, "steps": 1}
    yield learning.evaluate, {"policy": POLICY, **environment}


def of_deep():
    network = deep.Network.init(jax.random.key(0), (6, 4, 3))
    environment = {"environment": acrobot.params()}
    played = {"policy": deep.Policy(network, SOFTMAX), **environment}
    yield deep.reinforce, {"softmax": SOFTMAX}
    yield deep.dqn, {"softmax": SOFTMAX}
    yield deep.ppo, {"softmax": SOFTMAX}
    yield deep.sac, {"softmax": SOFTMAX}
    yield deep.mlp, {}
    yield deep.linear, {"start": 0.5, "end": 0.1, "updates": 10}
    yield deep.train, {"learner": deep.reinforce(SOFTMAX), **environment, "episodes": 10}
    yield deep.evaluate, played
    yield deep.watch, {**played, "environment": "Acrobot-v1"}
    yield deep.load_policy, {"checkpoint": "file.npz"}
    yield deep.Policy, {"network": network, "softmax": SOFTMAX}
    yield deep.HeldTemperature, {"omega": 1.0}
    yield deep.Network, {"layers": network.layers}
    yield deep.Network.init, {"key": jax.random.key(0), "sizes": (2, 2)}
    yield deep.FunctionalEnvironment, {"functions": acrobot, "params": acrobot.params()}
    yield deep.GymnasiumEnvironment, {"environment": "CartPole-v1"}
    yield deep.VectorEnvironment, {"make": lambda count: None}


def of_experiments():
    made = experiments.plan(["fig2"], "quick", "out")[0]
    yield experiments.load, {"name": "fig2"}
    yield experiments.plan, {"names": ["fig2"], "scale": "quick", "out": "out"}
    yield experiments.run, {"plan": made, "callback": lambda progress: True}
    yield experiments.assemble, {"plan": made, "out": "out"}
    yield experiments.reproduce, {"items": ["fig2"], "scale": "quick", "out": "out"}
    yield experiments.assemble_all, {"directory": "out"}
    yield report.write, {"finished": [], "out": "out"}
    for write in (report.write_page, report.write_markdown):
        yield write, {"path": "file", "entries": [], "version": "1"}
    yield explorer.PageServer, {"text": ""}
    yield explorer.landing, {"pilot": lambda seen: 0, "title": "t", "max_steps": 1}
    yield explorer.model, {"mdp": mdp.two_state(), "name": "n"}
    yield explorer.page, {}
    yield explorer.write_page, {"path": "file"}
    if torch:
        yield importlib.import_module("mellowmax.torch").SoftmaxLayer, {"softmax": SOFTMAX}


def of_inverse():
    yield inverse.Demonstrations.from_arrays, {"states": [0, 1], "actions": [1, 0]}
    yield inverse.Demonstrations.from_counts, {"counts": [[1, 2]]}
    yield inverse.Linear, {"features": np.ones((3, 2, 1))}
    yield inverse.Table, {}
    yield inverse.Demonstrator, {"plans": SOFTMAX, "acts": SOFTMAX}
    yield inverse.zurcher, {}
    world, seen = mdp.two_state(), inverse.Demonstrations.from_counts([[3, 9], [0, 0]])
    yield inverse.Demonstrations.from_episodes, {"episodes": [[(0, 1)]]}
    yield seen.counts, {"mdp": world}
    reward = inverse.Linear([[[0.0], [1.0]], [[0.0], [0.0]]])
    of_demonstrator = {
        "mdp": world,
        "demonstrations": seen,
        "reward": reward,
        "demonstrator": SOFTMAX,
    }
    yield inverse.fit, of_demonstrator
    counts = [[[3, 9], [0, 0]]]
    told = {"mdp": world, "counts": counts, "reward": reward, "demonstrator": SOFTMAX}
    yield inverse.fit_each, told
    yield inverse.log_likelihood, {"parameters": [0.5], **of_demonstrator}
    if importlib.util.find_spec("blackjax"):
        yield inverse.sample, {**of_demonstrator, "prior": 1.0}


FAMILIES = (
    of_arrays,
    of_softmaxes,
    of_mdps,
    of_planning,
    of_games,
    of_environments,
    of_learning,
    of_deep,
    of_experiments,
    of_inverse,
)


def parameters(function):
    every = inspect.signature(function).parameters.values()
    return [one for one in every if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def problems(function, given):
    """What was let through, and what was raised that is no sentence about the argument."""
    defaults = {one.name: one.default for one in parameters(function)}
    right = defaults | given
    for name, value in right.items():
        if value is ANYTHING or isinstance(defaults[name], bool):  # a flag is true or false
            continue
        fine = RIGHT.get(f"{function.__name__}.{name}", RIGHT.get(name, set()))
        fine = fine | {"None"} if value is None or defaults[name] is None else fine
        for kind in WRONG.keys() - fine:
            said = complaint(function, right | {name: WRONG[kind]})
            if f"`{name}`" not in said or "\n" in said:
                yield f"{function.__qualname__}({name}={kind}): {said}"


def complaint(function, arguments):
    positional = [one.name for one in parameters(function) if one.kind == one.POSITIONAL_ONLY]
    assert not positional, positional
    try:
        result = function(**arguments)
    except (TypeError, ValueError) as error:
        return str(error)
    except Exception as error:
        return f"raised {error!r}".replace("`", "'")
    return f"gave {type(result).__name__}"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_kind_is_one_sentence_about_the_argument(family, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [one for function, given in family() for one in problems(function, given)]
    assert not found, "\n".join(found)
    assert not any(tmp_path.iterdir())


RESULTS = """
BraxEnvironment JumanjiEnvironment NavixEnvironment PgxEnvironment AverageSolution BatchEquilibria
BatchFixedPoints Branch CellProgress Claim DeepResult Dqn DqnState Entry Episodes Equilibria
Equilibrium Estimate Estimates EvaluateProgress Evaluation Finding Finished FiniteHorizonSolution
Fit FitProgress FixedPoint FixedPoints Fold GymnaxEnvironment Linear HumanPlay Learner Model
Params Plan PlayedGame Point Posterior Ppo PpoState Properties Reinforce ReinforceState Replay Sac
SacState SavedPolicy Sensitivity Simulation Solution SolveProgress TabularResult Trace Trainable
TrainProgress VectorField Verdict Zurcher
"""
"""Classes whose objects are made here, and only read by a caller."""
TRACED = {"launch", "legal", "move", "named", "observe", "reset", "start", "step"}
"""Functions of an environment that are compiled: what they are given has no value yet."""
NO_ARGUMENTS = {"exhibits", "human_play", "main", "taxi"}


def is_record(one):
    is_kind = inspect.isclass(one) and issubclass(one, tuple | enum.Enum | Exception)
    return is_kind or getattr(one, "_is_protocol", False) or inspect.isabstract(one)


def test_no_public_callable_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    called = [function for family in FAMILIES for function, _ in family()]
    classes = [getattr(one, "__self__", None) for one in called]
    tried = {*called, *(one if inspect.isclass(one) else type(one) for one in classes)}
    page = (Path(__file__).parent.parent / "docs" / "reference.md").read_text()
    modules = set(re.findall(r"^`(mellowmax[.\w]*)`$", page, re.MULTILINE))
    if not torch:
        modules.remove("mellowmax.torch")
    for path in modules:
        module = importlib.import_module(path)
        for name in set(module.__all__) - {*RESULTS.split()} - TRACED - NO_ARGUMENTS:
            one = getattr(module, name)
            is_callable = inspect.isclass(one) or inspect.isfunction(one)
            assert not is_callable or is_record(one) or one in tried, f"{path}.{name}"
