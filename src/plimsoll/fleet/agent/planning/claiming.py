"""Who gets units, and when they are given back (docs/design/fleet.md 17.3).

Every change is written with the version of the list that it was decided on: of two agents with the last unit only one
succeeds. A claim is given back when the namespace of the instance is gone, and lowered when its brokers are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.core.values import Value
from plimsoll.fleet.agent.model.claims import Claim, ClaimsList

if TYPE_CHECKING:
    from collections.abc import Collection

REJECTED_MESSAGE: Final = "Cluster has insufficient resources"
"""The control plane places an instance elsewhere that is rejected with this message."""
_MOST_EARLIER: Final = 20


class ClaimRequest(Value):
    """An instance that needs units."""

    namespace: str
    name: str
    id: str
    instance_type: str
    placement_id: str
    units: int


class ClaimGranted(Value):
    """The claim to store. `is_new` false: it is stored already."""

    claim: Claim
    is_new: bool = True


class ClaimRefused(Value):
    """`is_final`: there is no room. Otherwise it cannot be decided now."""

    reason: Reason
    is_final: bool = True


def decide_claim(request: ClaimRequest, claims: ClaimsList, *, max_units: int | None) -> ClaimGranted | ClaimRefused:
    """`max_units` None: no bound, because the control plane gives none."""
    held = claims.claims.get(request.namespace)
    if held is not None and held.units >= request.units and held.placement_id == request.placement_id:
        return ClaimGranted(claim=held, is_new=False)
    if held is not None and held.units and held.placement_id != request.placement_id:
        message = f"the units of placement {held.placement_id} are not given back yet"
        return ClaimRefused(reason=Reason(code="LastPlacementHolds", message=message), is_final=False)
    if claims.unreadable:
        message = f"claims that cannot be read: {', '.join(claims.unreadable[:3])}"
        return ClaimRefused(reason=Reason(code="ClaimsUnreadable", message=message), is_final=False)
    used = claims.count_units(request.instance_type) - (held.units if held is not None else 0)
    if max_units is not None and used + request.units > max_units:
        facts = {"used": used, "units": request.units, "maxUnits": max_units}
        return ClaimRefused(reason=Reason(code="Rejected", message=REJECTED_MESSAGE, facts=facts))
    claim = Claim(
        name=request.name,
        id=request.id,
        instance_type=request.instance_type,
        placement_id=request.placement_id,
        units=request.units,
        earlier=held.earlier if held is not None else (),
    )
    return ClaimGranted(claim=claim)


def lower_claim(claim: Claim, units: int) -> Claim:
    """The claim of an instance that became smaller, when the brokers above its size are gone."""
    return replace(claim, units=units) if units < claim.units else claim


def remember_placement(claim: Claim | None, request: ClaimRequest) -> Claim:
    """The entry of an instance whose placement is removed: that placement does not come back."""
    base = claim or Claim(
        name=request.name,
        id=request.id,
        instance_type=request.instance_type,
        placement_id=request.placement_id,
    )
    if request.placement_id in base.earlier:
        return base
    return replace(base, earlier=(*base.earlier[-_MOST_EARLIER + 1 :], request.placement_id))


def release_claims(
    claims: ClaimsList, *, existing: Collection[str], awaited: Collection[str] | None
) -> dict[str, Claim | None]:
    """Changes for instances whose namespace is gone. `awaited`: namespaces that the list still has; None: not known."""
    changes: dict[str, Claim | None] = {}
    for namespace, claim in claims.claims.items():
        if namespace in existing:
            continue
        keeps_memory = bool(claim.earlier) and (awaited is None or namespace in awaited)
        if not keeps_memory:
            changes[namespace] = None
        elif claim.units:
            changes[namespace] = replace(claim, units=0)
    return changes
