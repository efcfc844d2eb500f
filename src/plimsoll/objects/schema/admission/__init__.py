"""Defaulting, pruning and validation of objects by a structural schema."""
