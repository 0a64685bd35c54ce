"""The methods of `solve`."""
