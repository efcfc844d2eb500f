"""A whole controller in one screen: ConfigMaps labelled `copy-to=NAMESPACE` are copied there, by one leader at a time.

Run it against any cluster, twice if you like: `python examples/copy_controller.py --kubeconfig F`. Everything that
Plimsoll's own controllers stand on is in it: client, informer, work queue, lease, events, graceful stop.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from plimsoll.kube.client import Client
from plimsoll.kube.configuration import find_access
from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.informer import Informer, Key
from plimsoll.kube.leases import (
    ElectorThread,
    LeaseHolder,
    LeaseSettings,
    SuspendAwareClock,
    generate_identity,
    run_while_leading,
)
from plimsoll.kube.recorder import EventRecorder, EventType, build_reference
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.events import EventSource
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled
from plimsoll.runtime.supervisor import Service, Supervisor

COPY_TO = "copy-to"


async def main(kubeconfig: str) -> None:
    clock, entropy = RealClock(), SystemEntropy()
    access = find_access(kubeconfig=kubeconfig, environment=os.environ, clock=clock)
    lease = LeaseSettings(name="copy-controller", namespace=access.namespace)
    identity = generate_identity(socket.gethostname(), entropy)
    holder = LeaseHolder(lease, identity=identity, clock=SuspendAwareClock())
    async with HttpTransport(access) as transport:
        client = Client(transport, clock=clock, entropy=entropy)
        # The guard refuses every write that the lease would not outlive.
        supervisor = Supervisor(services(client, client.with_guard(holder)), clock=clock, entropy=entropy)
        async with ElectorThread(holder, lambda: HttpTransport(access), entropy=entropy):
            await run_while_leading(holder, supervisor.run)


def services(reader: Client, writer: Client) -> list[Service]:
    clock, entropy = RealClock(), SystemEntropy()
    maps = Informer(reader, ConfigMap, selection=Selection(labels=COPY_TO), clock=clock, entropy=entropy)
    recorder = EventRecorder(reader, EventSource(component="copy-controller"), clock=clock, entropy=entropy)

    async def reconcile(key: Key) -> Done:
        source = maps.cache.get(key.name, key.namespace)
        if source is None or source.metadata.deletion_timestamp is not None:
            return Done()
        target = source.metadata.labels[COPY_TO]
        # A server-side apply may be sent twice, by a process that knows nothing of the first time.
        await writer.apply(ConfigMap, key.name, {"data": source.data}, namespace=target, force=True)
        said = f"copied {key.namespace}/{key.name} to {target}"
        recorder.record(
            build_reference(reader.calls.get_resource(ConfigMap), source),
            EventType.NORMAL,
            reason="Copied",
            message=said,
        )
        return Done(summary=said)

    controller = Controller("copies", reconcile, clock=clock, entropy=entropy, all_keys=maps.cache.iterate_keys)
    enqueue_on(maps, controller, get_own_key)
    return [
        Service(name="events", run=recorder.run),
        Service(name="config maps", run=maps.run),
        Service(name="copies", run=controller.run),
    ]


if __name__ == "__main__":
    asyncio.run(run_until_signalled(main(sys.argv[sys.argv.index("--kubeconfig") + 1])))
