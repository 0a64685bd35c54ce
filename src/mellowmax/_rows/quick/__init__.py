"""Quicker ways to the same results: in main memory, and in one pass on an accelerator."""
