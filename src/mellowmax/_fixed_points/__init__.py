"""Fixed points of any map of vectors: found, told apart, and followed through a parameter.

`planning` uses it for the sweeps of an MDP, `games` for the responses of players.
"""
