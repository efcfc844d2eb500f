"""Scheduling predicates over whole classes of pods and arrays of nodes."""
