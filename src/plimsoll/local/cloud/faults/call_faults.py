"""The fault that affects a call to the cloud, and how often it has already done so.

Faults are fields of the `Cloud` object, so that a scenario, a user with kubectl and a test inject them alike. Faults
with a limited number of failures are counted in its status before they take effect: a crash may lose one, never repeat
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.objects.api.simulated_cloud import THE_CLOUD, Cloud, FaultKind
from plimsoll.objects.api.simulated_cloud_errors import CloudFailed

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.simulated_cloud import CallFault


UPDATE_ATTEMPTS: Final = 10


def build_overtaken_error(what: str) -> CloudFailed:
    """The error of an update that other writers overtook in every attempt."""
    return CloudFailed(f"{what} is changed by others all the time")


def find_fault(cloud: Cloud, call: str, group: str, *, now: datetime) -> CallFault | None:
    struck = {struck_fault.name: struck_fault.times for struck_fault in cloud.status.faults}
    for fault in cloud.spec.faults:
        if (
            fault.call in {"", call}
            and fault.group in {"", group}
            and (fault.until is None or now < fault.until)
            and (fault.times is None or struck.get(fault.name, 0) < fault.times)
        ):
            return fault
    return None


async def trigger_fault(client: Client, call: str, group: str, *, now: datetime) -> CallFault | None:
    """The fault of this call, counted; None if there is none."""

    async def attempt() -> CallFault | None:
        try:
            cloud = await client.get(Cloud, THE_CLOUD)
        except NotFound:
            return None
        fault = find_fault(cloud, call, group, now=now)
        if fault is not None and fault.times is not None:
            await _count(client, cloud, fault)
        return fault

    return await retry_on_conflict(attempt, attempts=UPDATE_ATTEMPTS, on_exhausted=build_overtaken_error("the cloud"))


async def _count(client: Client, cloud: Cloud, fault: CallFault) -> None:
    names = {call_fault.name for call_fault in cloud.spec.faults}
    struck = {
        struck_fault.name: struck_fault.times for struck_fault in cloud.status.faults if struck_fault.name in names
    }
    struck[fault.name] = struck.get(fault.name, 0) + 1
    body = {
        "metadata": {"resourceVersion": cloud.metadata.resource_version},
        "status": {"faults": [{"name": name, "times": times} for name, times in struck.items()]},
    }
    await client.merge_patch(Cloud, THE_CLOUD, body, subresource="status")


def format_fault(fault: CallFault, call: str) -> str:
    """What the caller hears."""
    if fault.message:
        return fault.message
    return f"{call} timed out" if fault.kind == FaultKind.TIME_OUT else f"{call} failed (fault {fault.name})"
