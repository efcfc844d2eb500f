"""Exact answers for small problems by mixed-integer programming."""
