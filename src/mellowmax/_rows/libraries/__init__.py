"""What differs between array libraries: the standard's gaps, tracing, kernels and compilers."""
