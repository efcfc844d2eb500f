"""The remaining disruptions that PodDisruptionBudgets allow, as numbers. Pure.

Drain rules, scale-down and consolidation count against one table. A budget whose selector cannot be parsed selects
every pod of its namespace and allows no disruption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.selectors import EVERYTHING
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PodDisruptionBudget
    from plimsoll.solver.problem import Ints


class RemainingPdbs:
    """Budgets in a total order (namespace, name), read once for many pods."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self.budgets = tuple(
            sorted(
                budgets,
                key=lambda disruption_budget: (disruption_budget.metadata.namespace, disruption_budget.metadata.name),
            )
        )
        self._by_namespace: dict[str, list[tuple[int, LabelSelector]]] = {}
        self.allowed: Ints = np.zeros(len(self.budgets), dtype=np.int64)
        """[B]: disruptions that are allowed now."""
        for index, budget in enumerate(self.budgets):
            selector, readable = _read_selector(budget)
            self.allowed[index] = max(budget.status.disruptions_allowed, 0) if readable else 0
            self._by_namespace.setdefault(budget.metadata.namespace, []).append((index, selector))

    def find_matching(self, pod: Pod) -> tuple[int, ...]:
        """Budgets that protect the pod."""
        known = self._by_namespace.get(pod.metadata.namespace, ())
        return tuple(index for index, selector in known if selector.matches(pod.metadata.labels))

    def get_name(self, index: int) -> str:
        meta = self.budgets[index].metadata
        return f"{meta.namespace}/{meta.name}"


def _read_selector(budget: PodDisruptionBudget) -> tuple[LabelSelector, bool]:
    try:
        return parse_label_selector(budget.spec.selector), True
    except InvalidSelector:
        return EVERYTHING, False
