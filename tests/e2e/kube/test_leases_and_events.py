"""Two contenders for one lease, and events that are counted instead of repeated."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.errors import NotAllowed
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.leases import ElectorThread, LeaseHolder, LeaseSettings, SuspendAwareClock
from plimsoll.kube.recorder import EventRecorder, EventType, build_reference
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.events import Event, EventSource
from plimsoll.objects.registry import KINDS
from tests.e2e.kube.clusters import CLOCK, ENTROPY, USER_AGENT, until_so
from tests.e2e.kube.pods_and_maps import config_map
from tests.e2e.kube.tcp_proxies import proxied
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from typing import Any

    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource

pytestmark = pytest.mark.asyncio

# ---- leases


def holder(namespace: str, identity: str, *, duration_s: int = 30) -> LeaseHolder:
    """Who leads leads for good, also on a busy machine; a test that waits for the end of a lease takes a short one."""
    settings = LeaseSettings(
        name="controllers",
        namespace=namespace,
        duration_s=duration_s,
        renew_deadline_s=duration_s / 2,
        retry_period_s=0.3,
    )
    return LeaseHolder(settings, identity=identity, clock=SuspendAwareClock())


@asynccontextmanager
async def contending(candidate: LeaseHolder, access: Access, ended: list[int]) -> AsyncIterator[LeaseHolder]:
    """Takes part from a thread of its own. What would end the process is written down instead."""

    def opened() -> HttpTransport:
        return HttpTransport(access, user_agent=USER_AGENT)

    async with ElectorThread(candidate, opened, entropy=ENTROPY, end_process=ended.append) as contender:
        yield contender


async def test_the_second_candidate_leads_when_the_first_stands_down(access: Access, client: Client, namespace: str):
    ended: list[int] = []
    one, two = holder(namespace, "one"), holder(namespace, "two")
    async with contending(one, access, ended):
        await within_patience(one.wait_until_acquired())
        async with contending(two, access, ended):
            await until_so(lambda: two.observed_holder == "one")
            assert (one.is_leading, two.is_leading) == (True, False)
            lease = await client.get(Lease, "controllers", namespace=namespace)
            assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("one", 30)
            one.stand_down()
            await within_patience(two.wait_until_acquired())
            assert (one.is_leading, two.is_leading) == (False, True)
            lease = await client.get(Lease, "controllers", namespace=namespace)
            assert lease.spec.holder_identity == "two"
            assert lease.spec.lease_transitions == 1
    assert ended == []


async def test_a_leader_that_reaches_no_server_stops_before_another_leads(
    access: Access, client: Client, namespace: str
):
    ended: list[int] = []
    one, two = (holder(namespace, name, duration_s=3) for name in ("one", "two"))
    async with proxied(access) as (proxy, through), contending(one, through, ended):
        await within_patience(one.wait_until_acquired())
        async with contending(two, access, ended):
            await until_so(lambda: two.observed_holder == "one")
            proxy.refuse()
            proxy.cut()
            await within_patience(two.wait_until_acquired())
            assert not one.is_leading
            assert one.promised_until_s <= two.clock.monotonic_s()
            one.stand_down()
        proxy.accept()


async def test_only_the_leader_may_write(access: Access, client: Client, namespace: str):
    candidate = holder(namespace, "one")
    guarded = client.with_guard(candidate)
    with pytest.raises(NotAllowed):
        await guarded.create(ConfigMap, config_map("early"), namespace=namespace)
    async with contending(candidate, access, []):
        await within_patience(candidate.wait_until_acquired())
        await guarded.create(ConfigMap, config_map("leading"), namespace=namespace)
    with pytest.raises(NotAllowed):
        await guarded.create(ConfigMap, config_map("late"), namespace=namespace)
    found = await client.list(ConfigMap, Selection(namespace=namespace, fields="metadata.name!=kube-root-ca.crt"))
    assert [item.metadata.name for item in found.items] == ["leading"]


async def within_patience(event: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event


# ---- events


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, EventSource(component="plimsoll-e2e"), clock=CLOCK, entropy=ENTROPY)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def test_an_event_that_repeats_is_counted(client: Client, namespace: str):
    about = await client.create(ConfigMap, config_map("flooded"), namespace=namespace)
    reference = build_reference(resource_of(ConfigMap), about)
    async with recording(client) as recorder:
        for _ in range(4):
            recorder.record(reference, EventType.WARNING, reason="Flooded", message="above the line")
        recorder.record(reference, EventType.NORMAL, reason="Drained", message="below the line")
        await until_so(lambda: recorder.status.written == 5)
        assert recorder.status.dropped == {}
    selected = Selection(namespace=namespace, fields="involvedObject.name=flooded")
    events = {event.reason: event for event in (await client.list(Event, selected)).items}
    assert {reason: (event.type, event.count) for reason, event in events.items()} == {
        "Flooded": ("Warning", 4),
        "Drained": ("Normal", 1),
    }
    assert events["Flooded"].involved_object.uid == about.metadata.uid
    assert events["Flooded"].source.component == "plimsoll-e2e"


async def test_events_that_wait_are_written_before_the_end(client: Client, namespace: str):
    about = await client.create(ConfigMap, config_map("leaving"), namespace=namespace)
    reference = build_reference(resource_of(ConfigMap), about)
    async with recording(client) as recorder:
        for number in range(10):
            recorder.record(reference, EventType.NORMAL, reason=f"Step{number}", message="on the way out")
        await asyncio.sleep(0)  # it has begun
    events = await client.list(Event, Selection(namespace=namespace, fields="involvedObject.name=leaving"))
    assert {event.reason for event in events.items} == {f"Step{number}" for number in range(10)}


def resource_of(struct: type[WireObject]) -> Resource:
    found = KINDS.find_by_struct(struct)
    assert found is not None
    return found
