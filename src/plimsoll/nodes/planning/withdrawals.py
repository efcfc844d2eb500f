"""A plan without some of the ProvisioningRequests it was made for: what is left of it. Pure.

Whoever is withdrawn gets nothing, and nodes that were for nobody else are not added. The places of everybody else stay
as they are: nothing is planned anew (that is `repacking`). Used where a request turns out not to be servable after its
plan was made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.results import Growth, Pattern, Remaining, Result, ScaleUp

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.planning.world import Pending


def without_requests(plan: ScaleUp, withdrawn: Collection[str], *, pending: Sequence[Pending], why: Reason) -> ScaleUp:
    """`withdrawn` are bundles of `pending`."""
    gone = {one.key: one.count for one in pending if one.bundle and one.bundle in withdrawn}
    had = {key: count for key, count in gone.items() if not any(key in one.keys for one in plan.remaining)}
    if not had:
        return plan
    growths = tuple(kept for one in plan.growths if (kept := growth_without(one, had.keys())) is not None)
    existing = {node: _but(pods, had.keys()) for node, pods in plan.existing.items()}
    cost = round(sum(one.added * one.offer.price_per_hour for one in growths), 9)
    part = cost / plan.cost_per_hour if plan.cost_per_hour else 0.0
    return replace(
        plan,
        result=Result.NEEDED if growths else Result.NO_OPTIONS,
        growths=growths,
        existing={node: pods for node, pods in existing.items() if pods},
        helped=plan.helped - sum(had.values()),
        remaining=(*plan.remaining, Remaining(pods=sum(had.values()), keys=had, reasons=(why,))),
        cost_per_hour=cost,
        lower_bound_per_hour=round(plan.lower_bound_per_hour * part, 9),
    )


def growth_without(growth: Growth, keys: Collection[str]) -> Growth | None:
    """None: nobody else wants anything of it. A group that grows to its maximum or not at all stays whole."""
    patterns: list[Pattern] = []
    for one in growth.patterns:
        pods = _but(one.pods, keys)
        if pods or not one.pods or growth.offer.zero_or_max:
            patterns.append(Pattern(nodes=one.nodes, pods=pods))
    if not any(one.pods for one in patterns):
        return None
    after = growth.before + sum(one.nodes for one in patterns)
    return replace(growth, patterns=tuple(patterns), after=after)


def _but(pods: Mapping[str, int], keys: Collection[str]) -> dict[str, int]:
    return {key: count for key, count in pods.items() if key not in keys}
