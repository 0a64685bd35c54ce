"""The game: everything that Gymnasium's `lunar_lander.py` adds to Box2D.

`bodies` and `terrain` say what there is, `initial_state` how an episode begins, `engines` which
impulses come before a step, and `reward` what is observed and earned after it.
"""
