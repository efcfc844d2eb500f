"""The fields whose zero value is significant: Go's protobuf has zeros that its JSON omits, and zeros that it has.

A pointer field is sent only if it was set, so its zero is significant (`replicas: 0`, `storageClassName: ""`); a
required field is always written. Go's `omitempty` omits any other zero. The recorded schemas do not show pointers, so
the table here lists them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from plimsoll.objects.builtin.decoding import openapi

_OPTIONAL: Final = ("optional",)
_MODE: Final = ("mode",)

_POINTERS: Final[dict[str, tuple[str, ...]]] = {
    # apps, batch, autoscaling
    "CronJobSpec": (
        "failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit", "suspend", "timeZone",
    ),
    "DaemonSetSpec": ("revisionHistoryLimit",),
    "DaemonSetStatus": ("collisionCount",),
    "DeploymentSpec": ("progressDeadlineSeconds", "replicas", "revisionHistoryLimit"),
    "DeploymentStatus": ("collisionCount", "terminatingReplicas"),
    "HorizontalPodAutoscalerSpec": ("minReplicas", "targetCPUUtilizationPercentage"),
    "HorizontalPodAutoscalerStatus": ("currentCPUUtilizationPercentage", "observedGeneration"),
    "JobSpec": (
        "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions", "managedBy",
        "manualSelector", "maxFailedIndexes", "parallelism", "podReplacementPolicy", "suspend",
        "ttlSecondsAfterFinished",
    ),
    "JobStatus": ("failedIndexes", "ready", "terminating"),
    "PodFailurePolicyOnExitCodesRequirement": ("containerName",),
    "ReplicaSetSpec": ("replicas",),
    "ReplicaSetStatus": ("terminatingReplicas",),
    "ReplicationControllerSpec": ("replicas",),
    "RollingUpdateStatefulSetStrategy": ("partition",),
    "StatefulSetSpec": ("replicas", "revisionHistoryLimit"),
    "StatefulSetStatus": ("collisionCount",),
    "SuccessPolicyRule": ("succeededCount", "succeededIndexes"),
    # pods
    "AppArmorProfile": ("localhostProfile",),
    "ClusterTrustBundleProjection": ("name", "optional", "signerName"),
    "ConfigMapEnvSource": _OPTIONAL,
    "ConfigMapKeySelector": _OPTIONAL,
    "ConfigMapProjection": _OPTIONAL,
    "ConfigMapVolumeSource": ("defaultMode", "optional"),
    "Container": ("restartPolicy",),
    "ContainerStatus": ("started",),
    "DownwardAPIVolumeFile": _MODE,
    "DownwardAPIVolumeSource": ("defaultMode",),
    "EphemeralContainerCommon": ("restartPolicy",),
    "FileKeySelector": _OPTIONAL,
    "GRPCAction": ("service",),
    "KeyToPath": _MODE,
    "Lifecycle": ("stopSignal",),
    "PodCertificateProjection": ("maxExpirationSeconds",),
    "PodDNSConfigOption": ("value",),
    "PodResourceClaim": ("resourceClaimName", "resourceClaimTemplateName"),
    "PodResourceClaimStatus": ("resourceClaimName",),
    "PodSecurityContext": (
        "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxChangePolicy",
        "supplementalGroupsPolicy",
    ),
    "PodSpec": (
        "activeDeadlineSeconds", "automountServiceAccountToken", "enableServiceLinks", "hostUsers", "hostnameOverride",
        "preemptionPolicy", "priority", "runtimeClassName", "setHostnameAsFQDN", "shareProcessNamespace",
        "terminationGracePeriodSeconds",
    ),
    "Probe": ("terminationGracePeriodSeconds",),
    "ProjectedVolumeSource": ("defaultMode",),
    "SeccompProfile": ("localhostProfile",),
    "SecretEnvSource": _OPTIONAL,
    "SecretKeySelector": _OPTIONAL,
    "SecretProjection": _OPTIONAL,
    "SecretVolumeSource": ("defaultMode", "optional"),
    "SecurityContext": (
        "allowPrivilegeEscalation", "privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsNonRoot",
        "runAsUser",
    ),
    "ServiceAccountTokenProjection": ("expirationSeconds",),
    "Toleration": ("tolerationSeconds",),
    "TopologySpreadConstraint": ("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    "VolumeMount": ("mountPropagation", "recursiveReadOnly"),
    "WindowsSecurityContextOptions": ("gmsaCredentialSpec", "gmsaCredentialSpecName", "hostProcess", "runAsUserName"),
    # volumes and storage
    "AzureDiskVolumeSource": ("cachingMode", "fsType", "kind", "readOnly"),
    "AzureFilePersistentVolumeSource": ("secretNamespace",),
    "CSIDriverSpec": (
        "attachRequired", "fsGroupPolicy", "nodeAllocatableUpdatePeriodSeconds", "podInfoOnMount", "requiresRepublish",
        "seLinuxMount", "storageCapacity",
    ),
    "CSIVolumeSource": ("fsType", "readOnly"),
    "FCVolumeSource": ("lun",),
    "GlusterfsPersistentVolumeSource": ("endpointsNamespace",),
    "HostPathVolumeSource": ("type",),
    "ISCSIPersistentVolumeSource": ("initiatorName",),
    "ISCSIVolumeSource": ("initiatorName",),
    "LocalVolumeSource": ("fsType",),
    "PersistentVolumeClaimSpec": ("storageClassName", "volumeAttributesClassName", "volumeMode"),
    "PersistentVolumeClaimStatus": ("currentVolumeAttributesClassName",),
    "PersistentVolumeSpec": ("volumeAttributesClassName", "volumeMode"),
    "StorageClass": ("allowVolumeExpansion", "reclaimPolicy", "volumeBindingMode"),
    "TokenRequest": ("expirationSeconds",),
    "TypedLocalObjectReference": ("apiGroup",),
    "TypedObjectReference": ("apiGroup", "namespace"),
    "VolumeAttachmentSource": ("persistentVolumeName",),
    "VolumeError": ("errorCode",),
    "VolumeNodeResources": ("count",),
    # services and networking
    "ClientIPConfig": ("timeoutSeconds",),
    "Endpoint": ("hostname", "nodeName", "zone"),
    "EndpointAddress": ("nodeName",),
    "EndpointConditions": ("ready", "serving", "terminating"),
    "EndpointPort": ("appProtocol", "name", "port", "protocol"),
    "HTTPIngressPath": ("pathType",),
    "IngressClassParametersReference": ("apiGroup", "namespace", "scope"),
    "IngressSpec": ("ingressClassName",),
    "LoadBalancerIngress": ("ipMode",),
    "NetworkPolicyPort": ("endPort", "protocol"),
    "PortStatus": ("error",),
    "ServicePort": ("appProtocol",),
    "ServiceSpec": ("allocateLoadBalancerNodePorts", "internalTrafficPolicy", "ipFamilyPolicy", "loadBalancerClass"),
    # the rest
    "ConfigMap": ("immutable",),
    "CustomResourceDefinitionVersion": ("deprecationWarning",),
    "CustomResourceSubresourceScale": ("labelSelectorPath",),
    "DeleteOptions": (
        "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
        "propagationPolicy",
    ),
    "JSONSchemaProps": (
        "$ref", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
        "minimum", "multipleOf", "x-kubernetes-list-type", "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
    ),
    "LeaseSpec": ("holderIdentity", "leaseDurationSeconds", "leaseTransitions", "preferredHolder", "strategy"),
    "ListMeta": ("remainingItemCount",),
    "NodeFeatures": ("supplementalGroupsPolicy",),
    "NodeRuntimeHandlerFeatures": ("recursiveReadOnlyMounts", "userNamespaces"),
    "NodeSwapStatus": ("capacity",),
    "ObjectMeta": ("deletionGracePeriodSeconds",),
    "OwnerReference": ("blockOwnerDeletion", "controller"),
    "PatchOptions": ("force",),
    "PodDisruptionBudgetSpec": ("unhealthyPodEvictionPolicy",),
    "Preconditions": ("resourceVersion", "uid"),
    "PriorityClass": ("preemptionPolicy",),
    "Secret": ("immutable",),
    "ServiceAccount": ("automountServiceAccountToken",),
    "ServiceReference": ("path", "port"),
    "TokenRequestSpec": ("expirationSeconds",),
    "ValidationRule": ("optionalOldSelf", "reason"),
    "WebhookClientConfig": ("url",),
}  # fmt: skip


# In the core group these are plain fields; the table means the EndpointPort of discovery.
_NO_POINTERS: Final = {"k8s.io.api.core.v1.EndpointPort": ("name", "protocol")}


@cache
def list_significant_zeros(message: str) -> frozenset[str]:
    """The JSON names of a message's fields whose zero is significant."""
    pointers = set(_POINTERS.get(message.rpartition(".")[2], ())) - set(_NO_POINTERS.get(message, ()))
    return frozenset(pointers | _list_required_fields(message))


def _list_required_fields(message: str) -> set[str]:
    name = message.replace("k8s.io.", "io.k8s.", 1).replace("apiextensions_apiserver", "apiextensions-apiserver")
    try:
        return set(openapi.load_component(name).get("required", ()))
    except LookupError:
        return set()
