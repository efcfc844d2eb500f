"""Decisions of the fleet manager, pure: capacity, scale-up, scale-down, placement, and what agents report."""
