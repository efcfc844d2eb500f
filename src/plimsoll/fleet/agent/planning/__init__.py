"""Decisions of the agent, without I/O: what the list means, who gets units, which objects an instance has."""
