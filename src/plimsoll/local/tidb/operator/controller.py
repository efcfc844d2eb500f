"""A small TiDB operator: creates StatefulSets and services from TidbClusters, and writes their status.

A reconcile creates or corrects the objects of every component, sets the replicas, and writes the status. A TiKV set
shrinks by one, and only when the store of its last pod is Tombstone in PD: a store that was not drained is taken
offline first, as by the real operator. Objects are deleted with their TidbCluster by their owner references. Scaling is
not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.controlled_objects.pod_control import (
    build_controller_reference,
    build_event_subject,
)
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import build_owner_keys, enqueue_on, get_own_key
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.recorder import EventType
from plimsoll.local.tidb.instances import TIKV, get_base_key, set_name
from plimsoll.local.tidb.operator.manifests import APPLIED, build_services, build_stateful_set, list_components
from plimsoll.local.tidb.operator.scale_in import Shrink, TakeOffline, plan_next_step
from plimsoll.local.tidb.operator.status import ObservedCluster, build_merge_patch, build_status
from plimsoll.local.tidb.pd.api import PdRequest
from plimsoll.objects.api.services import Service
from plimsoll.objects.api.tidb import TidbCluster
from plimsoll.objects.api.workloads import StatefulSet

if TYPE_CHECKING:
    from plimsoll.local.components import Component
    from plimsoll.local.tidb.pd.simulated_pds import SimulatedPds
    from plimsoll.local.tidb.topology import Topology
    from plimsoll.objects.codec.decoding import RawObject

NAME: Final = "tidb-controller-manager"
_LOOK_AGAIN_S: Final = 10.0

Json = dict[str, Any]


class TidbOperator:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component, topology: Topology, pds: SimulatedPds) -> None:
        self._client = component.client
        self._clock = component.clock
        self._recorder = component.recorder
        self._topology = topology
        self._pds = pds
        self._resource = component.client.calls.get_resource(TidbCluster)
        self._clusters = topology.clusters
        # The set's controller keeps their bytes, so those informers are there anyway.
        self._sets = component.informers.get_raw_informer(StatefulSet)
        self._services = component.informers.get_informer(Service)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(raw) for raw in self._clusters.cache],
        )
        enqueue_on(self._clusters, self.controller, get_own_key)
        enqueue_on(self._sets, self.controller, build_owner_keys(self._resource))
        enqueue_on(self._services, self.controller, build_owner_keys(self._resource))
        pds.on_change = self._enqueue_members

    def _enqueue_members(self, base: Key) -> None:
        for member in self._topology.list_members(base):
            self.controller.queue.add(Key(member.metadata.namespace, member.metadata.name))

    async def reconcile(self, key: Key) -> Done | Again:
        """Create the objects, set the replicas, write the status."""
        found = self._clusters.cache.get(key.name, key.namespace)
        if found is None or found.view.metadata.deletion_timestamp is not None:
            return Done()
        body = msgspec.json.decode(found.raw)
        is_waiting = False
        if not found.view.spec.paused:
            for component in list_components(body["spec"]):
                await self._create_objects(found, body, component)
                is_waiting |= await self._set_replicas(found, body, component)
        await self._write_status(found, body)
        return Again(after_s=_LOOK_AGAIN_S) if is_waiting else Done()

    # ---- act

    async def _create_objects(self, found: RawObject[TidbCluster], body: Json, component: str) -> None:
        owner = build_controller_reference(self._resource, found.view.metadata)
        for service in build_services(body["metadata"], component, owner=owner):
            if self._services.cache.get(service["metadata"]["name"], service["metadata"]["namespace"]) is None:
                await self._create(Service, service)
        wanted = build_stateful_set(body["metadata"], body["spec"], component, owner=owner)
        metadata = wanted["metadata"]
        known = self._sets.cache.get(metadata["name"], metadata["namespace"])
        if known is None:
            await self._create(StatefulSet, wanted)
        elif known.view.metadata.annotations.get(APPLIED) != metadata["annotations"][APPLIED]:
            await self._update_stateful_set(wanted)

    async def _create(self, kind: type[Service | StatefulSet], body: Json) -> None:
        try:
            await self._client.create(kind, body)
        except AlreadyExists:
            # Our cache does not show it yet.
            return

    async def _update_stateful_set(self, wanted: Json) -> None:
        """All that a StatefulSet may change; what its claims are like it may not."""
        metadata, spec = wanted["metadata"], wanted["spec"]
        escaped = APPLIED.replace("/", "~1")
        retention = "persistentVolumeClaimRetentionPolicy"
        changes = [
            {"op": "add", "path": f"/metadata/annotations/{escaped}", "value": metadata["annotations"][APPLIED]},
            {"op": "replace", "path": "/spec/template", "value": spec["template"]},
            {"op": "add", "path": f"/spec/{retention}", "value": spec[retention]},
        ]
        await self._client.patch_json(StatefulSet, metadata["name"], changes, namespace=metadata["namespace"])

    async def _set_replicas(self, found: RawObject[TidbCluster], body: Json, component: str) -> bool:
        """Whether there is something to wait for."""
        name, namespace = set_name(found.view.metadata.name, component), found.view.metadata.namespace
        known = self._sets.cache.get(name, namespace)
        wanted = int(body["spec"][component].get("replicas", 0))
        if known is None:
            return False
        replicas = known.view.spec.replicas or 0
        if component == TIKV and wanted < replicas:
            return await self._shrink(found.view, known.view)
        if wanted != replicas:
            await self._resize(known.view, wanted)
        return False

    async def _shrink(self, cluster: TidbCluster, known: StatefulSet) -> bool:
        """One store less, if it may be; there may be more to go, so look again in any case."""
        base, replicas = get_base_key(cluster), known.spec.replicas or 0
        pod = f"{known.metadata.name}-{replicas - 1}"
        state = self._pds.get_state(base)
        is_running = any(
            instance.pod == pod and instance.is_ready for instance in self._topology.list_instances_of(cluster)
        )
        store = state.find_store_of_pod(cluster.metadata.namespace, pod) if state is not None else None
        step = plan_next_step(store, knows_pd=state is not None, is_running=is_running)
        if isinstance(step, Shrink):
            await self._resize(known, replicas - 1)
        elif isinstance(step, TakeOffline):
            await self._take_offline(cluster, base, step.store_id)
        return True

    async def _take_offline(self, cluster: TidbCluster, base: Key, store_id: int) -> None:
        removal = PdRequest(method="DELETE", target=f"/pd/api/v1/store/{store_id}")
        answer = await self._pds.answer(base, removal)
        if answer is None or answer.status >= 400:
            problem = "PD does not answer" if answer is None else answer.body.decode(errors="replace")
            subject = build_event_subject(self._resource, cluster.metadata)
            self._recorder.record(subject, EventType.WARNING, reason="FailedScaleIn", message=problem)

    async def _resize(self, known: StatefulSet, replicas: int) -> None:
        body = {"metadata": {"uid": known.metadata.uid}, "spec": {"replicas": replicas}}
        try:
            await self._client.merge_patch(StatefulSet, known.metadata.name, body, namespace=known.metadata.namespace)
        except NotFound:
            # It was deleted meanwhile, and is created again.
            return

    # ---- status

    async def _write_status(self, found: RawObject[TidbCluster], body: Json) -> None:
        metadata = found.view.metadata
        components = list_components(body["spec"])
        sets = {
            component: self._sets.cache.get(set_name(metadata.name, component), metadata.namespace)
            for component in components
        }
        observed = ObservedCluster(
            namespace=metadata.namespace,
            name=metadata.name,
            wanted={component: int(body["spec"][component].get("replicas", 0)) for component in components},
            sets={name: raw.view for name, raw in sets.items() if raw is not None},
            instances=self._topology.list_instances_of(found.view),
            pd=self._pds.get_state(get_base_key(found.view)),
        )
        before = body.get("status") or {}
        patch = build_merge_patch(before, build_status(observed, before, now=self._clock.now()))
        if not patch:
            return
        try:
            # As with the real operator there is no status subresource.
            body = {"metadata": {"uid": metadata.uid}, "status": patch}
            await self._client.merge_patch(TidbCluster, metadata.name, body, namespace=metadata.namespace)
        except NotFound:
            # It was deleted meanwhile.
            return
