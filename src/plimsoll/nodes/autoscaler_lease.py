"""Another autoscaler that holds the lease which Cluster Autoscaler and Plimsoll share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.servers import LEASE_S
from plimsoll.kube.errors import NotFound
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.objects.api.coordination import Lease

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import RivalContext

AUTOSCALER_LEASE: Final = "cluster-autoscaler"
"""The name Cluster Autoscaler uses, so that it and Plimsoll never act at the same time."""
AUTOSCALER_RIVALS: Final = "rivals.nodes"


def is_held(lease: Lease, now: datetime) -> bool:
    """Whether the lease has a holder that renewed it in time, by the clock of the server."""
    spec = lease.spec
    if not spec.holder_identity or spec.renew_time is None:
        return False
    lasts_s = LEASE_S if spec.lease_duration_seconds is None else spec.lease_duration_seconds
    return now < add_seconds(spec.renew_time, lasts_s)


async def check_autoscaler_lease(client: Client, context: RivalContext) -> Finding:
    """Whether another autoscaler holds the lease."""
    return await check_lease(client, now=context.now)


async def check_lease(
    client: Client, *, now: datetime, name: str = AUTOSCALER_LEASE, namespace: str = KUBE_SYSTEM
) -> Finding:
    """Whether the lease of this name is held at `now`, the time at the server."""
    check, where = AUTOSCALER_RIVALS, f"lease {namespace}/{name}"
    try:
        lease = await client.get(Lease, name, namespace=namespace)
    except NotFound:
        return Finding(check=check, level=Level.OK, message=f"no other autoscaler: there is no {where}")
    spec = lease.spec
    details = {"holder": spec.holder_identity, "renewTime": spec.renew_time.text() if spec.renew_time else None}
    if not spec.holder_identity or spec.renew_time is None:
        return Finding(check=check, level=Level.OK, message=f"{where} is not held", details=details)
    if not is_held(lease, now):
        message = f"{where} was held by {spec.holder_identity} and has expired"
        return Finding(check=check, level=Level.OK, message=message, details=details)
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"{spec.holder_identity} holds {where}: until it releases the lease, this autoscaler only observes",
        fix="if it is another autoscaler, scale its Deployment to 0 before Plimsoll acts",
        details=details,
    )
