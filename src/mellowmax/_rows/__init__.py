"""What operators and policies are made of: functions of independent rows of values.

From a caller's array to the result: `arguments` checks what was passed, `rows` makes rows
`[rows, actions]` of it, a `RowFunction` (`row_function`) works through them in the way that suits
the array library, and its formula says what is computed. Formulas are in `formulas`: `values` (the
operators), `distributions` (the policies) and `temperature` (that of mellowmax's policy). All of
them are functions of the gaps between each action value and the best one: `gaps`, or in units of
the row `unit_row`. For the temperature, `relative_temperature` states the equation and its cases,
`root` searches, and `temperature_gradients` has the derivatives.

A call goes one of nine ways, each of which exists for a reason that was measured:

| caller | way | why |
| --- | --- | --- |
| NumPy, one parameter, no extremes | `quick.host_arrays`, `quick.formulas` | few operations |
| NumPy, other rows | `RowFunction._numpy` | chunks whose temporaries stay in the cache |
| PyTorch, eager, on a CPU | the same two of `quick` | NumPy's calls are shorter than PyTorch's |
| PyTorch, eager, other tensors | `RowFunction._torch` | GPUs, extremes, all derivatives |
| PyTorch, compiled | `libraries.torch_compiler` | one graph, so a number of steps that is fixed |
| JAX on a CPU | `RowFunction._jax` | chunks, each with the quick branch where no row is extreme |
| JAX on an accelerator | `RowFunction._jax`, `quick.one_pass` | all rows at once, one reduction |
| inside a kernel for a GPU | `libraries.pallas` | the rows are cut into blocks already |
| any other library | the formula itself | the Array API standard alone |

`host_arrays` returns None for rows that its formulas do not get right, and the call takes the next
way. `libraries` has what each array library does in its own way: `array_api` what the standard
lacks, `tracing` whether numbers are there, `pallas` what differs inside a kernel for a GPU.
"""
