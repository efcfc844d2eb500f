"""Every failure a real kube-scheduler 1.34 was recorded with, rebuilt: the sentence must be the same to the letter.

The recording holds the nodes and the pods that failed; what else was in the cluster was set up unrecorded and is put
together here from what the sentences say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.messages import NotSchedulable, Schedulable, compute_scheduling_outcome
from plimsoll.scheduling.storage import Storage
from tests.scheduling.builders import claim, pod, required, storage_class, term, volume

_FILE = Path(__file__).parents[1] / "fixtures/kubernetes/golden/scheduler.jsonl"
RECORDED: dict[str, Any] = {line["id"]: line for line in map(json.loads, _FILE.read_text().splitlines())}

ALL = ("n1", "n2", "n3")
TAINT = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
OS = "kubernetes.io/os"


def recorded_nodes(**changes: dict[str, Any]) -> list[Node]:
    """The recorded n1, n2 (tainted) and n3, with sections of a node replaced: n1={"spec": {...}}."""
    items = RECORDED["scheduler-003"]["response"]["items"]
    return [
        msgspec.convert({**item, **changes.get(item["metadata"]["name"], {})}, Node, strict=False) for item in items
    ]


def untainted(**changes: dict[str, Any]) -> list[Node]:
    return recorded_nodes(**{"n2": {"spec": {}}, **changes})


def few_pods(count: str) -> list[Node]:
    offered = {"cpu": "4", "memory": "8Gi", "pods": count}
    return untainted(
        n1={"status": {"allocatable": offered}},
        n2={"spec": {}, "status": {"allocatable": offered}},
        n3={"status": {"allocatable": offered}},
    )


def recorded_pod(number: int, **spec: Any) -> Pod:
    response = RECORDED[f"scheduler-{number:03}"]["response"]
    name = response["metadata"]["name"]
    labels = {"app": "sp" if name == "spread" else name}
    metadata = {"name": name, "namespace": "sched", "uid": "u", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": {**response["spec"], **spec}}, Pod, strict=False)


def recorded_message(number: int) -> str:
    return str(RECORDED[f"scheduler-{number:03}"]["response"]["status"]["conditions"][0]["message"])


def here(name: str, on: str, **more: Any) -> Pod:
    return pod(name, on=on, namespace="sched", **more)


STORAGE = Storage(
    claims=[
        claim("immc", namespace="sched", storage_class="imm"),
        claim("wf", namespace="sched", storage_class="wffc"),
        claim("zc", namespace="sched", volume="pvz", storage_class="zz"),
        claim("ac", namespace="sched", volume="pva", storage_class="zz"),
    ],
    volumes=[volume("pvz", labels={"topology.kubernetes.io/zone": "z9"}), volume("pva", zone="z9")],
    classes=[
        storage_class("imm", mode="Immediate"),
        storage_class("wffc", provisioner="kubernetes.io/no-provisioner"),
    ],
)

LOW = [
    here("low0", "n1", requests={"cpu": "3"}, priority=0),
    here("low1", "n2", requests={"cpu": "3"}, priority=0),
    here("low2", "n3", requests={"cpu": "1500m"}, priority=0),
]
FITS_POD = here("fits", "n2", labels={"app": "fits"})
RESENTFUL = here(
    "resentful", "n1", labels={"app": "resentful"}, **required(term({"app": "rev"}, key=OS), "podAntiAffinity")
)
WEB = [
    here(f"web-{name}", name, containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}])
    for name in ALL
]

CASES: dict[int, ClusterView] = {
    4: ClusterView.from_objects(recorded_nodes()),
    6: ClusterView.from_objects(recorded_nodes()),
    8: ClusterView.from_objects(recorded_nodes()),
    10: ClusterView.from_objects(recorded_nodes()),
    12: ClusterView.from_objects(recorded_nodes()),
    14: ClusterView.from_objects(recorded_nodes()),
    16: ClusterView.from_objects(recorded_nodes()),
    18: ClusterView.from_objects(recorded_nodes(n1={"spec": {"taints": TAINT}}, n3={"spec": {"taints": TAINT}})),
    20: ClusterView.from_objects(recorded_nodes(n1={"spec": {"unschedulable": True}})),
    24: ClusterView.from_objects(untainted(), [FITS_POD]),
    26: ClusterView.from_objects(untainted(), [FITS_POD]),
    28: ClusterView.from_objects(untainted(), [FITS_POD, RESENTFUL]),
    30: ClusterView.from_objects(untainted(), [here("sp", "n1", labels={"app": "sp"})]),
    32: ClusterView.from_objects(untainted()),
    34: ClusterView.from_objects(untainted(), storage=STORAGE),
    36: ClusterView.from_objects(untainted(), storage=STORAGE),
    38: ClusterView.from_objects(untainted(), storage=STORAGE),
    41: ClusterView.from_objects(untainted(), storage=STORAGE),
    43: ClusterView.from_objects(untainted(), storage=STORAGE),
    45: ClusterView.from_objects(untainted(), WEB),
    47: ClusterView.from_objects(few_pods("1"), [here(f"one-{name}", name) for name in ALL]),
    50: ClusterView.from_objects(untainted(), LOW),
}


@pytest.mark.parametrize("number", CASES, ids=lambda number: RECORDED[f"scheduler-{number:03}"]["title"])
def test_message_is_the_recorded_one(number: int):
    outcome = compute_scheduling_outcome(recorded_pod(number), CASES[number])

    assert outcome == NotSchedulable(reason="Unschedulable", message=recorded_message(number))


def test_every_recorded_failure_is_rebuilt():
    failures = {
        int(line["id"].removeprefix("scheduler-"))
        for line in RECORDED.values()
        if line["title"].startswith("Unschedulable")
    }

    assert failures == {1, 52, 54, *CASES}


def test_without_nodes_nothing_is_counted():
    outcome = compute_scheduling_outcome(recorded_pod(1), ClusterView.from_objects())

    assert outcome == NotSchedulable(reason="Unschedulable", message=recorded_message(1))


def test_a_pod_that_must_not_preempt_says_so():
    never = recorded_pod(52, priority=1000, preemptionPolicy="Never")

    outcome = compute_scheduling_outcome(never, ClusterView.from_objects(untainted(), LOW))

    assert outcome == NotSchedulable(reason="Unschedulable", message=recorded_message(52))


def test_preemption_is_no_help_for_what_no_node_could_ever_hold():
    outcome = compute_scheduling_outcome(recorded_pod(54, priority=1000), ClusterView.from_objects(untainted(), LOW))

    assert outcome == NotSchedulable(reason="Unschedulable", message=recorded_message(54))


def test_when_preemption_helps_the_message_ends_with_the_counts():
    written = next(
        event["object"]["status"]["conditions"][0]["message"]
        for event in RECORDED["scheduler-056"]["response"]
        if event["object"]["metadata"]["name"] == "high" and event["object"]["status"].get("nominatedNodeName")
    )
    high = pod("high", namespace="sched", requests={"cpu": "2"}, priority=1000)

    outcome = compute_scheduling_outcome(high, ClusterView.from_objects(untainted(), LOW))

    assert isinstance(outcome, NotSchedulable)
    assert outcome.message == written == "0/3 nodes are available: 3 Insufficient cpu."
    assert outcome.preempt is not None
    assert [victim.spec.node_name for victim in outcome.preempt.victims] == [outcome.preempt.node]


def test_a_gated_pod_gets_the_recorded_condition():
    recorded = RECORDED["scheduler-049"]["response"]
    gated = msgspec.convert(recorded, Pod, strict=False)
    condition = recorded["status"]["conditions"][0]

    outcome = compute_scheduling_outcome(gated, ClusterView.from_objects(untainted()))

    assert outcome == NotSchedulable(reason=condition["reason"], message=condition["message"])


def test_a_pod_that_fits_names_its_nodes():
    small = pod("fits", namespace="sched", requests={"cpu": "100m"})

    assert compute_scheduling_outcome(small, ClusterView.from_objects(recorded_nodes())) == Schedulable(
        nodes=("n1", "n3")
    )
