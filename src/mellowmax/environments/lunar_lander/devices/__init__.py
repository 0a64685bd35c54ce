"""Many landers at once: in blocks on a CPU, in kernels on a GPU.

`batch` is what the environment calls. `rows` holds the numbers of landers in one array, `kernels`
runs the parts of a step on such rows, and `partition` finds the landers that need them.
"""
