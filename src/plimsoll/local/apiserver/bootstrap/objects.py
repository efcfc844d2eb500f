"""The objects of a new cluster: namespaces with their contents, priority classes, roles and bindings.

They are stored at the first start, in this order; `install` adds uids and times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.bootstrap.roles import build_access_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_ROOT_CA: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
_PRIORITIES: Final = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def build_bootstrap_objects(*, ca_certificate: str = "") -> Iterator[Json]:
    """Namespaces and what is in them, priority classes, roles and bindings.

    `ca_certificate` (PEM) is what pods would check this server with; without it there are no kube-root-ca.crt maps.
    """
    for name in NAMESPACES:
        yield _build_namespace(name)
    for name in NAMESPACES:
        yield from build_namespace_contents(name, ca_certificate=ca_certificate)
    for name, (value, description) in _PRIORITIES.items():
        yield _build_priority_class(name, value=value, description=description)
    yield from build_access_objects()


def build_namespace_contents(namespace: str, *, ca_certificate: str = "") -> Iterator[Json]:
    """The ServiceAccount that pods run as by default, and the certificate they trust."""
    yield {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default", "namespace": namespace}}
    if ca_certificate:
        yield {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": "kube-root-ca.crt",
                "namespace": namespace,
                "annotations": {"kubernetes.io/description": _ROOT_CA},
            },
            "data": {"ca.crt": ca_certificate},
        }


def _build_namespace(name: str) -> Json:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _build_priority_class(name: str, *, value: int, description: str) -> Json:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }
