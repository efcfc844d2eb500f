"""The built-in resources that the server serves: names, verbs and subresources as a 1.34 server lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.local.apiserver.resources.registry import ALL_VERBS, ServedResource, Subresource

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREATE: Final = ("create",)
_CHANGED: Final = ("get", "patch", "update")
_ALL_BUT_COLLECTION: Final = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
# Listed and always empty: there is nothing here that would scale by metrics, so none is taken in.
_READ: Final = ("get", "list", "watch")

_STATUS: Final = "status"
_SCALE: Final = "scale:autoscaling/v1/Scale"


class _Row(NamedTuple):
    """One resource. `extras` are short names and `+categories`; `parts` subresources, see `_parse_subresource`."""

    kind: str
    plural: str
    extras: str = ""
    parts: tuple[str, ...] = ()
    version_hash: str = ""
    verbs: tuple[str, ...] = ALL_VERBS
    namespaced: bool = True


_CLUSTER: Final = False

_TABLE: Final[dict[str, tuple[_Row, ...]]] = {
    "v1": (
        _Row("Binding", "bindings", verbs=_CREATE),
        _Row("ConfigMap", "configmaps", "cm", version_hash="qFsyl6wFWjQ="),
        _Row("Endpoints", "endpoints", "ep", version_hash="fWeeMqaN/OA="),
        _Row("Event", "events", "ev", version_hash="r2yiGXH7wu8="),
        _Row("LimitRange", "limitranges", "limits", version_hash="EBKMFVe6cwo="),
        _Row(
            "Namespace",
            "namespaces",
            "ns",
            ("finalize!", _STATUS),
            "Q3oi5N2YM8M=",
            verbs=_ALL_BUT_COLLECTION,
            namespaced=_CLUSTER,
        ),
        _Row("Node", "nodes", "no", (_STATUS,), "XwShjMxG9Fs=", namespaced=_CLUSTER),
        _Row("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", (_STATUS,), "QWTyNDq0dC4="),
        _Row("PersistentVolume", "persistentvolumes", "pv", (_STATUS,), "HN/zwEC+JgM=", namespaced=_CLUSTER),
        _Row(
            "Pod",
            "pods",
            "po +all",
            ("binding+:v1/Binding", "ephemeralcontainers", "eviction+:policy/v1/Eviction", "log?", "resize", _STATUS),
            "xPOwRZ+Yhw8=",
        ),
        _Row("PodTemplate", "podtemplates", version_hash="LIXB2x4IFpk="),
        _Row("ReplicationController", "replicationcontrollers", "rc +all", (_SCALE, _STATUS), "Jond2If31h0="),
        _Row("ResourceQuota", "resourcequotas", "quota", (_STATUS,), "8uhSgffRX6w="),
        _Row("Secret", "secrets", version_hash="S6u1pOWzb84="),
        _Row(
            "ServiceAccount", "serviceaccounts", "sa", ("token+:authentication.k8s.io/v1/TokenRequest",), "pbx9ZvyFpBE="
        ),
        _Row("Service", "services", "svc +all", (_STATUS,), "0/CO1lhkEBI="),
    ),
    "apiextensions.k8s.io/v1": (
        _Row(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "crd crds +api-extensions",
            (_STATUS,),
            "jfWCUB31mvA=",
            namespaced=_CLUSTER,
        ),
    ),
    "apps/v1": (
        _Row("ControllerRevision", "controllerrevisions", version_hash="85nkx63pcBU="),
        _Row("DaemonSet", "daemonsets", "ds +all", (_STATUS,), "dd7pWHUlMKQ="),
        _Row("Deployment", "deployments", "deploy +all", (_SCALE, _STATUS), "8aSe+NMegvE="),
        _Row("ReplicaSet", "replicasets", "rs +all", (_SCALE, _STATUS), "P1RzHs8/mWQ="),
        _Row("StatefulSet", "statefulsets", "sts +all", (_SCALE, _STATUS), "H+vl74LkKdo="),
    ),
    "authentication.k8s.io/v1": (
        _Row("SelfSubjectReview", "selfsubjectreviews", verbs=_CREATE, namespaced=_CLUSTER),
        _Row("TokenReview", "tokenreviews", verbs=_CREATE, namespaced=_CLUSTER),
    ),
    "authorization.k8s.io/v1": (
        _Row("LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE),
        _Row("SelfSubjectAccessReview", "selfsubjectaccessreviews", verbs=_CREATE, namespaced=_CLUSTER),
        _Row("SelfSubjectRulesReview", "selfsubjectrulesreviews", verbs=_CREATE, namespaced=_CLUSTER),
        _Row("SubjectAccessReview", "subjectaccessreviews", verbs=_CREATE, namespaced=_CLUSTER),
    ),
    "autoscaling/v2": (
        _Row("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa +all", (), "qwQve8ut294=", verbs=_READ),
    ),
    "autoscaling/v1": (
        _Row("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa +all", (), "qwQve8ut294=", verbs=_READ),
    ),
    "batch/v1": (
        _Row("CronJob", "cronjobs", "cj +all", (_STATUS,), "sd5LIXh4Fjs="),
        _Row("Job", "jobs", "+all", (_STATUS,), "mudhfqk/qZY="),
    ),
    "coordination.k8s.io/v1": (_Row("Lease", "leases", version_hash="gqkMMb/YqFM="),),
    "discovery.k8s.io/v1": (_Row("EndpointSlice", "endpointslices", version_hash="qgS0xkrxYAI="),),
    "events.k8s.io/v1": (_Row("Event", "events", "ev", version_hash="r2yiGXH7wu8="),),
    "networking.k8s.io/v1": (_Row("NetworkPolicy", "networkpolicies", "netpol", version_hash="YpfwF18m1G8="),),
    "policy/v1": (_Row("PodDisruptionBudget", "poddisruptionbudgets", "pdb", (_STATUS,), "EVWiDmWqyJw="),),
    "rbac.authorization.k8s.io/v1": (
        _Row("ClusterRoleBinding", "clusterrolebindings", version_hash="48tpQ8gZHFc=", namespaced=_CLUSTER),
        _Row("ClusterRole", "clusterroles", version_hash="bYE5ZWDrJ44=", namespaced=_CLUSTER),
        _Row("RoleBinding", "rolebindings", version_hash="eGsCzGH6b1g="),
        _Row("Role", "roles", version_hash="7FuwZcIIItM="),
    ),
    "scheduling.k8s.io/v1": (
        _Row("PriorityClass", "priorityclasses", "pc", version_hash="1QwjyaZjj3Y=", namespaced=_CLUSTER),
    ),
    "storage.k8s.io/v1": (
        _Row("CSIDriver", "csidrivers", version_hash="hL6j/rwBV5w=", namespaced=_CLUSTER),
        _Row("CSINode", "csinodes", version_hash="Pe62DkZtjuo=", namespaced=_CLUSTER),
        _Row("CSIStorageCapacity", "csistoragecapacities", version_hash="xeVl+2Ly1kE="),
        _Row("StorageClass", "storageclasses", "sc", version_hash="K+m6uJwbjGY=", namespaced=_CLUSTER),
        _Row("VolumeAttachment", "volumeattachments", "", (_STATUS,), "tJx/ezt6UDU=", namespaced=_CLUSTER),
    ),
}
# Resources that are served in two groups or versions and stored once: where, and as what.
_STORED_ELSEWHERE: Final = {
    ("events.k8s.io/v1", "Event"): ("events", "v1"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): ("autoscaling/horizontalpodautoscalers", "autoscaling/v2"),
}


def list_builtin_resources() -> Iterator[ServedResource]:
    """Everything in the table, in its order."""
    for api_version, rows in _TABLE.items():
        for row in rows:
            yield _build_resource(api_version, row)


def _build_resource(api_version: str, row: _Row) -> ServedResource:
    group, _, version = api_version.rpartition("/")
    own_storage = (f"{group}/{row.plural}" if group else row.plural, api_version)
    stored_as, storage_version = _STORED_ELSEWHERE.get((api_version, row.kind), own_storage)
    return ServedResource(
        group=group,
        version=version,
        kind=row.kind,
        plural=row.plural,
        singular=row.kind.lower(),
        namespaced=row.namespaced,
        stored_as=stored_as,
        storage_version=storage_version,
        list_kind=f"{row.kind}List",
        verbs=row.verbs,
        short_names=tuple(word for word in row.extras.split() if not word.startswith("+")),
        categories=tuple(word[1:] for word in row.extras.split() if word.startswith("+")),
        subresources=tuple(_parse_subresource(part, row.kind) for part in row.parts),
        storage_version_hash=row.version_hash,
    )


_PART_VERBS: Final = {"+": _CREATE, "!": ("update",), "?": ("get",)}


def _parse_subresource(part: str, kind: str) -> Subresource:
    """`name`, a mark for what can be done with it (none: get, patch, update) and `:apiVersion/Kind` of its body."""
    name, _, body = part.partition(":")
    verbs = _PART_VERBS.get(name[-1], _CHANGED)
    bare = name.rstrip("+!?")
    if not body:
        return Subresource(name=bare, verbs=verbs, kind=kind)
    api_version, _, body_kind = body.rpartition("/")
    group, _, version = api_version.rpartition("/")
    # Discovery names the group and version only where they are not the resource's own.
    return Subresource(name=bare, verbs=verbs, kind=body_kind, group=group, version=version if group else "")
