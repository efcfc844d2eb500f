"""Plans of growth as plain data: what `plimsoll plan -o json` prints, and an element of a scenario's `loops`.

The form is fixed by specs/formats/plan.md. Same plan, same bytes: keys stand in the order given here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.offers import Offer
    from plimsoll.nodes.planning.results import Growth, Remaining, ScaleUp
    from plimsoll.nodes.planning.world import Pending

ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
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
    if one.offer.profile is not None and one.offer.profile.labels:
        entry["labels"] = dict(one.offer.profile.labels)
    entry["patterns"] = [{"nodes": pattern.nodes, "pods": dict(pattern.pods)} for pattern in one.patterns]
    return entry


def machine_type_of(offer: Offer) -> str:
    """Its name; of a group that has only a template, what the template's label says, or nothing."""
    return offer.machine_type or offer.node.metadata.labels.get(INSTANCE_TYPE, "")


def _remaining(one: Remaining) -> Json:
    return {"pods": one.pods, "reasons": [str(reason) for reason in one.reasons]}


def requests_json(plan: ScaleUp, pending: Sequence[Pending], bundles: Iterable[str], *, time: str) -> Json:
    """How each request is answered by a plan: with all its pods, or not at all."""
    left = {key: count for one in plan.remaining for key, count in one.keys.items()}
    why = {key: "; ".join(map(str, one.reasons)) for one in plan.remaining for key in one.keys}
    grown = {key for one in plan.growths for pattern in one.patterns for key in pattern.pods}
    found: Json = {}
    for bundle in bundles:
        keys = [one.key for one in pending if one.bundle == bundle]
        total = sum(one.count for one in pending if one.bundle == bundle)
        short = [key for key in keys if key in left]
        found[bundle] = {
            "conditions": [
                _condition(ACCEPTED, "True", "Accepted", "Provisioning Request was successfully queued.", time),
                _provisioned(total, [why[key] for key in short], grows=any(key in grown for key in keys), time=time),
            ],
            "details": _details(plan, keys) if not short else {},
        }
    return found


def _provisioned(total: int, why: Sequence[str], *, grows: bool, time: str) -> Json:
    if why:
        told = f"Not all of {total} pods fit: {'; '.join(dict.fromkeys(why))}"
        return _condition(PROVISIONED, "False", "CapacityIsNotFound", told, time)
    if grows:
        return _condition(
            PROVISIONED, "True", "CapacityIsProvisioned", f"Capacity for {total} pods was requested.", time
        )
    return _condition(PROVISIONED, "True", "CapacityIsFound", f"Capacity for {total} pods is there.", time)


def _details(plan: ScaleUp, keys: Sequence[str]) -> Json:
    groups = {
        one.offer.group: sum(pattern.nodes for pattern in one.patterns if any(key in pattern.pods for key in keys))
        for one in plan.growths
    }
    return {
        "planCostPerHour": f"{plan.cost_per_hour:g}",
        "costLowerBoundPerHour": f"{plan.lower_bound_per_hour:g}",
        "nodeGroups": msgspec.json.encode({name: nodes for name, nodes in groups.items() if nodes}).decode(),
    }


def _condition(kind: str, status: str, reason: str, message: str, time: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}
