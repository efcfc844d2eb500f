"""Defaults of kinds without pods: services, secrets, storage, nodes, roles. The functions change their argument."""

from __future__ import annotations

import base64
from typing import Any, Final

from plimsoll.objects.builtin.validation.rbac import GROUP
from plimsoll.objects.builtin.validation.services import is_external

Json = dict[str, Any]

_AFFINITY_S: Final = 10800


def default_service(obj: Json) -> None:
    spec = obj["spec"]
    spec["type"] = kind = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = affinity = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        seconds = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds", _AFFINITY_S)
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": seconds}}
    for port in spec.get("ports", []):
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort", 0) in (0, ""):
            port["targetPort"] = port.get("port", 0)
    if spec.get("clusterIP") and not spec.get("clusterIPs") and kind != "ExternalName":
        spec["clusterIPs"] = [spec["clusterIP"]]
    if is_external(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def default_secret(obj: Json) -> None:
    """Copy stringData into data and remove it: it is write-only."""
    obj["type"] = obj.get("type") or "Opaque"
    written = obj.pop("stringData", None)
    if written:
        data = obj.setdefault("data", {})
        for key, text in written.items():
            data[key] = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def default_namespace(obj: Json) -> None:
    name = obj.get("metadata", {}).get("name")
    if name:
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    finalizers = obj["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    status = obj.setdefault("status", {})
    status["phase"] = status.get("phase") or "Active"


def default_node(obj: Json) -> None:
    status = obj.get("status", {})
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def default_persistent_volume(obj: Json) -> None:
    spec = obj["spec"]
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    status = obj.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def default_persistent_volume_claim(obj: Json) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    status = obj.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def limit_range(obj: Json) -> None:
    for limit in obj["spec"].get("limits", []):
        if limit.get("type") != "Container":
            continue
        default = limit.setdefault("default", {})
        request = limit.setdefault("defaultRequest", {})
        for name, amount in limit.get("max", {}).items():
            default.setdefault(name, amount)
        for name, amount in [*default.items(), *limit.get("min", {}).items()]:
            request.setdefault(name, amount)


def default_endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports", []):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_storage_class(obj: Json) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def default_priority_class(obj: Json) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_network_policy(obj: Json) -> None:
    spec = obj["spec"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction, []):
            for port in rule.get("ports", []):
                port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_role_binding(obj: Json) -> None:
    ref = obj.setdefault("roleRef", {})
    ref["apiGroup"] = ref.get("apiGroup") or GROUP
    for subject in obj.get("subjects", []):
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP
