"""The default roles of Kubernetes 1.34, as a table.

Left out are the roles of single controllers (`system:controller:…`), of certificate signing and of resource claims:
this server does not serve them. Subjects are written `Group name`, `User name` and `ServiceAccount namespace/name`.
"""

from __future__ import annotations

from typing import Final

from plimsoll.local.apiserver.authorization.rules import Rule

READ: Final = "get list watch"
WRITE: Final = "create delete deletecollection patch update"
READ_WRITE: Final = "create delete deletecollection get list patch update watch"

# Roles of this name are parts of the aggregated roles below.
PART_OF: Final = "system:aggregate-to-"

Rules = tuple[Rule, ...]


def allow(verbs: str, resources: str, *, of: str = "", named: str = "") -> Rule:
    """Verbs and resources separated by spaces, `of` one or several API groups (the core group by default)."""
    groups = tuple(of.split(",")) if of else ("",)
    return Rule(verbs=verbs.split(), api_groups=groups, resources=resources.split(), names=named.split())


def visit(urls: str, verbs: str = "get") -> Rule:
    return Rule(verbs=verbs.split(), urls=urls.split())


_EVENTS: Final = allow("create patch update", "events", of=",events.k8s.io")
_TOKEN_REVIEWS: Final = allow("create", "tokenreviews", of="authentication.k8s.io")
_ACCESS_REVIEWS: Final = allow("create", "subjectaccessreviews", of="authorization.k8s.io")

# The roles that are made of others, and the one each of them is itself a part of.
AGGREGATED: Final = {"admin": "", "edit": "admin", "view": "edit"}

_TO_ADMIN: Final[Rules] = (
    allow("create", "localsubjectaccessreviews", of="authorization.k8s.io"),
    allow(READ_WRITE, "rolebindings roles", of="rbac.authorization.k8s.io"),
)

_TO_EDIT: Final[Rules] = (
    allow(READ, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    allow("impersonate", "serviceaccounts"),
    allow(WRITE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    allow("create", "pods/eviction"),
    allow(
        WRITE,
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets"
        " serviceaccounts services services/proxy",
    ),
    allow("create", "serviceaccounts/token"),
    allow(
        WRITE,
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets"
        " statefulsets/scale",
        of="apps",
    ),
    allow(WRITE, "horizontalpodautoscalers", of="autoscaling"),
    allow(WRITE, "cronjobs jobs", of="batch"),
    allow(
        WRITE,
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets"
        " replicasets/scale replicationcontrollers/scale",
        of="extensions",
    ),
    allow(WRITE, "poddisruptionbudgets", of="policy"),
    allow(WRITE, "ingresses networkpolicies", of="networking.k8s.io"),
    allow(READ_WRITE, "leases", of="coordination.k8s.io"),
)

# Secrets are not among them: who reads them can act as every ServiceAccount of the namespace.
_TO_VIEW: Final[Rules] = (
    allow(
        READ,
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers"
        " replicationcontrollers/scale serviceaccounts services services/status",
    ),
    allow(
        READ,
        "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status"
        " resourcequotas resourcequotas/status",
    ),
    allow(READ, "namespaces"),
    allow(READ, "endpointslices", of="discovery.k8s.io"),
    allow(
        READ,
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets"
        " replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
        of="apps",
    ),
    allow(READ, "horizontalpodautoscalers horizontalpodautoscalers/status", of="autoscaling"),
    allow(READ, "cronjobs cronjobs/status jobs jobs/status", of="batch"),
    allow(
        READ,
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status"
        " networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
        of="extensions",
    ),
    allow(READ, "poddisruptionbudgets poddisruptionbudgets/status", of="policy"),
    allow(READ, "ingresses ingresses/status networkpolicies", of="networking.k8s.io"),
)

_CONTROLLER_MANAGER: Final[Rules] = (
    _EVENTS,
    allow("create", "leases", of="coordination.k8s.io"),
    allow("get update", "leases", of="coordination.k8s.io", named="kube-controller-manager"),
    allow("create", "secrets serviceaccounts"),
    allow("delete", "secrets"),
    allow("get", "configmaps namespaces secrets serviceaccounts"),
    allow("update", "secrets serviceaccounts"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    allow("list watch", "*", of="*"),
    allow("create", "serviceaccounts/token"),
)

_SCHEDULER: Final[Rules] = (
    _EVENTS,
    allow("create", "leases", of="coordination.k8s.io"),
    allow("get update", "leases", of="coordination.k8s.io", named="kube-scheduler"),
    allow(READ, "nodes"),
    allow("delete get list watch", "pods"),
    allow("create", "bindings pods/binding"),
    allow("patch update", "pods/status"),
    allow(READ, "replicationcontrollers services"),
    allow(READ, "replicasets", of="apps,extensions"),
    allow(READ, "statefulsets", of="apps"),
    allow(READ, "poddisruptionbudgets", of="policy"),
    allow(READ, "persistentvolumeclaims persistentvolumes"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    allow(READ, "csinodes", of="storage.k8s.io"),
    allow(READ, "namespaces"),
    allow(READ, "csidrivers", of="storage.k8s.io"),
    allow(READ, "csistoragecapacities", of="storage.k8s.io"),
)

_NODE: Final[Rules] = (
    _TOKEN_REVIEWS,
    allow("create", "localsubjectaccessreviews subjectaccessreviews", of="authorization.k8s.io"),
    allow(READ, "services"),
    allow("create get list watch", "nodes"),
    allow("patch update", "nodes/status"),
    allow("patch update", "nodes"),
    allow("create patch update", "events"),
    allow(READ, "pods"),
    allow("create delete", "pods"),
    allow("patch update", "pods/status"),
    allow("create", "pods/eviction"),
    allow(READ, "configmaps secrets"),
    allow("get", "persistentvolumeclaims persistentvolumes"),
    allow("get", "endpoints"),
    allow("create get list watch", "certificatesigningrequests", of="certificates.k8s.io"),
    allow("create delete get patch update", "leases", of="coordination.k8s.io"),
    allow("get", "volumeattachments", of="storage.k8s.io"),
    allow("create", "serviceaccounts/token"),
    allow("get patch update", "persistentvolumeclaims/status"),
    allow(READ, "csidrivers", of="storage.k8s.io"),
    allow("create delete get patch update", "csinodes", of="storage.k8s.io"),
    allow(READ, "runtimeclasses", of="node.k8s.io"),
)

CLUSTER_ROLES: Final[dict[str, Rules]] = {
    "cluster-admin": (allow("*", "*", of="*"), visit("*", "*")),
    f"{PART_OF}admin": _TO_ADMIN,
    f"{PART_OF}edit": _TO_EDIT,
    f"{PART_OF}view": _TO_VIEW,
    "system:auth-delegator": (_TOKEN_REVIEWS, _ACCESS_REVIEWS),
    "system:basic-user": (
        allow("create", "selfsubjectaccessreviews selfsubjectrulesreviews", of="authorization.k8s.io"),
        allow("create", "selfsubjectreviews", of="authentication.k8s.io"),
    ),
    "system:discovery": (
        visit("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ),
    "system:kube-aggregator": (allow(READ, "endpoints services"),),
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
    "system:kube-dns": (
        allow("list watch", "endpoints services"),
        allow("list watch", "endpointslices", of="discovery.k8s.io"),
    ),
    "system:kube-scheduler": _SCHEDULER,
    "system:kubelet-api-admin": (
        allow(READ, "nodes"),
        allow("proxy", "nodes"),
        allow("*", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
    ),
    "system:monitoring": (visit("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),),
    "system:node": _NODE,
    "system:node-problem-detector": (allow("get", "nodes"), allow("patch", "nodes/status"), _EVENTS),
    "system:node-proxier": (
        allow("list watch", "endpoints services"),
        allow(READ, "nodes"),
        _EVENTS,
        allow("list watch", "endpointslices", of="discovery.k8s.io"),
    ),
    "system:persistent-volume-provisioner": (
        allow("create delete get list watch", "persistentvolumes"),
        allow("get list update watch", "persistentvolumeclaims"),
        allow(READ, "storageclasses", of="storage.k8s.io"),
        allow("watch", "events"),
        _EVENTS,
    ),
    "system:public-info-viewer": (visit("/healthz /livez /readyz /version /version/"),),
    "system:service-account-issuer-discovery": (
        visit("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ),
    "system:volume-scheduler": (
        allow("get list patch update watch", "persistentvolumes"),
        allow(READ, "storageclasses", of="storage.k8s.io"),
        allow("get list patch update watch", "persistentvolumeclaims"),
    ),
}

_EVERYBODY: Final = ("Group system:authenticated", "Group system:unauthenticated")

CLUSTER_BINDINGS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cluster-admin": ("cluster-admin", ("Group system:masters",)),
    "system:basic-user": ("system:basic-user", ("Group system:authenticated",)),
    "system:discovery": ("system:discovery", ("Group system:authenticated",)),
    "system:kube-controller-manager": ("system:kube-controller-manager", ("User system:kube-controller-manager",)),
    "system:kube-dns": ("system:kube-dns", ("ServiceAccount kube-system/kube-dns",)),
    "system:kube-scheduler": ("system:kube-scheduler", ("User system:kube-scheduler",)),
    "system:monitoring": ("system:monitoring", ("Group system:monitoring",)),
    # No subjects: a real cluster has a node authorizer, which allows nodes only what concerns them.
    "system:node": ("system:node", ()),
    "system:node-proxier": ("system:node-proxier", ("User system:kube-proxy",)),
    "system:public-info-viewer": ("system:public-info-viewer", _EVERYBODY),
    "system:service-account-issuer-discovery": (
        "system:service-account-issuer-discovery",
        ("Group system:serviceaccounts",),
    ),
    "system:volume-scheduler": ("system:volume-scheduler", ("User system:kube-scheduler",)),
}

_LEADER_LEASES: Final[Rules] = (
    allow("create get list update watch", "leases", of="coordination.k8s.io"),
    allow("create get list update watch", "leasecandidates", of="coordination.k8s.io"),
)

ROLES: Final[dict[tuple[str, str], Rules]] = {
    ("kube-system", "extension-apiserver-authentication-reader"): (
        allow(READ, "configmaps", named="extension-apiserver-authentication"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): _LEADER_LEASES,
    ("kube-system", "system::leader-locking-kube-scheduler"): _LEADER_LEASES,
}

BINDINGS: Final[dict[tuple[str, str], tuple[str, tuple[str, ...]]]] = {
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        ("User system:kube-controller-manager", "ServiceAccount kube-system/kube-controller-manager"),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        ("User system:kube-scheduler", "ServiceAccount kube-system/kube-scheduler"),
    ),
}
