"""The Go type names behind the OpenAPI schemas, as Go's JSON decoder prints them.

Schemas have component names and JSON types, but not names like `v1.RestartPolicy` and `v1.ResourceList`; those are in
the table here. A field that is not in the table is a `string`, which is right for most fields.
"""

from __future__ import annotations

from typing import Final

from plimsoll.objects.builtin.decoding.openapi import Schema, find_reference

_SCALARS: Final[dict[tuple[str | None, str | None], str]] = {
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("integer", None): "int32",
    ("number", "double"): "float64",
    ("number", None): "float64",
    ("boolean", None): "bool",
    ("string", "byte"): "[]uint8",
    ("string", "date-time"): "string",
}

# Struct.field → the named type of a field whose schema has only "string", or a map.
_NAMED: Final = {
    "AzureDiskVolumeSource.cachingMode": "v1.AzureDataDiskCachingMode",
    "AzureDiskVolumeSource.kind": "v1.AzureDataDiskKind",
    "ContainerPort.protocol": "v1.Protocol",
    "Container.imagePullPolicy": "v1.PullPolicy",
    "Container.restartPolicy": "v1.ContainerRestartPolicy",
    "Container.terminationMessagePolicy": "v1.TerminationMessagePolicy",
    "CronJobSpec.concurrencyPolicy": "v1.ConcurrencyPolicy",
    "DaemonSetUpdateStrategy.type": "v1.DaemonSetUpdateStrategyType",
    "DeploymentStrategy.type": "v1.DeploymentStrategyType",
    "EmptyDirVolumeSource.medium": "v1.StorageMedium",
    "EndpointPort.protocol": "v1.Protocol",
    "EphemeralContainer.imagePullPolicy": "v1.PullPolicy",
    "EphemeralContainer.terminationMessagePolicy": "v1.TerminationMessagePolicy",
    "HTTPGetAction.scheme": "v1.URIScheme",
    "HostPathVolumeSource.type": "v1.HostPathType",
    "JobSpec.completionMode": "v1.CompletionMode",
    "JobSpec.podReplacementPolicy": "v1.PodReplacementPolicy",
    "LabelSelectorRequirement.operator": "v1.LabelSelectorOperator",
    "LimitRangeItem.default": "v1.ResourceList",
    "LimitRangeItem.defaultRequest": "v1.ResourceList",
    "LimitRangeItem.max": "v1.ResourceList",
    "LimitRangeItem.maxLimitRequestRatio": "v1.ResourceList",
    "LimitRangeItem.min": "v1.ResourceList",
    "LimitRangeItem.type": "v1.LimitType",
    "ManagedFieldsEntry.operation": "v1.ManagedFieldsOperationType",
    "NamespaceStatus.phase": "v1.NamespacePhase",
    "NodeSelectorRequirement.operator": "v1.NodeSelectorOperator",
    "NodeStatus.allocatable": "v1.ResourceList",
    "NodeStatus.capacity": "v1.ResourceList",
    "ObjectMeta.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "ObjectReference.uid": "types.UID",
    "PersistentVolumeClaimSpec.volumeMode": "v1.PersistentVolumeMode",
    "PersistentVolumeSpec.capacity": "v1.ResourceList",
    "PersistentVolumeSpec.persistentVolumeReclaimPolicy": "v1.PersistentVolumeReclaimPolicy",
    "PersistentVolumeSpec.volumeMode": "v1.PersistentVolumeMode",
    "PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy": "v1.UnhealthyPodEvictionPolicyType",
    "PodReadinessGate.conditionType": "v1.PodConditionType",
    "PodSpec.dnsPolicy": "v1.DNSPolicy",
    "PodSpec.overhead": "v1.ResourceList",
    "PodSpec.preemptionPolicy": "v1.PreemptionPolicy",
    "PodSpec.restartPolicy": "v1.RestartPolicy",
    "PodStatus.phase": "v1.PodPhase",
    "PodStatus.qosClass": "v1.PodQOSClass",
    "PriorityClass.preemptionPolicy": "v1.PreemptionPolicy",
    "ResourceQuotaSpec.hard": "v1.ResourceList",
    "ResourceRequirements.limits": "v1.ResourceList",
    "ResourceRequirements.requests": "v1.ResourceList",
    "Secret.type": "v1.SecretType",
    "ServicePort.protocol": "v1.Protocol",
    "ServiceSpec.externalTrafficPolicy": "v1.ServiceExternalTrafficPolicy",
    "ServiceSpec.internalTrafficPolicy": "v1.ServiceInternalTrafficPolicy",
    "ServiceSpec.ipFamilyPolicy": "v1.IPFamilyPolicy",
    "ServiceSpec.sessionAffinity": "v1.ServiceAffinity",
    "ServiceSpec.type": "v1.ServiceType",
    "StatefulSetSpec.podManagementPolicy": "v1.PodManagementPolicyType",
    "StatefulSetUpdateStrategy.type": "v1.StatefulSetUpdateStrategyType",
    "StorageClass.reclaimPolicy": "v1.PersistentVolumeReclaimPolicy",
    "StorageClass.volumeBindingMode": "v1.VolumeBindingMode",
    "Taint.effect": "v1.TaintEffect",
    "Toleration.effect": "v1.TaintEffect",
    "Toleration.operator": "v1.TolerationOperator",
    "TopologySpreadConstraint.nodeAffinityPolicy": "v1.NodeInclusionPolicy",
    "TopologySpreadConstraint.nodeTaintsPolicy": "v1.NodeInclusionPolicy",
    "TopologySpreadConstraint.whenUnsatisfiable": "v1.UnsatisfiableConstraintAction",
    "VolumeMount.mountPropagation": "v1.MountPropagationMode",
    "VolumeMount.recursiveReadOnly": "v1.RecursiveReadOnlyMode",
    "VolumeResourceRequirements.limits": "v1.ResourceList",
    "VolumeResourceRequirements.requests": "v1.ResourceList",
}

_ITEMS: Final = {
    "PersistentVolumeClaimSpec.accessModes": "v1.PersistentVolumeAccessMode",
    "PersistentVolumeSpec.accessModes": "v1.PersistentVolumeAccessMode",
    "NetworkPolicySpec.policyTypes": "v1.PolicyType",
    "ServiceSpec.ipFamilies": "v1.IPFamily",
    "Capabilities.add": "v1.Capability",
    "Capabilities.drop": "v1.Capability",
    "NamespaceSpec.finalizers": "v1.FinalizerName",
    "ResourceQuotaSpec.scopes": "v1.ResourceQuotaScope",
}


def get_struct_name(component: str) -> str:
    """`io.k8s.api.core.v1.PodSpec` → `PodSpec`."""
    return component.rpartition(".")[2]


def qualify(component: str) -> str:
    """`io.k8s.api.core.v1.PodSpec` → `v1.PodSpec`: the last part of the package and the name."""
    package, _, name = component.rpartition(".")
    return f"{package.rpartition('.')[2]}.{name}"


def get_field_type(schema: Schema, owner: str) -> str:
    """The Go type of the field `owner` ("PodSpec.restartPolicy") with that schema."""
    if owner in _NAMED:
        return _NAMED[owner]
    name = find_reference(schema)
    if name is not None:
        return qualify(name)
    kind = schema.get("type")
    if kind == "array":
        return f"[]{_ITEMS.get(owner) or get_field_type(schema.get('items', {}), '')}"
    if kind == "object":
        return f"map[string]{get_field_type(schema.get('additionalProperties', {}), '')}"
    return _SCALARS.get((kind, schema.get("format"))) or _SCALARS.get((kind, None), "string")


def get_item_type(schema: Schema, owner: str) -> str:
    """The Go type of one element of the list or map `owner`."""
    if schema.get("type") == "array":
        return _ITEMS.get(owner) or get_field_type(schema.get("items", {}), "")
    return get_field_type(schema.get("additionalProperties", {}), "")
