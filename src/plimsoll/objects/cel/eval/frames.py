"""The frame a compiled expression runs in: variables, the folds' own variables, and the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plimsoll.objects.cel.errors import CelEvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.cel.cost.budget import CostBudget
    from plimsoll.objects.cel.values.views import Adapt


class Frame:
    """One evaluation: the variables (adapted when first read), the folds' variables, and the budget."""

    __slots__ = ("_adapters", "_given", "_values", "charge", "local")

    def __init__(
        self,
        given: Mapping[str, object],
        *,
        adapters: Mapping[str, Adapt | None],
        budget: CostBudget,
        locals_needed: int,
    ) -> None:
        self._given = given
        self._adapters = adapters
        self._values: dict[str, object] = {}
        self.charge = budget.spend
        self.local: list[object] = [None] * locals_needed

    def get_variable(self, name: str) -> object:
        try:
            return self._values[name]
        except KeyError:
            pass
        if name not in self._given:
            raise CelEvaluationError(f"no such attribute(s): {name}")
        adapt = self._adapters[name]
        value = self._values[name] = self._given[name] if adapt is None else adapt(self._given[name])
        return value


Run = Callable[[Frame], object]


class Failed:
    """The error of a comprehension so far, stored as its value, because a later element may still decide the result."""

    __slots__ = ("error",)

    def __init__(self, error: CelEvaluationError) -> None:
        self.error = error
