"""Many landers at once: in blocks on a CPU, in kernels on a GPU.

`batch` is what the environment calls. `kernels` runs the parts of a step as kernels.
"""
