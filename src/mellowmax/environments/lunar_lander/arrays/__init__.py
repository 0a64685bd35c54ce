"""What the physics is written with, so that one source serves a CPU and a GPU kernel.

`vectors` are vectors, rotations and choices made of plain arrays, one number for each lander.
`materialise` keeps XLA on a CPU from computing intermediate results again. `legs` treats both legs
of a lander alike.
"""
