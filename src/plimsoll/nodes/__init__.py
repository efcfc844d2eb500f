"""Nodes in a cluster: which machines to add or remove, and which groups of them to make, within limits.

`planning/` decides and is pure; the rest observes, acts and reports.
"""
