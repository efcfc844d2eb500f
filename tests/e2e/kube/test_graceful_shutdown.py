"""A process of informers and recorders that gets a signal to stop: pending work is done, and nothing is left open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.informer import Informer
from plimsoll.kube.informer.events import Added, Updated
from plimsoll.kube.recorder import EventRecorder, EventType, build_reference
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.events import Event, EventSource
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.registry import KINDS
from plimsoll.runtime.supervisor import Service, Supervisor
from tests.e2e.kube.clusters import CLOCK, ENTROPY, connected, until_so
from tests.e2e.kube.pods_and_maps import config_map
from tests.e2e.kube.tcp_proxies import proxied
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer import Change

pytestmark = pytest.mark.asyncio


async def test_what_was_seen_is_still_reported_and_every_connection_is_closed(
    access: Access, client: Client, namespace: str
):
    resource = KINDS.find_by_struct(ConfigMap)
    assert resource is not None
    async with proxied(access) as (proxy, through):
        async with connected(through) as ours:
            recorder = EventRecorder(ours, EventSource(component="plimsoll-e2e"), clock=CLOCK, entropy=ENTROPY)

            def report(change: Change[Any]) -> None:
                if isinstance(change, Added | Updated) and change.key.name == "settings":
                    about = build_reference(resource, change.new)
                    recorder.record(about, EventType.NORMAL, reason="Seen", message="on the last day")
                    supervising.cancel()

            selection = Selection(namespace=namespace)
            maps = Informer(ours, ConfigMap, selection=selection, clock=CLOCK, entropy=ENTROPY)
            pods = Informer(ours, Pod, selection=selection, clock=CLOCK, entropy=ENTROPY)
            maps.add_handler(report, name="teller")
            services = [
                Service(name="events", run=recorder.run),
                Service(name="maps", run=maps.run),
                Service(name="pods", run=pods.run),
            ]
            supervising = asyncio.create_task(Supervisor(services, clock=CLOCK, entropy=ENTROPY).run())
            await client.create(ConfigMap, config_map("settings"), namespace=namespace)
            await asyncio.wait((supervising,), timeout=PATIENCE_S)
            assert supervising.cancelled()
            assert recorder.status.written == 1
        await until_so(lambda: proxy.open_connections == 0)
    events = await client.list(Event, Selection(namespace=namespace, fields="reason=Seen"))
    assert [event.involved_object.name for event in events.items] == ["settings"]
