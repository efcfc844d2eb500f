"""Knapsacks: LP relaxation with rounding, branch and bound, item values."""
