"""Equivalence of pending pods: scheduling keys, volume keys and pod classes."""
