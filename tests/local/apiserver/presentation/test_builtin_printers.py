"""Rows of the kinds that were not recorded, and the corners of those that were."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.presentation.builtin_printers import BuiltinPrinter
from tests.local.apiserver.presentation.recordings import NOW, ago

Json = dict[str, Any]


def row(kind: str, **content: Any) -> dict[str, Any]:
    """The cells of an object by the names of their columns; it is called x and two hours old."""
    group, _, bare = kind.rpartition("/")
    printer = BuiltinPrinter(group, bare)
    metadata = {"name": "x", "creationTimestamp": ago(hours=2), **content.pop("metadata", {})}
    cells = printer.build_cells({"metadata": metadata, **content}, NOW)
    return dict(zip([column["name"] for column in printer.columns], cells, strict=True))


def template(*images: str) -> Json:
    return {"spec": {"containers": [{"name": f"c{at}", "image": image} for at, image in enumerate(images)]}}


@pytest.mark.parametrize(
    ("spec", "status", "external"),
    [
        ({"type": "NodePort"}, {}, "<none>"),
        ({"type": "ClusterIP", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, {}, "1.1.1.1,2.2.2.2"),
        ({"type": "LoadBalancer"}, {}, "<pending>"),
        (
            {"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]},
            {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "1.2.3.4"}]}},
            "1.2.3.4,lb,9.9.9.9",
        ),
        ({"type": "ExternalName", "externalName": "example.com"}, {}, "example.com"),
        ({}, {}, "<unknown>"),
    ],
)
def test_external_address_of_a_service(spec: Json, status: Json, external: str):
    assert row("Service", spec=spec, status=status)["External-IP"] == external


def test_node_ports_stand_behind_the_port():
    ports = [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    assert row("Service", spec={"ports": ports})["Port(s)"] == "80:30080/TCP,53/UDP"


def test_node_roles_versions_and_addresses():
    node = row(
        "Node",
        metadata={"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "infra"}},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.34.0"},
        },
    )
    assert [node[name] for name in ("Status", "Roles", "Version", "Internal-IP", "External-IP")] == [
        "Ready",
        "infra,worker",
        "v1.34.0",
        "10.0.0.1",
        "<none>",
    ]


def test_a_bound_claim():
    claim = row(
        "PersistentVolumeClaim",
        spec={"volumeName": "pv", "storageClassName": "fast"},
        status={"phase": "Bound", "capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
    )
    assert [claim[name] for name in ("Status", "Volume", "Capacity", "Access Modes")] == [
        "Bound",
        "pv",
        "1Gi",
        "RWO,RWX",
    ]


def test_a_volume_that_is_deleted_and_claimed():
    volume = row(
        "PersistentVolume",
        metadata={"deletionTimestamp": ago(seconds=1)},
        spec={"claimRef": {"namespace": "n", "name": "c"}},
        status={"phase": "Bound"},
    )
    assert [volume[name] for name in ("Status", "Claim", "Capacity")] == ["Terminating", "n/c", "0"]


def test_the_default_storage_class_is_marked():
    marked = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    assert row("storage.k8s.io/StorageClass", metadata=marked)["Name"] == "x (default)"


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"completions": 3}, {"succeeded": 1}, "1/3"),
        ({"parallelism": 4}, {}, "0/1 of 4"),
        ({"parallelism": 1}, {"succeeded": 1}, "1/1"),
    ],
)
def test_completions_of_a_job(spec: Json, status: Json, shown: str):
    assert row("batch/Job", spec=spec, status=status)["Completions"] == shown


@pytest.mark.parametrize(
    ("conditions", "metadata", "shown"),
    [
        (["Complete"], {}, "Complete"),
        (["Failed", "FailureTarget"], {}, "Failed"),
        (["Suspended"], {"deletionTimestamp": ago(seconds=1)}, "Terminating"),
        (["FailureTarget"], {}, "FailureTarget"),
        ([], {}, "Running"),
    ],
)
def test_status_of_a_job(conditions: list[str], metadata: Json, shown: str):
    status = {"conditions": [{"type": condition, "status": "True"} for condition in conditions]}
    assert row("batch/Job", metadata=metadata, status=status)["Status"] == shown


def test_a_job_took_as_long_as_it_ran():
    assert row("batch/Job", status={"startTime": ago(minutes=5)})["Duration"] == "5m"
    ended = {"startTime": ago(minutes=5), "completionTime": ago(minutes=4)}
    assert row("batch/Job", status=ended)["Duration"] == "60s"


def test_a_cron_job():
    spec = {"schedule": "* * * * *", "suspend": False, "jobTemplate": {"spec": {"template": template("busybox")}}}
    shown = row("batch/CronJob", spec=spec, status={"active": [{}], "lastScheduleTime": ago(seconds=30)})
    assert list(shown.values()) == [
        "x", "* * * * *", "<none>", "False", 1, "30s", "120m", "c0", "busybox", "<none>",
    ]  # fmt: skip


def test_selectors_with_expressions():
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "d", "operator": "Exists"},
        ],
    }
    assert row("apps/ReplicaSet", spec={"selector": selector})["Selector"] == "a in (x,y),b=1,!c,d"


def test_an_absent_selector_of_a_deployment_is_empty_and_of_others_none():
    assert row("apps/Deployment")["Selector"] == ""
    assert row("apps/ReplicaSet")["Selector"] == "<none>"


def test_several_containers_stand_beside_each_other():
    shown = row("apps/StatefulSet", spec={"template": template("a:1", "b:2")})
    assert (shown["Containers"], shown["Images"]) == ("c0,c1", "a:1,b:2")


@pytest.mark.parametrize(
    ("subsets", "shown"),
    [
        ([], "<none>"),
        ([{"addresses": [{"ip": "10.0.0.1"}]}], "10.0.0.1"),
        ([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "::1"}], "ports": [{"port": 80}]}], "10.0.0.1:80,[::1]:80"),
        (
            [{"addresses": [{"ip": f"10.0.0.{at}"} for at in range(5)], "ports": [{"port": 1}, {"port": 2}]}],
            "10.0.0.0:1,10.0.0.1:1,10.0.0.2:1 + 7 more...",
        ),
    ],
)
def test_endpoints(subsets: list[Json], shown: str):
    assert row("Endpoints", subsets=subsets)["Endpoints"] == shown


def test_an_endpoint_slice_shows_three_addresses_and_counts_the_rest():
    endpoints = [{"addresses": [f"10.0.0.{at}"]} for at in range(5)]
    shown = row("discovery.k8s.io/EndpointSlice", endpoints=endpoints, ports=[{"name": "http"}, {}])
    assert shown["Endpoints"] == "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more..."
    assert shown["Ports"] == "http,*"


def test_a_binding_lists_its_subjects():
    subjects = [
        {"kind": "User", "name": "ann"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "namespace": "n", "name": "sa"},
        {"kind": "User", "name": "bob"},
    ]
    shown = row("rbac.authorization.k8s.io/RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    assert list(shown.values()) == ["x", "Role/r", "120m", "ann, bob", "g", "n/sa"]


def test_an_autoscaler_shows_two_metrics():
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
        {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
        {"type": "Other"},
    ]
    current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50}}}]
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5, "metrics": metrics}
    shown = row("autoscaling/HorizontalPodAutoscaler", spec=spec, status={"currentMetrics": current})
    assert shown["Reference"] == "Deployment/d"
    assert shown["Targets"] == "cpu: 50%/80%, <unknown>/10 + 1 more..."
    assert shown["MinPods"] == "<unset>"


def test_both_groups_of_events_give_the_same_row():
    core = row(
        "Event",
        involvedObject={"kind": "Pod", "name": "p", "fieldPath": "spec"},
        message=" text\n",
        reportingComponent="sched",
        reportingInstance="s-1",
        eventTime=ago(seconds=5),
    )
    newer = row(
        "events.k8s.io/Event",
        regarding={"kind": "Pod", "name": "p", "fieldPath": "spec"},
        note=" text\n",
        reportingController="sched",
        reportingInstance="s-1",
        eventTime=ago(seconds=5),
    )
    assert core == newer
    assert [core[name] for name in ("Last Seen", "Object", "Source", "Message", "Count")] == [
        "5s",
        "pod/p",
        "sched, s-1",
        "text",
        1,
    ]


def test_a_series_of_events_was_last_seen_when_it_was_last_observed():
    shown = row("Event", series={"count": 9, "lastObservedTime": ago(seconds=3)}, eventTime=ago(seconds=50))
    assert [shown[name] for name in ("Last Seen", "First Seen", "Count")] == ["3s", "50s", 9]


def test_limits_of_a_quota_have_their_own_column():
    status = {"hard": {"limits.cpu": "2", "pods": "5"}, "used": {"limits.cpu": "1"}}
    shown = row("ResourceQuota", status=status)
    assert (shown["Request"], shown["Limit"]) == ("pods: 0/5", "limits.cpu: 1/2")


def test_a_csi_driver_has_the_defaults_of_what_it_leaves_out():
    assert list(row("storage.k8s.io/CSIDriver", spec={}).values()) == [
        "x", True, False, False, "<unset>", False, "<none>", "120m",
    ]  # fmt: skip


def test_a_kind_without_a_printer_shows_when_it_was_created():
    assert row("LimitRange") == {"Name": "x", "Created At": ago(hours=2)}
