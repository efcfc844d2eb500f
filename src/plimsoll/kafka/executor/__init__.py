"""Moves replicas: batches, throttles, elections, stop, and recovery after a crash.

`executor` holds the class that others use, `execution` one execution, `phases` a module per kind of movement. `record`
is what outlives the process.
"""
