"""The operators, the policies and the inverse temperature as formulas in the gaps of a row."""
