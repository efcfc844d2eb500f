"""Equivalence classes of pods: pods that the scheduler cannot tell apart are planned together."""
