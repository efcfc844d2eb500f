"""Others who do our work already: a held autoscaler lease, Strimzi's own operator. What we may not see is raised."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.needs import AUTOSCALER_LEASE, KUBE_SYSTEM
from plimsoll.kube.diagnosis.servers import LEASE_S
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.workloads import Deployment

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client

_STRIMZI_OPERATOR: Final = "strimzi.io/kind=cluster-operator"


async def autoscaler(
    client: Client, *, now: datetime, name: str = AUTOSCALER_LEASE, namespace: str = KUBE_SYSTEM
) -> Finding:
    """Whether somebody holds the lease that Cluster Autoscaler and Plimsoll share, unless it is to be another one.

    `now` is the time at the server, because the holder's clock is more likely to agree with that than with ours.
    """
    check, where = "rivals.nodes", f"lease {namespace}/{name}"
    try:
        lease = await client.get(Lease, name, namespace=namespace)
    except NotFound:
        return Finding(check=check, level=Level.OK, message=f"no other autoscaler: there is no {where}")
    spec = lease.spec
    details = {"holder": spec.holder_identity, "renewTime": spec.renew_time.text() if spec.renew_time else None}
    if not spec.holder_identity or spec.renew_time is None:
        return Finding(check=check, level=Level.OK, message=f"nobody holds {where}", details=details)
    lasts_s = LEASE_S if spec.lease_duration_seconds is None else spec.lease_duration_seconds
    if now >= spec.renew_time + timedelta(seconds=lasts_s):
        message = f"{where} was held by {spec.holder_identity} and has expired"
        return Finding(check=check, level=Level.OK, message=message, details=details)
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"{spec.holder_identity} holds {where}: until it lets go, this autoscaler only watches",
        fix="if it is another autoscaler, scale its Deployment to 0 before Plimsoll is to act",
        details=details,
    )


async def strimzi_operator(client: Client, *, namespace: str) -> Finding:
    """Whether Strimzi's operator looks after the same Kafka objects."""
    check = "rivals.kafka"
    found = await client.list(Deployment, Selection(namespace=namespace, labels=_STRIMZI_OPERATOR))
    names = [
        f"{deployment.metadata.namespace}/{deployment.metadata.name}"
        for deployment in found.items
        if deployment.spec.replicas != 0
    ]
    if not names:
        return Finding(check=check, level=Level.OK, message="no operator of Strimzi runs")
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"Strimzi's operator runs: {', '.join(names)}",
        fix="run the Kafka controller beside it with --kafka-mode companion, or scale the operator to 0",
        details={"deployments": names},
    )
