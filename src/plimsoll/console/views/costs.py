"""`/api/costs`: cost and bound over time, by node group, and what the last removals saved."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import DONE_RESULTS
from plimsoll.journal.entries import Query
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.console.costs.history import CostHistory, CostSample
    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.journal.entries import Entry

MOST_POINTS: Final = 300
_MOST_GROUPS: Final = 12
_ENTRIES_READ: Final = 200
_SHOWN_REMOVALS: Final = 30
_REMOVE: Final = "remove"
OTHERS: Final = "other groups"


class CostView:
    """Reads the samples and the journal."""

    def __init__(self, history: CostHistory, source: DecisionSource) -> None:
        self._history = history
        self._source = source

    async def show_costs(self, _request: Request) -> Response:
        points = choose_points(list(self._history.samples), MOST_POINTS)
        removals = await self._list_removals()
        known = [removal["saved"] for removal in removals if removal["saved"] is not None]
        return build_json_response(
            {
                "at": [sample.at for sample in points],
                "cost": [round(sample.cost, 6) for sample in points],
                "bound": [round(sample.bound, 6) for sample in points],
                "groups": build_group_columns(points),
                "estimatedNodes": self._history.estimated,
                "removals": removals,
                "savedPerHour": round(sum(known), 6),
            }
        )

    async def _list_removals(self) -> list[dict[str, Any]]:
        """The last nodes that were removed, newest first, each with the price that is saved."""
        entries = await self._source.list_entries(Query(subsystem="nodes", limit=_ENTRIES_READ))
        return list(islice(self._iterate_removals(entries), _SHOWN_REMOVALS))

    def _iterate_removals(self, entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
        for entry in entries:
            for outcome in entry.outcomes:
                action = outcome.action
                if action.verb != _REMOVE or outcome.result not in DONE_RESULTS:
                    continue
                price = self._history.node_prices.get(action.target.name)
                yield {
                    "at": entry.at,
                    "entry": entry.number,
                    "ref": str(action.target),
                    "group": action.arguments.get("group", ""),
                    "saved": None if price is None else round(price, 6),
                    "reason": str(action.reason),
                }


def choose_points(samples: list[CostSample], most: int) -> list[CostSample]:
    """At most so many, evenly spread, with the first and the last."""
    if len(samples) <= most:
        return samples
    step = (len(samples) - 1) / (most - 1)
    return [samples[round(number * step)] for number in range(most)]


def build_group_columns(points: Sequence[CostSample]) -> dict[str, list[float]]:
    """Cost by group at each point: the most expensive groups by name, all others together."""
    totals: dict[str, float] = {}
    for sample in points:
        for group, cost in sample.groups.items():
            totals[group] = totals.get(group, 0.0) + cost
    named = sorted(totals, key=lambda group: (-totals[group], group))[:_MOST_GROUPS]
    columns = {
        group or "without a group": [round(sample.groups.get(group, 0.0), 6) for sample in points] for group in named
    }
    if len(totals) > len(named):
        columns[OTHERS] = [
            round(sum(cost for group, cost in sample.groups.items() if group not in named), 6) for sample in points
        ]
    return columns
