"""What was in the cluster when kube-scheduler was recorded: nodes as recorded, the rest from what its sentences say.

Each set-up is made before the pod that a recording is about, so that the pod is tried once, as it was then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.recordings import by_id
from tests.local.apiserver.builders import MERGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.local.scheduler.builders import SchedulerCluster

    SetUp = Callable[[SchedulerCluster], None]

SCHED = "/api/v1/namespaces/sched"
ALL = ("n1", "n2", "n3")
TAINT = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
UNTAINTED: dict[str, Any] = {"n2": {}}
CORDONED = {"unschedulable": True}
# So that what is recorded as the recorder's own writes is ours.
GOLDEN = {"User-Agent": "golden/1"}


def made(world: SchedulerCluster, url: str, body: dict[str, Any]) -> Any:
    reply = world.ask("POST", url, body, headers=GOLDEN)
    assert reply.status == 201, reply
    return reply.body


def changed(world: SchedulerCluster, url: str, patch: dict[str, Any]) -> None:
    reply = world.ask("PATCH", url, patch, content=MERGE, headers=GOLDEN)
    assert reply.status == 200, reply


def nodes(specs: dict[str, dict[str, Any]] | None = None, *, pods: str = "") -> SetUp:
    """The recorded n1, n2 (tainted) and n3, with specs of some replaced, and room for as many pods."""

    def set_up(world: SchedulerCluster) -> None:
        for item in by_id("scheduler-003").response["items"]:
            name = item["metadata"]["name"]
            status = {"capacity": item["status"]["capacity"], "allocatable": item["status"]["allocatable"]}
            if pods:
                status["allocatable"] = {**status["allocatable"], "pods": pods}
            node = {"metadata": {"name": name, "labels": item["metadata"]["labels"]}, "status": status}
            made(world, "/api/v1/nodes", node)
            spec = (specs or {}).get(name, item["spec"])
            # The server taints every node that is new; a controller would take that away.
            changed(world, f"/api/v1/nodes/{name}", {"spec": {"taints": None, **spec}})

    return set_up


def pod(name: str, on: str = "", *, cpu: str = "", labels: dict[str, str] | None = None, **spec: Any) -> SetUp:
    container = {"name": "c", "image": "nginx:1.27", "resources": {"requests": {"cpu": cpu} if cpu else {}}}
    whole = {"terminationGracePeriodSeconds": 0, "containers": [container], "nodeName": on, **spec}
    body = {"metadata": {"name": name, "labels": labels or {"app": name}}, "spec": whole}
    return lambda world: (made(world, f"{SCHED}/pods", body), None)[1]


def running(name: str, since: str) -> SetUp:
    status = {"phase": "Running", "startTime": since}
    return lambda world: changed(world, f"{SCHED}/pods/{name}/status", {"status": status})


def storage_class(name: str, mode: str) -> SetUp:
    body = {
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }
    return lambda world: (made(world, "/apis/storage.k8s.io/v1/storageclasses", body), None)[1]


def claim(name: str, storage: str, *, volume: str = "") -> SetUp:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage,
        **({"volumeName": volume} if volume else {}),
    }
    annotations = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}

    def set_up(world: SchedulerCluster) -> None:
        body = {"metadata": {"name": name, **annotations}, "spec": spec}
        made(world, f"{SCHED}/persistentvolumeclaims", body)
        if volume:
            changed(world, f"{SCHED}/persistentvolumeclaims/{name}/status", {"status": {"phase": "Bound"}})

    return set_up


def volume(name: str, *, labels: dict[str, str] | None = None, zone: str = "") -> SetUp:
    here = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "zz",
        "hostPath": {"path": "/data"},
        **({"nodeAffinity": affinity} if zone else {}),
    }
    body = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    return lambda world: (made(world, "/api/v1/persistentvolumes", body), None)[1]


def priority(name: str, value: int, **more: Any) -> SetUp:
    body = {"metadata": {"name": name}, "value": value, **more}
    return lambda world: (made(world, "/apis/scheduling.k8s.io/v1/priorityclasses", body), None)[1]


LOW: tuple[SetUp, ...] = (
    priority("hi", 1000),
    priority("hinever", 1000, preemptionPolicy="Never"),
    # Bound by the scheduler, as they were then: it leaves a condition.
    pod("low0", labels={"app": "low"}, cpu="3", nodeSelector={"kubernetes.io/hostname": "n1"}),
    pod("low1", labels={"app": "low"}, cpu="3", nodeSelector={"kubernetes.io/hostname": "n2"}),
    pod("low2", labels={"app": "low"}, cpu="1500m", nodeSelector={"kubernetes.io/hostname": "n3"}),
)
_AVOIDING = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/os", "labelSelector": {"matchLabels": {"app": "rev"}}}
        ]
    }
}
_PORT = [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 8080}]}]

# By the number of the line with the pod's status; the line after it has its events.
FAILURES: dict[int, tuple[SetUp, ...]] = {
    1: (),
    4: (nodes(),),
    6: (nodes(),),
    8: (nodes(),),
    10: (nodes(),),
    12: (nodes(),),
    14: (nodes(),),
    16: (nodes(),),
    18: (nodes({"n1": {"taints": TAINT}, "n3": {"taints": TAINT}}),),
    20: (nodes({"n1": CORDONED}),),
    24: (nodes(UNTAINTED), pod("fits", "n2")),
    26: (nodes(UNTAINTED), pod("fits", "n2")),
    28: (nodes(UNTAINTED), pod("fits", "n2"), pod("resentful", "n1", affinity=_AVOIDING)),
    30: (nodes(UNTAINTED), pod("sp", "n1")),
    32: (nodes(UNTAINTED),),
    34: (nodes(UNTAINTED),),
    36: (nodes(UNTAINTED), storage_class("imm", "Immediate"), claim("immc", "imm")),
    38: (nodes(UNTAINTED), storage_class("wffc", "WaitForFirstConsumer"), claim("wf", "wffc")),
    41: (
        nodes(UNTAINTED),
        volume("pvz", labels={"topology.kubernetes.io/zone": "z9"}),
        claim("zc", "zz", volume="pvz"),
    ),
    43: (nodes(UNTAINTED), volume("pva", zone="z9"), claim("ac", "zz", volume="pva")),
    45: (nodes(UNTAINTED), *(pod(f"web-{name}", name, containers=_PORT) for name in ALL)),
    47: (nodes(UNTAINTED, pods="1"), *(pod(f"one-{name}", name) for name in ALL)),
    50: (nodes(UNTAINTED), *LOW),
    52: (nodes(UNTAINTED), *LOW),
    54: (nodes(UNTAINTED), *LOW),
}
