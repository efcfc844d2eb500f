"""Optimisation on plain numbers: bin packing, knapsacks, column generation, bounds. `pack.pack` is the entry point.

`problem` defines the terms; `kernels` says how the hot loops run.
"""
