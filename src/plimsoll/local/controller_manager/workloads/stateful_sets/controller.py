"""The stateful set controller: pods with stable names, started and stopped in order, each with its own claims.

One reconciliation: read the set and its pods, ensure a revision for the template, carry out the plan, trim old
revisions, write the status. While earlier writes are missing in the cache, nothing is created or deleted. Claims are
created before the pod that mounts them, and are never deleted here: where the retention policy requires that, their
owner reference leaves it to the garbage collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates,
)
from plimsoll.kube.controlled_objects.pod_control import read_template
from plimsoll.kube.controlled_objects.pod_readiness import compute_next_availability_s
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import build_owner_keys, enqueue_on, get_own_key
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import (
    REVISION_LABEL,
    Owner,
    Revisions,
    compute_data_hash,
    get_template,
)
from plimsoll.local.controller_manager.workloads.controlled_objects.status_patches import count_fields
from plimsoll.local.controller_manager.workloads.stateful_sets.identity import StatefulSetSource, parse_ordinal
from plimsoll.local.controller_manager.workloads.stateful_sets.plan import (
    StatefulSetView,
    choose_revision,
    compute_stateful_set_status,
    plan_stateful_set,
)
from plimsoll.local.controller_manager.workloads.stateful_sets.pods import StatefulPods
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import StatefulSet
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from plimsoll.core.errors import PlimsollError
    from plimsoll.local.components import Component, Components
    from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import CurrentRevision
    from plimsoll.objects.api.workloads import ControllerRevision, StatefulSetStatus
    from plimsoll.objects.codec.decoding import RawObject

NAME: Final = "statefulset-controller"
_HASH_LABEL: Final = "controller.kubernetes.io/hash"
_DEFAULT_HISTORY: Final = 10


def build_stateful_set_services(components: Components) -> list[Service]:
    controller = StatefulSetController(components.build_component(NAME)).controller
    return [Service(name=controller.name, run=controller.run)]


class StatefulSetController:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._clock = component.clock
        self._resource = component.client.calls.get_resource(StatefulSet)
        self._sets = component.informers.get_raw_informer(StatefulSet)
        self._informer = component.informers.get_informer(Pod)
        index_by_controller(self._informer)
        self._revisions = Revisions(component, self._resource, hash_label=_HASH_LABEL, hash_of=compute_data_hash)
        self._pods = StatefulPods(component, self._resource)
        self._adoption = ControllerRefManager(component.client, Pod, self._resource)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(raw) for raw in self._sets.cache],
        )
        enqueue_on(self._sets, self.controller, get_own_key)
        enqueue_on(self._informer, self.controller, build_owner_keys(self._resource))
        enqueue_on(self._revisions.informer, self.controller, build_owner_keys(self._resource))
        self.controller.add_source(self._pods.claims)

    async def reconcile(self, key: Key) -> Done | Again:
        found = self._sets.cache.get(key.name, key.namespace)
        if found is None:
            return Done()
        metadata = found.view.metadata
        if not self._pods.own_writes.are_fulfilled(metadata.uid):
            return Again(after_s=RECHECK_S)
        established = await self._establish_revision(found)
        history = self._revisions.list_history(metadata)
        current = _find_revision(history, found.view.status.current_revision) or established.revision
        selector = parse_label_selector(found.view.spec.selector)
        mine = [pod for pod in list_candidates(self._informer, metadata) if parse_ordinal(pod, metadata) is not None]
        pods = await self._adoption.claim(metadata, selector, mine)
        view = StatefulSetView(
            stateful_set=found.view,
            pods=tuple(pods),
            current=current.metadata.name,
            update=established.revision.metadata.name,
            now=self._clock.now(),
            collisions=established.collisions,
        )

        templates = {
            controller_revision.metadata.name: controller_revision
            for controller_revision in (current, established.revision)
        }
        error = await self._apply_plan(view, found, templates=templates)
        if error is not None or self._pods.own_writes.are_fulfilled(metadata.uid):
            await self._update_status(view)
        if error is not None:
            raise error
        return self._schedule_next(view)

    async def _establish_revision(self, found: RawObject[StatefulSet]) -> CurrentRevision:
        status, metadata = found.view.status, found.view.metadata
        return await self._revisions.ensure_current(
            Owner(metadata=metadata, template=read_template(found.raw), collisions=status.collision_count or 0)
        )

    async def _apply_plan(
        self, view: StatefulSetView, found: RawObject[StatefulSet], *, templates: dict[str, ControllerRevision]
    ) -> PlimsollError | None:
        plan = plan_stateful_set(view)
        source = _read_source(found)
        error = await self._pods.update_claim_owners(view, source)
        for ordinal in plan.pending:
            error = error or await self._pods.ensure_claims(view.stateful_set, source, ordinal)
        for ordinal in plan.create:
            revision = choose_revision(view, ordinal)
            template = get_template(templates[revision])
            error = error or await self._pods.create(
                view.stateful_set, template, source=source, ordinal=ordinal, revision=revision
            )
        for pod in plan.relabel:
            await self._pods.relabel(view.stateful_set, pod)
        for pod in plan.delete:
            error = error or await self._pods.delete(view.stateful_set, pod)
        if error is None and plan == type(plan)():
            await self._trim(view)
        return error

    async def _trim(self, view: StatefulSetView) -> None:
        live = {view.current, view.update, *(pod.metadata.labels.get(REVISION_LABEL, "") for pod in view.pods)}
        limit = view.stateful_set.spec.revision_history_limit
        await self._revisions.trim(
            view.stateful_set.metadata, live=live, limit=_DEFAULT_HISTORY if limit is None else limit
        )

    async def _update_status(self, view: StatefulSetView) -> None:
        status = compute_stateful_set_status(view)
        metadata = view.stateful_set.metadata
        if status == view.stateful_set.status:
            return
        body = {"metadata": {"uid": metadata.uid}, "status": _encode_status(status)}
        try:
            await self._client.merge_patch(
                StatefulSet, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )
        except NotFound:
            # It was deleted meanwhile.
            return

    def _schedule_next(self, view: StatefulSetView) -> Done | Again:
        if not self._pods.own_writes.are_fulfilled(view.stateful_set.metadata.uid):
            return Again(after_s=RECHECK_S)
        wait_s = compute_next_availability_s(
            view.pods, min_ready_s=view.stateful_set.spec.min_ready_seconds, now=view.now
        )
        return Done() if wait_s is None else Again(after_s=wait_s)


def _find_revision(history: list[ControllerRevision], name: str) -> ControllerRevision | None:
    return next(
        (controller_revision for controller_revision in history if controller_revision.metadata.name == name), None
    )


def _read_source(found: RawObject[StatefulSet]) -> StatefulSetSource:
    spec = msgspec.json.decode(found.raw)["spec"]
    return StatefulSetSource(
        claims=tuple(spec.get("volumeClaimTemplates") or ()),
        service_name=spec.get("serviceName") or "",
        match_labels=(spec.get("selector") or {}).get("matchLabels") or {},
    )


def _encode_status(status: StatefulSetStatus) -> dict[str, Any]:
    counts = {
        "observedGeneration": status.observed_generation,
        "readyReplicas": status.ready_replicas,
        "currentReplicas": status.current_replicas,
        "updatedReplicas": status.updated_replicas,
    }
    return {
        "replicas": status.replicas,
        **count_fields(counts),
        "availableReplicas": status.available_replicas,
        "currentRevision": status.current_revision,
        "updateRevision": status.update_revision,
        "collisionCount": status.collision_count,
    }
