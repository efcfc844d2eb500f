"""The table of kinds: names, paths, and the structs they decode into.

The client builds URLs from it, the embedded API server its discovery, and the command line resolves `po` or
`deployments.apps`. The table has the kinds of Kubernetes; `Kinds.extend` adds custom resources. A test compares it
with the discovery answers of a real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from plimsoll.objects.api import (
    apiextensions,
    coordination,
    core,
    events,
    nodes,
    pods,
    policy,
    rbac,
    services,
    storage,
    workloads,
)
from plimsoll.objects.api.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.objects.api.meta import WireObject


class Kinds:
    """Resources by any of their names. Immutable: `extend` returns a new table."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources = tuple(resources)
        self._by_kind = {(resource.api_version, resource.kind): resource for resource in self._resources}
        self._by_plural = {(resource.api_version, resource.plural): resource for resource in self._resources}
        self._by_struct = {resource.struct: resource for resource in self._resources}
        self._by_name: dict[str, Resource] = {}
        for resource in self._resources:
            names = (resource.plural, resource.singular, resource.kind.lower(), *resource.short_names)
            for name in names:
                # The first kind with a short name has it, as kubectl prefers earlier groups: `events` is the core kind.
                self._by_name.setdefault(name, resource)
                self._by_name.setdefault(f"{name}.{resource.group}", resource)
                self._by_name.setdefault(f"{name}.{resource.version}.{resource.group}", resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)

    def extend(self, resources: Iterable[Resource]) -> Self:
        return type(self)((*self._resources, *resources))

    def find_by_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._by_kind.get((api_version, kind))

    def find_by_plural(self, api_version: str, plural: str) -> Resource | None:
        return self._by_plural.get((api_version, plural))

    def find_by_struct(self, struct: type[WireObject]) -> Resource | None:
        return self._by_struct.get(struct)

    def find_by_name(self, name: str) -> Resource | None:
        """Find a resource by a name that kubectl accepts: `po`, `pod`, `Pods`, `deployments.apps`, `deploy.v1.apps`."""
        return self._by_name.get(name.lower())


def _build_resources(group_version: str, *rows: tuple[type[WireObject], str, bool, str]) -> Iterator[Resource]:
    """Rows of (struct, plural, namespaced, short names and `+categories`)."""
    group, _, version = group_version.rpartition("/")
    for struct, plural, namespaced, extras in rows:
        yield Resource(
            group=group,
            version=version,
            kind=struct.get_kind_name(),
            plural=plural,
            singular=struct.get_kind_name().lower(),
            namespaced=namespaced,
            struct=struct,
            short_names=tuple(word for word in extras.split() if not word.startswith("+")),
            categories=tuple(word[1:] for word in extras.split() if word.startswith("+")),
        )


_NAMESPACED: Final = True
_CLUSTER: Final = False

KINDS: Final = Kinds(
    [
        *_build_resources(
            "v1",
            (core.ConfigMap, "configmaps", _NAMESPACED, "cm"),
            (events.Event, "events", _NAMESPACED, "ev"),
            (policy.LimitRange, "limitranges", _NAMESPACED, "limits"),
            (core.Namespace, "namespaces", _CLUSTER, "ns"),
            (nodes.Node, "nodes", _CLUSTER, "no"),
            (storage.PersistentVolumeClaim, "persistentvolumeclaims", _NAMESPACED, "pvc"),
            (storage.PersistentVolume, "persistentvolumes", _CLUSTER, "pv"),
            (pods.Pod, "pods", _NAMESPACED, "po +all"),
            (pods.PodTemplate, "podtemplates", _NAMESPACED, ""),
            (workloads.ReplicationController, "replicationcontrollers", _NAMESPACED, "rc +all"),
            (core.Secret, "secrets", _NAMESPACED, ""),
            (rbac.ServiceAccount, "serviceaccounts", _NAMESPACED, "sa"),
            (services.Service, "services", _NAMESPACED, "svc +all"),
        ),
        *_build_resources(
            "apiextensions.k8s.io/v1",
            (apiextensions.CustomResourceDefinition, "customresourcedefinitions", _CLUSTER, "crd crds +api-extensions"),
        ),
        *_build_resources(
            "apps/v1",
            (workloads.ControllerRevision, "controllerrevisions", _NAMESPACED, ""),
            (workloads.DaemonSet, "daemonsets", _NAMESPACED, "ds +all"),
            (workloads.Deployment, "deployments", _NAMESPACED, "deploy +all"),
            (workloads.ReplicaSet, "replicasets", _NAMESPACED, "rs +all"),
            (workloads.StatefulSet, "statefulsets", _NAMESPACED, "sts +all"),
        ),
        *_build_resources("batch/v1", (workloads.Job, "jobs", _NAMESPACED, "+all")),
        *_build_resources("coordination.k8s.io/v1", (coordination.Lease, "leases", _NAMESPACED, "")),
        *_build_resources("discovery.k8s.io/v1", (services.EndpointSlice, "endpointslices", _NAMESPACED, "")),
        *_build_resources("events.k8s.io/v1", (events.EventsV1Event, "events", _NAMESPACED, "ev")),
        *_build_resources("policy/v1", (policy.PodDisruptionBudget, "poddisruptionbudgets", _NAMESPACED, "pdb")),
        *_build_resources(
            "rbac.authorization.k8s.io/v1",
            (rbac.ClusterRoleBinding, "clusterrolebindings", _CLUSTER, ""),
            (rbac.ClusterRole, "clusterroles", _CLUSTER, ""),
            (rbac.RoleBinding, "rolebindings", _NAMESPACED, ""),
            (rbac.Role, "roles", _NAMESPACED, ""),
        ),
        *_build_resources("scheduling.k8s.io/v1", (policy.PriorityClass, "priorityclasses", _CLUSTER, "pc")),
        *_build_resources(
            "storage.k8s.io/v1",
            (storage.CSINode, "csinodes", _CLUSTER, ""),
            (storage.StorageClass, "storageclasses", _CLUSTER, "sc"),
        ),
    ]
)
