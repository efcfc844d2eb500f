"""Faults that a test or a scenario injects into the simulated cloud, and the log of its calls."""
