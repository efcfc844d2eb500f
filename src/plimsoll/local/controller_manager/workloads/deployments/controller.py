"""The deployment controller: replica sets for templates, rolled from the old ones to the new one.

One reconciliation: read the deployment and its sets, plan (`plan`), create, change and delete sets, write the status
and the revision. Every write carries the version it was decided on; while the caches miss earlier writes, nothing is
decided. It never touches pods: that is the replica set controller's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates,
    list_managed_by,
)
from plimsoll.kube.controlled_objects.pod_control import (
    build_controller_reference,
    build_event_subject,
    is_namespace_terminating,
    read_template,
)
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.events import Deleted, Key, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.kube.recorder import EventType
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.workloads.controlled_objects.status_patches import count_fields, encode_condition
from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import (
    POD_TEMPLATE_HASH,
    Fingerprints,
    compute_fingerprint,
    compute_template_hash,
)
from plimsoll.local.controller_manager.workloads.deployments.plan import (
    build_creation_failed_status,
    format_creation_problem,
    plan_rollout,
)
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import get_replicas, is_rolling
from plimsoll.local.controller_manager.workloads.deployments.revisions import REVISION, OwnedSet
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import Deployment, ReplicaSet
from plimsoll.objects.owners import find_controller
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component, Components
    from plimsoll.local.controller_manager.workloads.deployments.plan import NewSet, RolloutPlan, SetChange
    from plimsoll.objects.api.workloads import DeploymentStatus
    from plimsoll.objects.codec.decoding import RawObject

NAME: Final = "deployment-controller"


def build_deployment_services(components: Components) -> list[Service]:
    controller = DeploymentController(components.build_component(NAME)).controller
    return [Service(name=controller.name, run=controller.run)]


class DeploymentController:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component, *, workers: int = 5) -> None:
        self._client = component.client
        self._recorder = component.recorder
        self._clock = component.clock
        self._resource = component.client.calls.get_resource(Deployment)
        self._deployments = component.informers.get_raw_informer(Deployment)
        self._sets = component.informers.get_raw_informer(ReplicaSet)
        self._pods = component.informers.get_informer(Pod)
        index_by_controller(self._sets)
        index_by_controller(self._pods)
        self._own_sets = Expectations(self._sets, clock=component.clock)
        self._own_statuses = Expectations(self._deployments, clock=component.clock)
        self._adoption = ControllerRefManager(component.client, ReplicaSet, self._resource)
        self._fingerprints = Fingerprints()
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(raw) for raw in self._deployments.cache],
            settings=ControllerSettings(workers=workers),
        )
        enqueue_on(self._deployments, self.controller, get_own_key)
        enqueue_on(self._sets, self.controller, self._list_deployments)
        enqueue_on(self._pods, self.controller, self._list_waiting_for_end)

    async def reconcile(self, key: Key) -> Done | Again:
        found = self._deployments.cache.get(key.name, key.namespace)
        if found is None:
            return Done()
        deployment = found.view
        uid = deployment.metadata.uid
        if not (self._own_sets.are_fulfilled(uid) and self._own_statuses.are_fulfilled(uid)):
            return Again(after_s=RECHECK_S)
        if _selects_everything(deployment):
            return await self._refuse(deployment)
        owned = await self._list_owned(found)
        name = "" if any(owned_set.is_new for owned_set in owned) else self._build_new_name(found)
        plan = plan_rollout(
            deployment,
            owned,
            self._clock.now(),
            new_name=name,
            old_pods_left=self._are_old_pods_left(deployment, owned),
        )
        await self._apply_plan(found, plan)
        await self._update_status(deployment, plan.status, plan.revision)
        return Done() if plan.look_again_s is None else Again(after_s=plan.look_again_s)

    # ---- observe

    async def _list_owned(self, found: RawObject[Deployment]) -> list[OwnedSet]:
        metadata = found.view.metadata
        selector = parse_label_selector(found.view.spec.selector)
        sets = await self._adoption.claim(metadata, selector, list_candidates(self._sets, metadata))
        template = self._fingerprints.get_fingerprint(metadata.uid, metadata.generation, found.raw)
        return [OwnedSet(view=raw.view, is_new=self._compute_fingerprint(raw) == template) for raw in sets]

    def _compute_fingerprint(self, raw_object: RawObject[ReplicaSet]) -> bytes:
        return self._fingerprints.get_fingerprint(
            raw_object.view.metadata.uid, raw_object.view.metadata.generation, raw_object.raw
        )

    def _build_new_name(self, found: RawObject[Deployment]) -> str:
        hashed = compute_template_hash(read_template(found.raw), found.view.status.collision_count)
        return f"{found.view.metadata.name}-{hashed}"

    def _are_old_pods_left(self, deployment: Deployment, owned: Sequence[OwnedSet]) -> bool:
        """Only asked where old pods must be gone before new ones come; those that are ending are still there."""
        if is_rolling(deployment):
            return False
        old = [owned_set.view.metadata.uid for owned_set in owned if not owned_set.is_new]
        pods = (pod for uid in old for pod in list_managed_by(self._pods, uid))
        return any(pod.status.phase not in {"Succeeded", "Failed"} for pod in pods)

    # ---- act

    async def _apply_plan(self, found: RawObject[Deployment], plan: RolloutPlan) -> None:
        deployment = found.view
        if plan.create is not None:
            await self._create(found, plan.create)
        for change in plan.changes:
            await self._change(deployment, change)
        for replica_set in plan.remove:
            await self._remove(deployment, replica_set)

    async def _create(self, found: RawObject[Deployment], new: NewSet) -> None:
        deployment = found.view
        body = _set_body(found, new, build_controller_reference(self._resource, deployment.metadata))
        try:
            made = await self._client.create(ReplicaSet, body, namespace=deployment.metadata.namespace)
        except AlreadyExists:
            if not await self._is_ours(found, new.name):
                await self._count_collision(deployment)
                raise
            return
        except PlimsollError as error:
            if not is_namespace_terminating(error):
                status = build_creation_failed_status(deployment, new.name, str(error), self._clock.now())
                await self._update_status(deployment, status, "")
                problem = format_creation_problem(new.name, str(error))
                self._record(deployment, "ReplicaSetCreateError", problem, event_type=EventType.WARNING)
            raise
        self._own_sets.expect_write(deployment.metadata.uid, made)
        if new.replicas:
            self._record(deployment, "ScalingReplicaSet", f"Scaled up replica set {new.name} from 0 to {new.replicas}")

    async def _is_ours(self, found: RawObject[Deployment], name: str) -> bool:
        """Whether the set of that name is the one we are about to make: from before a crash, or unseen as yet."""
        metadata = found.view.metadata
        there = await self._client.get_with_raw(ReplicaSet, name, namespace=metadata.namespace)
        owner = find_controller(there.view.metadata)
        is_same = compute_fingerprint(read_template(there.raw)) == compute_fingerprint(read_template(found.raw))
        return owner is not None and owner.uid == metadata.uid and is_same

    async def _count_collision(self, deployment: Deployment) -> None:
        """Another template has this hash: count it, so that the next name differs."""
        count = (deployment.status.collision_count or 0) + 1
        await self._patch_status(deployment, {"status": {"collisionCount": count}})

    async def _change(self, deployment: Deployment, change: SetChange) -> None:
        metadata = change.replica_set.metadata
        spec = {"replicas": change.replicas, "minReadySeconds": change.min_ready_s}
        changed = {name: value for name, value in spec.items() if value is not None}
        annotations = {"annotations": change.annotations} if change.annotations else {}
        body = {"metadata": {"resourceVersion": metadata.resource_version, **annotations}, "spec": changed}
        written = await self._client.merge_patch(ReplicaSet, metadata.name, body, namespace=metadata.namespace)
        self._own_sets.expect_write(deployment.metadata.uid, written)
        if change.replicas is not None:
            before = get_replicas(change.replica_set)
            way = "up" if change.replicas > before else "down"
            scaled_message = f"Scaled {way} replica set {metadata.name} from {before} to {change.replicas}"
            self._record(deployment, "ScalingReplicaSet", scaled_message)

    async def _remove(self, deployment: Deployment, replica_set: ReplicaSet) -> None:
        metadata = replica_set.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        try:
            await self._client.delete(ReplicaSet, metadata.name, namespace=metadata.namespace, options=options)
        except NotFound:
            return
        self._own_sets.expect_deletion(deployment.metadata.uid, replica_set)

    async def _refuse(self, deployment: Deployment) -> Done:
        message = "This deployment is selecting all pods. A non-empty selector is required."
        self._record(deployment, "SelectingAll", message, event_type=EventType.WARNING)
        if deployment.status.observed_generation < deployment.metadata.generation:
            await self._patch_status(deployment, {"status": {"observedGeneration": deployment.metadata.generation}})
        return Done()

    # ---- status

    async def _update_status(self, deployment: Deployment, status: DeploymentStatus | None, revision: str) -> None:
        body: dict[str, Any] = {}
        if status is not None and status != deployment.status:
            body["status"] = _encode_status(status)
        if revision and deployment.metadata.annotations.get(REVISION) != revision:
            body["metadata"] = {"annotations": {REVISION: revision}}
        if body:
            await self._patch_status(deployment, body)

    async def _patch_status(self, deployment: Deployment, body: dict[str, Any]) -> None:
        metadata = deployment.metadata
        whole = {**body, "metadata": {"resourceVersion": metadata.resource_version, **body.get("metadata", {})}}
        try:
            written = await self._client.merge_patch(
                Deployment, metadata.name, whole, namespace=metadata.namespace, subresource="status"
            )
        except NotFound:
            # It was deleted meanwhile.
            return
        self._own_statuses.expect_write(metadata.uid, written)

    def _record(
        self, deployment: Deployment, reason: str, message: str, *, event_type: EventType = EventType.NORMAL
    ) -> None:
        subject = build_event_subject(self._resource, deployment.metadata)
        self._recorder.record(subject, event_type, reason=reason, message=message)

    # ---- which deployments a change concerns

    def _list_deployments(self, change: Change[Any]) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        for replica_set in list_states(change):
            metadata = replica_set.metadata
            owner = find_controller(metadata)
            if owner is None:
                keys.update(dict.fromkeys(self._list_matching(metadata.namespace, metadata.labels)))
            elif owner.kind == self._resource.kind and owner.api_version == self._resource.api_version:
                keys[Key(metadata.namespace, owner.name)] = None
        return keys

    def _list_matching(self, namespace: str, labels: dict[str, str]) -> Iterable[Key]:
        """Deployments that might take an orphan over."""
        for raw in self._deployments.cache.list(namespace):
            if parse_label_selector(raw.view.spec.selector).matches(labels):
                yield get_key(raw)

    def _list_waiting_for_end(self, change: Change[Any]) -> Iterable[Key]:
        """A pod that is gone may be the last one a deployment waits for before it makes new ones."""
        if not isinstance(change, Deleted):
            return
        owner = find_controller(change.last.metadata)
        namespace = change.last.metadata.namespace
        replica_set = None if owner is None else self._sets.cache.get(owner.name, namespace)
        owner = None if replica_set is None else find_controller(replica_set.view.metadata)
        found = None if owner is None else self._deployments.cache.get(owner.name, namespace)
        if found is not None and not is_rolling(found.view):
            yield get_key(found)


def _selects_everything(deployment: Deployment) -> bool:
    selector = deployment.spec.selector
    return selector is not None and not selector.match_labels and not selector.match_expressions


def _set_body(found: RawObject[Deployment], new: NewSet, owner: dict[str, Any]) -> dict[str, Any]:
    """The new set: the deployment's template and selector, both with the hash as one more label."""
    deployment = found.view
    hashed = {POD_TEMPLATE_HASH: new.name.removeprefix(f"{deployment.metadata.name}-")}
    template = read_template(found.raw)
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **hashed}
    selector = deployment.spec.selector
    assert selector is not None
    expressions: list[dict[str, Any]] = [
        {
            "key": requirement.key,
            "operator": requirement.operator,
            **({"values": list(requirement.values)} if requirement.values else {}),
        }
        for requirement in selector.match_expressions
    ]
    selecting: dict[str, Any] = {"matchLabels": {**selector.match_labels, **hashed}}
    if expressions:
        selecting["matchExpressions"] = expressions
    spec = {
        "replicas": new.replicas,
        "selector": selecting,
        "template": {**template, "metadata": {**metadata, "labels": labels}},
        **({"minReadySeconds": deployment.spec.min_ready_seconds} if deployment.spec.min_ready_seconds else {}),
    }
    about = {"name": new.name, "labels": labels, "annotations": new.annotations, "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": about, "spec": spec}


def _encode_status(status: DeploymentStatus) -> dict[str, Any]:
    counts = {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "unavailableReplicas": status.unavailable_replicas,
    }
    return {
        **count_fields(counts),
        "conditions": [encode_condition(deployment_condition) for deployment_condition in status.conditions] or None,
    }
