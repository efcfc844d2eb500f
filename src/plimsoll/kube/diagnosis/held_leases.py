"""Which process holds a lease, by the clock of the server: a check of `plimsoll doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.servers import LEASE_S
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.coordination import Lease

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client

OWN_HOLDERS: Final = "plimsoll-"
"""How the holder's name begins for a pod of deploy/, and for the controllers of `plimsoll up`."""


class LeaseCheck(Value):
    """Which lease is looked at for which check. `controller` is what the messages call its holder."""

    check: str
    name: str
    namespace: str
    controller: str
    is_shared: bool = False
    """Whether programs that are not Plimsoll take this lease."""


async def check_lease(client: Client, looked_at: LeaseCheck, *, now: datetime) -> Finding:
    """Which process holds the lease at `now`, the time at the server: a warning if it is not Plimsoll's."""
    check, controller = looked_at.check, looked_at.controller
    where = f"lease {looked_at.namespace}/{looked_at.name}"
    try:
        lease = await client.get(Lease, looked_at.name, namespace=looked_at.namespace)
    except NotFound:
        return Finding(check=check, level=Level.OK, message=f"no other {controller}: there is no {where}")
    spec = lease.spec
    details = {"holder": spec.holder_identity, "renewTime": spec.renew_time.to_text() if spec.renew_time else None}
    if not spec.holder_identity or spec.renew_time is None:
        return Finding(check=check, level=Level.OK, message=f"{where} is not held", details=details)
    if not is_held(lease, now):
        message = f"{where} was held by {spec.holder_identity} and has expired"
        return Finding(check=check, level=Level.OK, message=message, details=details)
    if not looked_at.is_shared or spec.holder_identity.startswith(OWN_HOLDERS):
        message = f"Plimsoll leads: {spec.holder_identity} holds {where}"
        return Finding(check=check, level=Level.OK, message=message, details=details)
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"{spec.holder_identity} holds {where}: until it releases the lease, this {controller} only observes",
        fix=f"if it is another {controller}, scale its Deployment to 0 before Plimsoll acts",
        details=details,
    )


def is_held(lease: Lease, now: datetime) -> bool:
    """Whether the lease has a holder that renewed it in time, by the clock of the server."""
    spec = lease.spec
    if not spec.holder_identity or spec.renew_time is None:
        return False
    lasts_s = LEASE_S if spec.lease_duration_seconds is None else spec.lease_duration_seconds
    return now < add_seconds(spec.renew_time, lasts_s)
