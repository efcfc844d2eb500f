"""A counted limit of work. Equal input spends it equally, on any machine."""

from __future__ import annotations


class Budget:
    """How many candidates may be tried, and how many were."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def spend(self, candidates: int = 1) -> bool:
        """Count candidates; False: the budget is used up."""
        self.used += candidates
        return self.used <= self.limit

    @property
    def is_spent(self) -> bool:
        return self.used >= self.limit
