"""Decisions of one reconcile: desired counts, base and group steps, cooldowns."""
