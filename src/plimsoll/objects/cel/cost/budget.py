"""How much evaluation may cost: counted in steps, never in seconds, so that the answer is the same everywhere."""

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
        """A new evaluation begins: it may spend `per_call`, but no more than what is left in total."""
        self._call_left = min(self.per_call, self.remaining)

    def spend(self, cost: int) -> None:
        """Take `cost` from the budget; raises CelBudgetExceeded if there is not that much left."""
        self._call_left -= cost
        self.remaining -= cost
        if self._call_left < 0:
            raise CelBudgetExceeded("operation cancelled: actual cost limit exceeded")
