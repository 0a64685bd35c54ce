"""What the operators and policies are made of: functions of independent rows of action values.

From a caller's array to the result: `arguments` makes rows `[rows, actions]` of it, a `RowFunction`
(`row_function`) works through them as the array library does it best, and its kernel has the
formula. Kernels are in `values` (the operators), `distributions` (the policies), `temperature`
(that of mellowmax's policy) and `one_pass` (mellowmax on an accelerator); all but the last are
formulas in the gaps between each action value and the best one (`gaps`).

A small batch of rows without extremes goes a shorter way: `small` knows it, and `ordinary` has the
same formulas in few operations.

`libraries` has what each array library does in its own way, `torch_compiler` what PyTorch compiles,
`in_kernel` what is other within a kernel for a GPU. `pytrees` makes dataclasses that JAX sees
through; `on_import` waits for a library to be imported.
"""
