"""Column generation: the master problem and the generator of columns."""
