"""Every recorded table, from objects like those it was recorded of."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from plimsoll.local.apiserver.presentation import encode_event, encode_list, encode_object, negotiate
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.presentation.recordings import NOW, ago, golden, recorded_request, served

Json = dict[str, Any]

LINES = golden("table")
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}
JOB_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]}}
LAST_END = "2026-01-01T00:00:00Z"


def pod(phase: str = "Pending", **status: Any) -> Json:
    return {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": phase, **status}}


P1 = pod()
P2 = pod(
    "Running",
    podIPs=[{"ip": "10.1.1.1"}],
    containerStatuses=[
        {
            "ready": True,
            "restartCount": 2,
            "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": LAST_END, "exitCode": 1}},
        }
    ],
)
P2["spec"]["nodeName"] = "ghost2"
P3 = pod(containerStatuses=[{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}])


def node(ready: str | None = None) -> Json:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {"spec": {"unschedulable": True}, "status": {"conditions": conditions}}


def workload(app: Json, **status: int) -> Json:
    return {"spec": {"replicas": 0, "selector": {"matchLabels": app}, "template": TEMPLATE}, "status": status}


def job(completions: int, uid: str) -> Json:
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {
        "spec": {"completions": completions, "selector": selector, "template": JOB_TEMPLATE},
        "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
    }


def service(ip: str) -> Json:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"spec": {"type": "ClusterIP", "clusterIPs": [ip], "ports": ports, "selector": {"app": "x"}}}


def event(kind: str, name: str, **more: Any) -> Json:
    return {"type": "Normal", "involvedObject": {"kind": kind, "name": name}, **more}


def budget(least: int | str) -> Json:
    return {"spec": {"minAvailable": least}, "status": {"disruptionsAllowed": 0}}


STORAGE_CLASS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
REVISION_OWNER = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "controller": True}]
RS = "app=x"
PREEMPTS = {"preemptionPolicy": "PreemptLowerPriority"}

OBJECTS: dict[str, list[Json]] = {
    "table-001": [P1, P2, P3],
    "table-002": [P2],
    "table-003": [P1, P2, P3],
    "table-006": [P1],
    "table-007": [],
    "table-009": [node(), node(), node("False")],
    "table-010": [{"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": TEMPLATE}}],
    "table-011": [{"status": {"phase": "Active"}}, {"status": {"phase": "Active"}}],
    "table-012": [
        workload({"pod-template-hash": "6d847b74b", "app": "x"}),
        workload({"pod-template-hash": "6bb64d9f7", "app": "x3"}),
    ],
    "table-013": [workload({"app": "x"}), workload({"app": "x"})],
    "table-014": [
        workload({"app": "x6"}, desiredNumberScheduled=2, currentNumberScheduled=2, updatedNumberScheduled=2)
    ],
    "table-015": [
        job(1, "da2959d4-9510-4e1e-957f-7ca9e704d6c7"),
        job(3, "fec81d9d-166c-47a0-8cf2-0d3fcf3e3fd7"),
    ],
    "table-016": [service("None"), service("10.96.156.205")],
    "table-017": [{"data": {"a": "1"}, "binaryData": {"b": ""}}, {"data": {"a": "1", "b": "2"}}],
    "table-018": [{"type": "Opaque", "data": {"a": "", "b": ""}}, {"type": "Opaque", "data": {"a": ""}}],
    "table-019": [
        event(
            "PersistentVolumeClaim",
            "data",
            reason="FailedBinding",
            source={"component": "persistentvolume-controller"},
            message="no persistent volumes available for this claim and no storage class is set",
            firstTimestamp=ago(seconds=37),
            lastTimestamp=ago(seconds=13),
            count=3,
        ),
        event(
            "DaemonSet",
            "ds",
            reason="SuccessfulCreate",
            source={"component": "daemonset-controller"},
            message="Created pod: ds-nnx4t",
            firstTimestamp=ago(seconds=37),
            lastTimestamp=ago(seconds=37),
            count=1,
        ),
    ],
    "table-020": [
        {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
        {"spec": {"volumeMode": "Filesystem", "storageClassName": "x"}, "status": {"phase": "Pending"}},
    ],
    "table-021": [
        {
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "none-such",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Available"},
        }
    ],
    "table-022": [budget("50%"), budget(1)],
    "table-023": [
        {"spec": {"holderIdentity": "me"}},
        {"spec": {"holderIdentity": "apiserver-wlv32tlttr4jl3gtroqexyxapa_2a93ba22-6da2-49fa-9bc4-d6e21e97a400"}},
    ],
    "table-024": [{"provisioner": "example.com/p", **STORAGE_CLASS}, {"provisioner": "a/b", **STORAGE_CLASS}],
    "table-025": [{"value": 1000, **PREEMPTS}, {"value": 2000000000, **PREEMPTS}],
    "table-026": [{}, {}],
    "table-027": [
        {
            "status": {
                "hard": {"requests.cpu": "1", "pods": "1", "count/configmaps": "2"},
                "used": {"requests.cpu": "600m", "pods": "1", "count/configmaps": "1"},
            }
        }
    ],
    "table-028": [{"template": {"metadata": {"labels": {"app": "x"}}, **TEMPLATE}}],
    "table-029": [{}, {}],
    "table-030": [
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
        {"addressType": "IPv4"},
    ],
    "table-031": [],
    "table-032": [{"spec": {"podSelector": {}}}],
    "table-033": [{"spec": {"drivers": [{}]}}],
    "table-034": [{"revision": 1}, {"revision": 1, "metadata": {"ownerReferences": REVISION_OWNER}}],
    "table-035": [P1],
    "table-036": [P1],
    "table-037": [P1],
    "table-038": [P1],
    "table-040": [P1],
}
OF_ONE_OBJECT = {"table-002", "table-035", "table-037"}
REFUSED = [line_id for line_id, line in LINES.items() if line["status"] in {400, 406}]
WATCHES = ["table-041", "table-042"]


def rows_of(response: Json) -> list[Json]:
    found: list[Json] = response.get("rows") or response.get("items") or ([] if "rows" in response else [response])
    return found


def objects_of(line: Json) -> list[Json]:
    """Objects that the recorded rows could have been made of, and are as old as those were."""
    response = line["response"]
    columns = [column["name"] for column in response.get("columnDefinitions") or []]
    made = []
    for content, row in zip(OBJECTS[line["id"]], rows_of(response), strict=True):
        cells = dict(zip(columns, row.get("cells", ()), strict=False))
        recorded = (row.get("object") or row).get("metadata") or {}
        created = cells.get("Created At") or ago(seconds=_seconds(cells.get("Age", "0s")))
        metadata = {"name": cells.get("Name"), **recorded, "creationTimestamp": created, **content.get("metadata", {})}
        made.append({"kind": "Pod", "apiVersion": "v1", **content, "metadata": metadata})
    return made


def _seconds(age: str) -> int:
    found = re.fullmatch(r"(\d+)s", age)
    assert found is not None, age
    return int(found[1])


def masked(value: Any) -> Any:
    """Times differ from the recording; what is left of a restart is how often."""
    text = re.sub(r'"\d{4}-\d\d-\d\dT[^"]*"', '"<time>"', json.dumps(value))
    return json.loads(re.sub(r"\(\w+ ago\)", "(<age> ago)", text))


def presented(line: Json, now: datetime = NOW) -> Json:
    request, resource = recorded_request(line), served(line["path"])
    form = negotiate(request, watch=False)
    objects = objects_of(line)
    if line["id"] in OF_ONE_OBJECT:
        body = encode_object(form, objects[0], resource, now=now)
    else:
        body = encode_list(form, objects, line["response"]["metadata"], resource, now=now)
    decoded: Json = json.loads(body)
    return decoded


@pytest.mark.parametrize("line_id", sorted(OBJECTS))
def test_recorded_table(line_id: str):
    line = LINES[line_id]
    assert masked(presented(line)) == masked(line["response"])


def test_recorded_table_with_whole_objects():
    line = LINES["table-004"]
    recorded = line["response"]["rows"][0]["object"]
    created = datetime.fromisoformat(recorded["metadata"]["creationTimestamp"])
    form = negotiate(recorded_request(line), watch=False)
    body = encode_list(form, [recorded], line["response"]["metadata"], served(line["path"]), now=created)
    assert json.loads(body) == line["response"]


@pytest.mark.parametrize("line_id", REFUSED)
def test_recorded_refusal(line_id: str):
    line = LINES[line_id]
    with pytest.raises(StatusError) as refused:
        negotiate(recorded_request(line), watch=False)
    assert refused.value.status == line["response"]


@pytest.mark.parametrize("line_id", WATCHES)
def test_recorded_watch(line_id: str):
    line = LINES[line_id]
    request = recorded_request(line)
    form = negotiate(request, watch=True)
    for position, recorded in enumerate(line["response"]):
        shown = recorded["object"]
        metadata = shown["rows"][0]["object"]["metadata"] if "rows" in shown else shown["metadata"]
        now = datetime.fromisoformat(metadata["creationTimestamp"]) + timedelta(seconds=1)
        obj = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **P1}
        resource = served(line["path"])
        body = encode_event(form, recorded["type"], obj, resource, now=now, with_columns=position == 0)
        assert body.endswith(b"\n")
        assert json.loads(body) == recorded


def test_every_recorded_line_is_covered():
    elsewhere = {"table-004", "table-008", *REFUSED, *WATCHES}
    assert set(LINES) == set(OBJECTS) | elsewhere
