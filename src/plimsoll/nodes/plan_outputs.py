"""Plans of growth as plain data: what `plimsoll plan -o json` prints, and an element of a scenario's `loops`.

The form is fixed by specs/formats/plan.md. Same plan, same bytes: keys stand in the order given here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from plimsoll.nodes.planning.offers import Offer
    from plimsoll.nodes.planning.results import Growth, Remaining, ScaleUp
    from plimsoll.objects.nodes import Taint

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"

Json = dict[str, Any]


def scale_up_json(plan: ScaleUp, *, plan_seconds: float | None = None) -> Json:
    found: Json = {"result": str(plan.result), "plan": [_growth(one) for one in plan.growths]}
    if plan.existing:
        found["existing"] = [{"node": name, "pods": dict(pods)} for name, pods in plan.existing.items()]
    found["helped"] = plan.helped
    found["remaining"] = [_remaining(one) for one in plan.remaining]
    found["costPerHour"] = float(plan.cost_per_hour)
    found["lowerBoundPerHour"] = float(plan.lower_bound_per_hour)
    if plan.label_sets:
        found["labelSets"] = [
            {"labels": dict(one.labels), "merged": [*map(dict, one.merged)], "served": [*map(dict, one.served)]}
            for one in plan.label_sets
        ]
    if plan.verification_failures:
        found["verificationFailures"] = plan.verification_failures
    if plan_seconds is not None:
        found["planSeconds"] = plan_seconds
    return found


def _growth(one: Growth) -> Json:
    entry: Json = {
        "group": one.offer.group,
        "machineType": machine_type_of(one.offer),
        "from": one.before,
        "to": one.after,
        "max": one.offer.max_size,
        "created": not one.offer.exists,
    }
    if one.offer.zone:
        entry["zone"] = one.offer.zone
    if one.offer.profile is not None:
        entry["labels"] = dict(one.offer.profile.labels)
        entry["taints"] = [_taint(taint) for taint in one.offer.node.spec.taints]
        entry["capacityType"] = str(one.offer.capacity_type)
        entry["reason"] = str(one.reason)
    entry["patterns"] = [{"nodes": pattern.nodes, "pods": dict(pattern.pods)} for pattern in one.patterns]
    return entry


def _taint(one: Taint) -> Json:
    return {"key": one.key, **({"value": one.value} if one.value else {}), "effect": one.effect}


def machine_type_of(offer: Offer) -> str:
    """Its name; of a group that has only a template, what the template's label says, or nothing."""
    return offer.machine_type or offer.node.metadata.labels.get(INSTANCE_TYPE, "")


def _remaining(one: Remaining) -> Json:
    return {"pods": one.pods, "reasons": [str(reason) for reason in one.reasons]}
