"""Logit equilibria by Gambit: `TASK.npz OUT.npz`, a line of JSON.

The file has `payoffs`, `[players, games, ...]`, and the `parameters` at which each game is solved.
With `branch`, the whole branch of the first game is followed to its end instead.
"""

import json
import sys
import time

import numpy as np
import pygambit

task = np.load(sys.argv[1])
parameters, repeats = task["parameters"].tolist(), int(task["repeats"])
games = [pygambit.StrategicGame.from_arrays(*own) for own in np.swapaxes(task["payoffs"], 0, 1)]
if task["branch"]:

    def solve(game):
        return pygambit.qre.logit_solve_branch(game)
else:

    def solve(game):
        return pygambit.qre.logit_solve_lambda(game, parameters)


solve(games[0])
began = time.process_time()
for _ in range(repeats):
    found = [solve(game) for game in games]
seconds = (time.process_time() - began) / repeats
last = [points[-1] for points in found]
profiles = [
    [
        float(point.profile[player][s])
        for player in game.players
        for s in game.get_strategies(player)
    ]
    for game, point in zip(games, last, strict=True)
]
np.savez(sys.argv[2], profiles=np.array(profiles), reached=np.array([point.lam for point in last]))
print(json.dumps({"seconds": seconds / len(games)}))
