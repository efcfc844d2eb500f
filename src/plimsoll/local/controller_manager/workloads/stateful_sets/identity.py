"""The identity of the pods of a stateful set: their names, labels and claims. Pure.

A pod's identity is its ordinal. Everything stable about it follows from set and ordinal: its name, its host name, the
names of its claims. So creating it a second time finds the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_control import (
    build_controller_reference,
    build_pod,
)
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.api.workloads import StatefulSet

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_DELETE: Final = "Delete"


class Ordinals(Value):
    """The ordinals a set wants: from `start` on, before `end`."""

    start: int
    end: int

    def __contains__(self, ordinal: int) -> bool:
        return self.start <= ordinal < self.end


def get_desired_ordinals(stateful_set: StatefulSet) -> Ordinals:
    spec = stateful_set.spec
    start = spec.ordinals.start if spec.ordinals is not None else 0
    return Ordinals(start=start, end=start + (1 if spec.replicas is None else spec.replicas))


def build_pod_name(owner: ObjectMeta, ordinal: int) -> str:
    return f"{owner.name}-{ordinal}"


def parse_ordinal(pod: Pod, owner: ObjectMeta) -> int | None:
    """The pod's place in the set; None for a name that is not the set's."""
    prefix, _, digits = pod.metadata.name.rpartition("-")
    return int(digits) if prefix == owner.name and digits.isascii() and digits.isdigit() else None


def build_identity_labels(owner: ObjectMeta, ordinal: int) -> dict[str, str]:
    return {POD_NAME_LABEL: build_pod_name(owner, ordinal), POD_INDEX_LABEL: str(ordinal)}


def has_identity(pod: Pod, owner: ObjectMeta, ordinal: int) -> bool:
    return build_identity_labels(owner, ordinal).items() <= pod.metadata.labels.items()


def build_claim_name(claim: str, owner: ObjectMeta, ordinal: int) -> str:
    return f"{claim}-{owner.name}-{ordinal}"


class StatefulSetSource(Value):
    """A stateful set as it was written: what its pods and claims are copied from."""

    claims: tuple[dict[str, Any], ...] = ()
    service_name: str = ""
    match_labels: dict[str, str] = {}


def build_stateful_pod(
    template: Mapping[str, Any],
    resource: Resource,
    owner: ObjectMeta,
    *,
    source: StatefulSetSource,
    ordinal: int,
    revision: str,
) -> dict[str, Any]:
    """The pod of one ordinal, made from the template of one revision."""
    body = build_pod(template, resource, owner, name=build_pod_name(owner, ordinal))
    metadata = body["metadata"]
    metadata["generateName"] = f"{owner.name}-"
    metadata["labels"] = {
        **metadata.get("labels", {}),
        **build_identity_labels(owner, ordinal),
        REVISION_LABEL: revision,
    }
    spec = {**body["spec"], "hostname": build_pod_name(owner, ordinal)}
    if source.service_name:
        spec["subdomain"] = source.service_name
    if source.claims:
        spec["volumes"] = _build_volumes(spec.get("volumes") or [], source, owner, ordinal)
    body["spec"] = spec
    return body


def build_claim_bodies(
    source: StatefulSetSource, owner: ObjectMeta, ordinal: int, *, owners: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The claims a pod needs, in the order of their templates."""
    bodies = []
    for template in source.claims:
        given = template.get("metadata") or {}
        metadata: dict[str, Any] = {
            "name": build_claim_name(given.get("name", ""), owner, ordinal),
            "namespace": owner.namespace,
            "labels": {**(given.get("labels") or {}), **source.match_labels},
        }
        if given.get("annotations"):
            metadata["annotations"] = given["annotations"]
        if owners:
            metadata["ownerReferences"] = owners
        bodies.append({"metadata": metadata, "spec": template.get("spec") or {}})
    return bodies


def find_claim_owners(
    stateful_set: StatefulSet, resource: Resource, pods: Resource, pod: Pod | None
) -> list[dict[str, Any]]:
    """The owners of a claim by the retention policy: the set, the pod that is scaled down, or none."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return []
    ordinal = None if pod is None else parse_ordinal(pod, stateful_set.metadata)
    is_condemned = ordinal is not None and ordinal not in get_desired_ordinals(stateful_set)
    if policy.when_scaled == _DELETE and is_condemned:
        assert pod is not None
        return [build_controller_reference(pods, pod.metadata)]
    if policy.when_deleted == _DELETE:
        return [build_controller_reference(resource, stateful_set.metadata)]
    return []


def list_foreign_owners(
    references: tuple[OwnerReference, ...], owner: ObjectMeta, ordinal: int
) -> list[OwnerReference]:
    """Owners of a claim that are neither the set nor the pod of that ordinal."""
    ours = (("StatefulSet", owner.name), ("Pod", build_pod_name(owner, ordinal)))
    return [
        owner_reference for owner_reference in references if (owner_reference.kind, owner_reference.name) not in ours
    ]


def _build_volumes(
    own: list[dict[str, Any]], source: StatefulSetSource, owner: ObjectMeta, ordinal: int
) -> list[dict[str, Any]]:
    """Claims take the place of volumes of the same name."""
    names = [(template.get("metadata") or {}).get("name", "") for template in source.claims]
    claimed = [
        {"name": name, "persistentVolumeClaim": {"claimName": build_claim_name(name, owner, ordinal)}} for name in names
    ]
    return [*claimed, *(volume for volume in own if volume.get("name") not in names)]
