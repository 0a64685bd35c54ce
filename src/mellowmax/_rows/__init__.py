"""What the operators and policies are made of: functions of independent rows of action values.

From a caller's array to the result: `arguments` makes rows `[rows, actions]` of it, a `RowFunction`
(`row_function`) works through them in the way that suits the array library, and its kernel has the
formula. Kernels are in `values` (the operators), `distributions` (the policies), `temperature`
(that of mellowmax's policy) and `one_pass` (mellowmax on an accelerator); all but the last are
formulas in the gaps between each action value and the best one (`gaps`).

A call goes one of nine ways, each of which exists for a reason that was measured:

| caller | way | why |
| --- | --- | --- |
| NumPy, small batch | `small`, `ordinary` | calls take longer than the numbers, so few calls |
| NumPy, other batches | `RowFunction._numpy` | chunks whose temporaries stay in the cache |
| PyTorch, eager, on a CPU | `small`, `ordinary` | NumPy's calls take a fraction of PyTorch's |
| PyTorch, eager, other tensors | `RowFunction._torch` | GPUs, extremes, all derivatives |
| PyTorch, compiled | `torch_compiler` | one graph, so a number of steps that is fixed |
| JAX on a CPU | `RowFunction._jax` | chunks, each with the quick branch where no row is extreme |
| JAX on an accelerator | `RowFunction._jax`, `one_pass` | all rows at once, one reduction |
| inside a kernel for a GPU | `in_kernel` | the rows are cut into blocks already |
| any other library | the kernel itself | the Array API standard alone |

`small` returns None for rows that its formulas do not get right, and the call takes the next way.
`libraries` has what each array library does in its own way, and `in_kernel` what differs inside a
kernel for a GPU. `pytrees` makes dataclasses that JAX sees through; `on_import` waits for a library
to be imported.
"""
