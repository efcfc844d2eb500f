"""The pods of a stateful set: creates, labels and deletes them and their claims, with Events.

Every call is idempotent: names follow from the ordinal, and an existing object is the desired one. A failure is a
return value, so that the reconciliation can still write the status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.controlled_objects.pod_control import (
    build_event_subject,
    is_namespace_terminating,
)
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.own_writes import Expectations
from plimsoll.kube.recorder import EventType
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.workloads.stateful_sets.identity import (
    build_claim_bodies,
    build_claim_name,
    build_identity_labels,
    build_pod_name,
    build_stateful_pod,
    find_claim_owners,
    list_foreign_owners,
    parse_ordinal,
)
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.informer import Informer
    from plimsoll.local.components import Component
    from plimsoll.local.controller_manager.workloads.stateful_sets.identity import StatefulSetSource
    from plimsoll.local.controller_manager.workloads.stateful_sets.plan import StatefulSetView
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.api.workloads import StatefulSet


class ClaimIsLeaving(PlimsollError):
    """A pod cannot be made while a claim of its name is on its way out."""


class StatefulPods:
    """Pods and claims of stateful sets."""

    def __init__(self, component: Component, resource: Resource) -> None:
        self._client = component.client
        self._recorder = component.recorder
        self._resource = resource
        self._pod_resource = component.client.calls.get_resource(Pod)
        self.claims: Informer[PersistentVolumeClaim] = component.informers.get_informer(PersistentVolumeClaim)
        self.own_writes: Expectations[Pod] = Expectations(component.informers.get_informer(Pod), clock=component.clock)

    # ---- pods

    async def create(
        self, owner: StatefulSet, template: Mapping[str, Any], *, source: StatefulSetSource, ordinal: int, revision: str
    ) -> PlimsollError | None:
        """Make the claims and then the pod of an ordinal."""
        metadata = owner.metadata
        error = await self.ensure_claims(owner, source, ordinal)
        if error is not None:
            return error
        body = build_stateful_pod(template, self._resource, metadata, source=source, ordinal=ordinal, revision=revision)
        name = build_pod_name(metadata, ordinal)
        try:
            pod = await self._client.create(Pod, body, namespace=metadata.namespace)
        except AlreadyExists as error:
            # Ours from before, which the cache will show, or another owner's, which has to go first.
            return error
        except PlimsollError as error:
            return self._record_failure(owner, "create", name, error)
        self.own_writes.expect_write(metadata.uid, pod)
        self._record_event(owner, EventType.NORMAL, "SuccessfulCreate", _format_done("create", name, owner))
        return None

    async def delete(self, owner: StatefulSet, pod: Pod) -> PlimsollError | None:
        metadata = pod.metadata
        try:
            await self._client.delete(
                Pod, metadata.name, namespace=metadata.namespace, options=DeleteOptions(uid=metadata.uid)
            )
        except NotFound:
            self.own_writes.expect_deletion(owner.metadata.uid, pod)
            return None
        except PlimsollError as error:
            return self._record_failure(owner, "delete", metadata.name, error)
        self.own_writes.expect_deletion(owner.metadata.uid, pod)
        self._record_event(owner, EventType.NORMAL, "SuccessfulDelete", _format_done("delete", metadata.name, owner))
        return None

    async def relabel(self, owner: StatefulSet, pod: Pod) -> None:
        """Give a pod back the labels by which it is found."""
        ordinal = parse_ordinal(pod, owner.metadata)
        assert ordinal is not None
        body = {"metadata": {"uid": pod.metadata.uid, "labels": build_identity_labels(owner.metadata, ordinal)}}
        patched = await self._client.merge_patch(Pod, pod.metadata.name, body, namespace=pod.metadata.namespace)
        self.own_writes.expect_write(owner.metadata.uid, patched)
        self._record_event(
            owner, EventType.NORMAL, "SuccessfulUpdate", _format_done("update", pod.metadata.name, owner)
        )

    # ---- claims

    async def ensure_claims(self, owner: StatefulSet, source: StatefulSetSource, ordinal: int) -> PlimsollError | None:
        """Make those claims of an ordinal that are not there."""
        metadata = owner.metadata
        owners = find_claim_owners(owner, self._resource, self._pod_resource, None)
        for body in build_claim_bodies(source, metadata, ordinal, owners=owners):
            name = body["metadata"]["name"]
            found = self.claims.cache.get(name, metadata.namespace)
            if found is not None and found.metadata.deletion_timestamp is not None:
                return ClaimIsLeaving(f"pvc {name} is being deleted")
            error = (
                None if found is not None else await self._make_claim(owner, body, build_pod_name(metadata, ordinal))
            )
            if error is not None:
                return error
        return None

    async def update_claim_owners(self, view: StatefulSetView, source: StatefulSetSource) -> PlimsollError | None:
        """Set the owners of every claim by the retention policy."""
        if not source.claims:
            return None
        owner = view.stateful_set
        for pod in view.pods:
            ordinal = parse_ordinal(pod, owner.metadata)
            assert ordinal is not None
            wanted = find_claim_owners(owner, self._resource, self._pod_resource, pod)
            for template in source.claims:
                name = build_claim_name((template.get("metadata") or {}).get("name", ""), owner.metadata, ordinal)
                found = self.claims.cache.get(name, owner.metadata.namespace)
                error = None if found is None else await self._update_claim_owner(owner, found, ordinal, wanted)
                if error is not None:
                    return error
        return None

    async def _make_claim(self, owner: StatefulSet, body: dict[str, Any], pod: str) -> PlimsollError | None:
        name = body["metadata"]["name"]
        try:
            await self._client.create(PersistentVolumeClaim, body, namespace=owner.metadata.namespace)
        except AlreadyExists:
            return None
        except PlimsollError as error:
            message = f"create Claim {name} for Pod {pod} in StatefulSet {owner.metadata.name} failed error: {error}"
            self._record_event(owner, EventType.WARNING, "FailedCreate", message)
            return error
        message = f"create Claim {name} Pod {pod} in StatefulSet {owner.metadata.name} success"
        self._record_event(owner, EventType.NORMAL, "SuccessfulCreate", message)
        return None

    async def _update_claim_owner(
        self, owner: StatefulSet, claim: PersistentVolumeClaim, ordinal: int, wanted: list[dict[str, Any]]
    ) -> PlimsollError | None:
        metadata = claim.metadata
        foreign = list_foreign_owners(metadata.owner_references, owner.metadata, ordinal)
        uids = {item["uid"] for item in wanted} | {owner_reference.uid for owner_reference in foreign}
        if uids == {owner_reference.uid for owner_reference in metadata.owner_references}:
            return None
        gone = [owner_reference for owner_reference in metadata.owner_references if owner_reference.uid not in uids]
        # By key, so that owners which others wrote are neither read nor written here.
        references = [*({"$patch": "delete", "uid": owner_reference.uid} for owner_reference in gone), *wanted]
        body = {"metadata": {"resourceVersion": metadata.resource_version, "ownerReferences": references}}
        try:
            await self._client.patch_strategic(PersistentVolumeClaim, metadata.name, body, namespace=metadata.namespace)
        except NotFound:
            return None
        except PlimsollError as error:
            return error
        return None

    # ---- events

    def _record_failure(self, owner: StatefulSet, verb: str, name: str, error: PlimsollError) -> PlimsollError | None:
        if is_namespace_terminating(error):
            return None
        message = f"{verb} Pod {name} in StatefulSet {owner.metadata.name} failed error: {error}"
        self._record_event(owner, EventType.WARNING, f"Failed{verb.capitalize()}", message)
        return error

    def _record_event(self, owner: StatefulSet, event_type: EventType, reason: str, message: str) -> None:
        subject = build_event_subject(self._resource, owner.metadata)
        self._recorder.record(subject, event_type, reason=reason, message=message)


def _format_done(verb: str, name: str, owner: StatefulSet) -> str:
    return f"{verb} Pod {name} in StatefulSet {owner.metadata.name} successful"
