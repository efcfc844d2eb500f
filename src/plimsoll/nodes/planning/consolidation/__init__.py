"""Consolidation: which nodes to replace by cheaper ones or to remove, within disruption budgets."""
