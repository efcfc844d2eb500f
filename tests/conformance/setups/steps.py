"""The vocabulary of set-ups: what happened between two recorded requests without being recorded.

A `Send` is a request of the recording's client or, by its `agent`, of a controller. The others say what a request
cannot: a compaction, a token, a number of objects that only had to be there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CONTROLLERS = "kube-controller-manager/v1.34.0"

MERGE = "application/merge-patch+json"

CORE = "/api/v1"
APPS = "/apis/apps/v1"
BATCH = "/apis/batch/v1"
POLICY = "/apis/policy/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
SCHEDULING = "/apis/scheduling.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Json = dict[str, Any]


class Send(NamedTuple):
    """A request that was made, unrecorded. `stands_for`: what the recording calls the values of its answer."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    agent: str = "golden/1.0"
    query: dict[str, str] = {}
    stands_for: dict[str, str] = {}


class StatusAsRecorded(NamedTuple):
    """A controller has written the status which the recorded answer `id` shows, but for some types of conditions."""

    id: str
    without: tuple[str, ...] = ()
    stands_for: dict[str, str] = {}


class IssueToken(NamedTuple):
    """The client has got itself a token of a ServiceAccount, recorded as `<jwt of namespace/name>`."""

    namespace: str
    name: str


class FillUp(NamedTuple):
    """So many objects were there in all; those that nothing else is known of are made in the namespace `zz`."""

    listed: str
    posted: str
    template: Json
    total: int


class Compact(NamedTuple):
    """The history up to now was given up."""


class AdvanceTime(NamedTuple):
    """Time went by."""

    seconds: float


Step = Send | StatusAsRecorded | IssueToken | FillUp | Compact | AdvanceTime


# ---- the requests that recur


def namespace(name: str) -> Send:
    """Made by a client without a name, as the recordings show: its manager is `unknown`."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Send("POST", f"{CORE}/namespaces", body, agent="")


def configmap(
    where: str, name: str, *, data: Json | None = None, stands_for: Json | None = None, **metadata: Any
) -> Send:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    if data is not None:
        body["data"] = data
    return Send("POST", f"{CORE}/namespaces/{where}/configmaps", body, stands_for=stands_for or {})


def pod(
    where: str,
    name: str,
    *,
    image: str = "nginx:1.27",
    agent: str = "golden/1.0",
    metadata: Json | None = None,
    stands_for: Json | None = None,
    **spec: Any,
) -> Send:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": image}], **spec},
    }
    return Send("POST", f"{CORE}/namespaces/{where}/pods", body, agent=agent, stands_for=stands_for or {})


def workload(
    kind: str,
    where: str,
    name: str,
    *,
    app: str = "",
    image: str = "nginx:1.27",
    agent: str = "golden/1.0",
    metadata: Json | None = None,
    **spec: Any,
) -> Send:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet whose pods are labelled `app`."""
    labels = {"app": app or name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": image}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }
    return Send("POST", f"{APPS}/namespaces/{where}/{kind.lower()}s", body, agent=agent)


def budget(where: str, name: str, *, app: str, **spec: Any) -> Send:
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }
    return Send("POST", f"{POLICY}/namespaces/{where}/poddisruptionbudgets", body)


def node(name: str, **fields: Any) -> Send:
    return Send("POST", f"{CORE}/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **fields})


def patch(path: str, body: Json, *, agent: str = "golden/1.0") -> Send:
    return Send("PATCH", path, body, content_type=MERGE, agent=agent)


def pod_status(where: str, name: str, **status: Any) -> Send:
    return patch(f"{CORE}/namespaces/{where}/pods/{name}/status", {"status": status})


def running(where: str, name: str, *, ready: str = "True") -> Send:
    """What the recorder wrote in place of a kubelet."""
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return pod_status(where, name, phase="Running", conditions=[condition])


def delete(path: str, *, agent: str = "golden/1.0", **options: Any) -> Send:
    body = {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
    return Send("DELETE", path, body, agent=agent)
