"""Quantal response equilibria against Gambit's, in one run: processor time a game, and agreement.

`make bench` runs it. Gambit runs in an environment of its own, made on the first run in
`build/bench`, on the same games. Nothing here is compiled. Where a profile differs from Gambit's by
more than 1e-7, a line says why.
"""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from venvs import python_of

from mellowmax import Boltzmann, Mellowmax
from mellowmax.games import Game, batch, trace

PEER = ("pygambit", ["pygambit==17.0.0b2"])
SCRIPT = Path(__file__).parent / "peers" / "pygambit_solve.py"
GAMES = 2000
APART = 1e-7
OCHS = np.array([[[1.1141, 0], [0, 0.2785]], [[0, 1.1141], [1.1141, 0]]])[:, None]


def gambit(payoffs, parameters, *, repeats=1, branch=False):
    """What Gambit takes for a game, its profiles, and the parameters it has reached."""
    with tempfile.TemporaryDirectory() as directory:
        task, out = (Path(directory) / name for name in ("task.npz", "out.npz"))
        np.savez(task, payoffs=payoffs, parameters=parameters, repeats=repeats, branch=branch)
        command = [python_of(*PEER), SCRIPT, task, out]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = np.load(out)
        seconds = json.loads(done.stdout.splitlines()[-1])["seconds"]
        return seconds, found["profiles"], found["reached"]


def taken(call, repeats=1):
    """The processor time of a call, after a first one."""
    call()
    began = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - began) / repeats


def batches():
    """Thousands of random games, payoffs uniform on (0, 1)."""
    print(f"\nBatches of {GAMES:,} games: microseconds a game")
    print("game   lambda   Gambit   logit  times faster  mellowmax  times logit  differ  largest")
    for size, goal in ((2, None), (3, 5.0), (5, None)):
        for beta in (10.0, 100.0):
            payoffs = np.random.default_rng(size).random((2, GAMES, size, size))
            theirs, profiles, _ = gambit(payoffs, [beta])
            ours = taken(lambda p=payoffs, b=beta: batch.principal(p, Boltzmann(b))) / GAMES
            mellow = taken(lambda p=payoffs, b=beta: batch.principal(p, Mellowmax(b))) / GAMES
            found = batch.principal(payoffs, Boltzmann(beta))
            apart = abs(np.concatenate(found.profile, axis=1) - profiles).max(1)
            differ, lines = differences(payoffs, beta, profiles, apart)
            verdict = "" if goal is None else f" (goal {goal:g})"
            print(
                f"{size} x {size}  {beta:6g}  {1e6 * theirs:7.0f} {1e6 * ours:7.0f}  "
                f"{f'{theirs / ours:.1f}{verdict}':<12}  {1e6 * mellow:9.0f}  "
                f"{f'{mellow / ours:.1f} (goal 4)':<11}  {differ:6d}  {apart.max():.1e}"
            )
            print(*lines, sep="\n", end="\n" if lines else "")


def differences(payoffs, beta, profiles, apart):
    """How many differ, and why, a line for each.

    Gambit's profile is either that of another parameter or rounded, so that Newton's method leads
    from it to ours, or a later one of the same branch, or it has no such reason.
    """
    lines = []
    for k in np.flatnonzero(apart > APART):
        game, why = Game(payoffs[:, k]), "without a reason"
        branch = trace(game, Boltzmann, [0.0, 1.5 * beta], step=0.05)
        first, *later = (np.concatenate(point.profile) for point in branch.at(beta))
        if abs(first - profiles[k]).max() < 1e-5:
            why = f"rounding: {residual(game, beta, profiles[k]):.0e} in Gambit's profile"
        elif any(abs(one - profiles[k]).max() < 1e-4 for one in later):
            why = "Gambit has passed the fold after the first equilibrium, and gives a later one"
        lines.append(f"  game {k} differs by {apart[k]:.1e}: {why}")
    return len(lines), lines


def residual(game, beta, profile):
    """How far a profile is from the response to it."""
    parts = np.split(profile, [game.shape[0]])
    answers = [Boltzmann(beta).policy(values) for values in game.action_values(parts)]
    return abs(np.concatenate(answers) - profile).max()


def single():
    """One game at a time."""
    print("\nOne game: milliseconds")
    print("task                               Gambit    ours  ours over Gambit (goal 3)")
    game = Game(OCHS[:, 0])
    points = [1.0, 2.0, 3.0]
    theirs, _, _ = gambit(OCHS, points, repeats=200)
    ours = taken(lambda: trace(game, Boltzmann, [0.0, 3.0]).at(points), 200)
    line("Ochs, three values of lambda", theirs, ours)
    theirs, _, reached = gambit(OCHS, [1.0], repeats=50, branch=True)
    ours = taken(lambda: trace(game, Boltzmann, [0.0, float(reached[0])]), 50)
    line(f"Ochs, branch to lambda {reached[0]:.1e}", theirs, ours)
    for size in (3, 5):
        for beta in (10.0, 100.0):
            payoffs = np.random.default_rng(size).random((2, 100, size, size))
            theirs, _, _ = gambit(payoffs, [beta])
            games = [Game(payoffs[:, k]) for k in range(100)]

            def one_by_one(games=games, beta=beta):
                for game in games:
                    trace(game, Boltzmann, [0.0, beta]).at(beta)

            line(f"random {size} x {size}, lambda {beta:g}", theirs, taken(one_by_one) / 100)


def line(task, theirs, ours):
    """One line of the table."""
    print(f"{task:33s} {1e3 * theirs:7.2f} {1e3 * ours:7.2f}  {ours / theirs:.1f}")


if __name__ == "__main__":
    print(f"{platform.processor() or platform.machine()}, NumPy {np.__version__}, {PEER[1][0]}")
    batches()
    single()
