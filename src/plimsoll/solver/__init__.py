"""Pure numbers in, numbers out: packing, knapsacks, column generation, bounds. `planner.pack` is where planning asks.

`problems` has the words; `kernels` says how the hot loops run.
"""
