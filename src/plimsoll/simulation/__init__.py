"""Scenarios: a file describes a cluster and steps, virtual time runs them, and the outcome is always the same.

`files` reads a scenario, `worlds` builds what it describes, `runner` takes the steps, `worlds.outcome` reads the
outcome and `expectations` compares it. docs/scenarios.md is the reference of the format.
"""
