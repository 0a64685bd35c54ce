"""The figures and tables of the paper, one module each."""
