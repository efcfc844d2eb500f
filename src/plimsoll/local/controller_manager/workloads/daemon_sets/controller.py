"""The daemon set controller: one pod on every eligible node, replaced node by node when the template changes.

One reconciliation: read the set, its pods and the nodes, ensure a revision for the template, create and delete what the
plan contains, trim old revisions, write the status. While earlier writes are missing in the cache, nothing is created
or deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates,
)
from plimsoll.kube.controlled_objects.pod_control import (
    PodControl,
    build_event_subject,
    read_template,
    run_concurrently,
    run_slow_start_batch,
)
from plimsoll.kube.controlled_objects.pod_readiness import compute_next_availability_s
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import build_owner_keys, enqueue_on, get_own_key
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Key, Updated, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.kube.recorder import EventType
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import (
    REVISION_LABEL,
    Owner,
    Revisions,
    get_template,
)
from plimsoll.local.controller_manager.workloads.controlled_objects.status_patches import count_fields
from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import compute_template_hash
from plimsoll.local.controller_manager.workloads.daemon_sets.placement import (
    build_daemon_pod,
    build_revision_labels,
    find_target_node,
)
from plimsoll.local.controller_manager.workloads.daemon_sets.plan import (
    DaemonView,
    compute_daemon_set_status,
    plan_daemon_set,
)
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import DaemonSet
from plimsoll.runtime.backoff import Backoff, BackoffTable
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.errors import PlimsollError
    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component, Components
    from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import CurrentRevision
    from plimsoll.local.controller_manager.workloads.daemon_sets.plan import DaemonPlan
    from plimsoll.objects.api.workloads import DaemonSetStatus

NAME: Final = "daemonset-controller"
_DEFAULT_HISTORY: Final = 10
# A node that refuses a pod makes it fail at once, and would do so with the next one.
_FAILED_PODS: Final = Backoff(initial_s=1.0, factor=2.0, cap_s=900.0, jitter=0.0, reset_after_s=1800.0)


def build_daemon_set_services(components: Components) -> list[Service]:
    controller = DaemonSetController(components.build_component(NAME)).controller
    return [Service(name=controller.name, run=controller.run)]


class DaemonSetController:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._clock = component.clock
        self._recorder = component.recorder
        self._resource = component.client.calls.get_resource(DaemonSet)
        self._sets = component.informers.get_raw_informer(DaemonSet)
        self._nodes = component.informers.get_informer(Node)
        self._pods = component.informers.get_informer(Pod)
        index_by_controller(self._pods)
        self._revisions = Revisions(
            component, self._resource, hash_label=REVISION_LABEL, hash_of=_compute_template_hash
        )
        self._own_writes = Expectations(self._pods, clock=component.clock)
        self._making = PodControl(component.client, component.recorder, self._resource, self._own_writes)
        self._adoption = ControllerRefManager(component.client, Pod, self._resource)
        self._failures = BackoffTable(_FAILED_PODS, component.entropy)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._list_all_keys,
        )
        enqueue_on(self._sets, self.controller, get_own_key)
        enqueue_on(self._pods, self.controller, build_owner_keys(self._resource))
        enqueue_on(self._nodes, self.controller, self._list_sets_concerned_by)
        enqueue_on(self._revisions.informer, self.controller, build_owner_keys(self._resource))

    async def reconcile(self, key: Key) -> Done | Again:
        found = self._sets.cache.get(key.name, key.namespace)
        if found is None or found.view.metadata.deletion_timestamp is not None:
            return Done()
        metadata = found.view.metadata
        if not self._own_writes.are_fulfilled(metadata.uid):
            return Again(after_s=RECHECK_S)
        established = await self._revisions.ensure_current(
            Owner(
                metadata=metadata,
                template=read_template(found.raw),
                collisions=found.view.status.collision_count or 0,
            )
        )
        selector = parse_label_selector(found.view.spec.selector)
        pods = await self._adoption.claim(metadata, selector, list_candidates(self._pods, metadata))
        view = self._build_view(found.view, pods, established)

        error = await self._apply_plan(view, established)
        if error is not None or self._own_writes.are_fulfilled(metadata.uid):
            await self._update_status(view, collisions=established.collisions)
        if error is not None:
            raise error
        return self._schedule_next(view)

    def _build_view(self, daemon_set: DaemonSet, pods: Iterable[Pod], established: CurrentRevision) -> DaemonView:
        now_s = self._clock.monotonic_s()
        nodes = self._nodes.cache.list()
        uid = daemon_set.metadata.uid
        names = (find_target_node(pod) for pod in pods if pod.status.phase == "Failed")
        return DaemonView(
            daemon_set=daemon_set,
            nodes=nodes,
            pods=tuple(pods),
            revision=established.revision.metadata.labels[REVISION_LABEL],
            now=self._clock.now(),
            waiting=frozenset(name for name in names if not self._failures.is_ready((uid, name), now_s)),
        )

    async def _apply_plan(self, view: DaemonView, established: CurrentRevision) -> PlimsollError | None:
        plan = plan_daemon_set(view)
        owner = view.daemon_set.metadata
        self._record_ended(view, plan)
        template = get_template(established.revision)
        labels = build_revision_labels(view.revision, view.generation)

        async def create(number: int) -> PlimsollError | None:
            body = build_daemon_pod(template, self._resource, owner, node=plan.create_on[number], labels=labels)
            return await self._making.create_as(body, owner)

        created = await run_slow_start_batch(len(plan.create_on), create)
        deleted = await run_concurrently([self._making.delete(pod, owner) for pod in plan.delete])
        if created is None and deleted is None and not plan.create_on and not plan.delete:
            await self._trim(view, established)
        return created or deleted

    def _record_ended(self, view: DaemonView, plan: DaemonPlan) -> None:
        subject = build_event_subject(self._resource, view.daemon_set.metadata)
        for pod in plan.ended:
            where = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {find_target_node(pod)}"
            if pod.status.phase == "Failed":
                self._failures.record_failure(
                    (view.daemon_set.metadata.uid, find_target_node(pod)), self._clock.monotonic_s()
                )
                message = f"Found failed {where}, will try to kill it"
                self._recorder.record(subject, EventType.WARNING, reason="FailedDaemonPod", message=message)
            else:
                message = f"Found succeeded {where}, will try to delete it"
                self._recorder.record(subject, EventType.NORMAL, reason="SucceededDaemonPod", message=message)

    async def _trim(self, view: DaemonView, established: CurrentRevision) -> None:
        hashes = {pod.metadata.labels.get(REVISION_LABEL) for pod in view.pods}
        history = self._revisions.list_history(view.daemon_set.metadata)
        live = {
            controller_revision.metadata.name
            for controller_revision in history
            if controller_revision.metadata.labels.get(REVISION_LABEL) in hashes
        }
        limit = view.daemon_set.spec.revision_history_limit
        await self._revisions.trim(
            view.daemon_set.metadata,
            live={*live, established.revision.metadata.name},
            limit=_DEFAULT_HISTORY if limit is None else limit,
        )

    async def _update_status(self, view: DaemonView, *, collisions: int) -> None:
        status = compute_daemon_set_status(view, collisions=collisions)
        metadata = view.daemon_set.metadata
        if status == view.daemon_set.status:
            return
        body = {"metadata": {"uid": metadata.uid}, "status": _encode_status(status)}
        try:
            await self._client.merge_patch(
                DaemonSet, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )
        except NotFound:
            # It was deleted meanwhile.
            return

    def _schedule_next(self, view: DaemonView) -> Done | Again:
        if not self._own_writes.are_fulfilled(view.daemon_set.metadata.uid):
            return Again(after_s=RECHECK_S)
        uid, now_s = view.daemon_set.metadata.uid, self._clock.monotonic_s()
        waits = [self._failures.get_state((uid, name)).ready_at - now_s for name in view.waiting]
        ready_s = compute_next_availability_s(
            view.pods, min_ready_s=view.daemon_set.spec.min_ready_seconds, now=view.now
        )
        waits += [] if ready_s is None else [ready_s]
        return Again(after_s=min(waits)) if waits else Done()

    def _list_sets_concerned_by(self, change: Change[Any]) -> Iterable[Key]:
        """Every set, if the node changed in what decides whether a pod belongs on it."""
        if isinstance(change, Updated) and _decides(change.old) == _decides(change.new):
            return ()
        return self._list_all_keys()

    def _list_all_keys(self) -> list[Key]:
        return [get_key(raw) for raw in self._sets.cache]


def _decides(node: Node) -> object:
    return (node.metadata.labels, node.spec.taints)


def _compute_template_hash(data: Mapping[str, Any], collisions: int) -> str:
    return compute_template_hash(data["spec"]["template"], collisions or None)


def _encode_status(status: DaemonSetStatus) -> dict[str, Any]:
    counts = {
        "observedGeneration": status.observed_generation,
        "updatedNumberScheduled": status.updated_number_scheduled,
        "numberAvailable": status.number_available,
        "numberUnavailable": status.number_unavailable,
        "collisionCount": status.collision_count or 0,
    }
    return {
        "currentNumberScheduled": status.current_number_scheduled,
        "numberMisscheduled": status.number_misscheduled,
        "desiredNumberScheduled": status.desired_number_scheduled,
        "numberReady": status.number_ready,
        **count_fields(counts),
    }
