"""The cost limit of an evaluation, in steps and not in seconds, so that the result is the same everywhere."""

from __future__ import annotations

from plimsoll.objects.cel.errors import CelBudgetExceeded

PER_CALL = 1_000_000
PER_OBJECT = 10_000_000


class CostBudget:
    """A counter shared by the rules of one object; `per_call` limits each evaluation, `total` all of them."""

    __slots__ = ("_call_left", "per_call", "remaining")

    def __init__(self, per_call: int = PER_CALL, total: int = PER_OBJECT) -> None:
        self.per_call = per_call
        self.remaining = total
        self._call_left = 0

    def start_call(self) -> None:
        """Start an evaluation. It may spend `per_call`, but not more than the rest of the total."""
        self._call_left = min(self.per_call, self.remaining)

    def spend(self, cost: int) -> None:
        """Take `cost` from the budget; raises CelBudgetExceeded if there is not that much left."""
        self._call_left -= cost
        self.remaining -= cost
        if self._call_left < 0:
            raise CelBudgetExceeded("operation cancelled: actual cost limit exceeded")
