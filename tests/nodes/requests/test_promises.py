"""What `Provisioned=True` promises: nodes that exist, room that stays, pods as they will run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.local.apiserver.presentation.custom_printers import CustomPrinter
from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json, crash_after, group, replica_set
from tests.nodes.requests.request_scenarios import (
    ATOMIC,
    CHECK,
    REQUESTED,
    conditions,
    history,
    of_request,
    request,
    served,
    targets,
    template,
)

REPOSITORY = Path(__file__).parents[3]
FOUR_TO_A_NODE = template("t", cpu="900m")


def loop(turns: int) -> Json:
    return {"loop": turns, "every": "10s"}


# ---- Provisioned means registered


def test_a_stock_out_after_the_nodes_were_requested_revokes_nothing():
    """Kueue deactivates a workload whose capacity is revoked, and never retries it."""
    ended = served(
        {"provider": {"stockout": {"n1-standard-4": 1}}},
        loop(4),
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert conditions(ended) == {"Accepted": ("True", "Accepted"), "Provisioned": ("False", "CapacityIsNotFound")}
    assert targets(ended) == {"g": 0}


def test_room_on_nodes_that_were_requested_for_others_is_waited_for_too():
    ended = served(
        loop(1),
        {"apply": [request("r", {"t": 2})]},
        loop(2),
        nodeGroups=[group("g", bootSeconds=60)],
        objects=[FOUR_TO_A_NODE, replica_set("web", 2, cpu="900m")],
    )
    assert conditions(ended)["Provisioned"] == ("False", "WaitingForNodes")
    assert of_request(ended)["details"]["nodeGroups"] == '{"g":0}'
    assert len(ended.calls("IncreaseSize")) == 1


def test_with_requested_room_on_nodes_that_are_on_their_way_is_capacity():
    ended = served(
        loop(1),
        {"apply": [request("r", {"t": 2})]},
        loop(1),
        options=REQUESTED,
        nodeGroups=[group("g", bootSeconds=60)],
        objects=[FOUR_TO_A_NODE, replica_set("web", 2, cpu="900m")],
    )
    assert conditions(ended)["Provisioned"] == ("True", "CapacityIsFound")


# ---- pods as they will run


def test_scheduling_gates_of_a_template_are_planned_as_if_they_were_gone():
    """Kueue's pod groups and Deployments: their pods are gated until the request is Provisioned."""
    ended = served(
        loop(2),
        nodeGroups=[group("g")],
        objects=[
            template("t", cpu="900m", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
            request("r", {"t": 8}),
        ],
    )
    assert history(ended)[-1] == ("Provisioned", "True", "CapacityIsProvisioned")
    assert targets(ended) == {"g": 2}


# ---- kubectl get provreq


def print_row(ended: FinishedScenario, name: str) -> dict[str, Any]:
    """The columns that `kubectl get provreq` prints, by name, from the definition that ships."""
    definition = yaml.safe_load((REPOSITORY / "deploy/crds/provisioningrequests.yaml").read_text())
    printer = CustomPrinter(definition, "v1")
    of = of_request(ended, name)
    asked = request(name, {"t": 8})
    status = {"conditions": of["conditions"], "provisioningClassDetails": of["details"]}
    body = {**asked, "status": status, "metadata": {**asked["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}}
    cells = printer.build_cells(body, datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
    columns = [column for column in printer.columns if not column["priority"]]
    return {column["name"]: cell for column, cell in zip(columns, cells, strict=False)}


def test_kubectl_shows_class_state_reason_and_age():
    ended = served(
        loop(1),
        nodeGroups=[group("g", bootSeconds=60, max=2)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8}), request("s", {"t": 100}), request("u", {"missing": 1})],
    )
    shown = {name: print_row(ended, name) for name in "rsu"}
    assert shown["r"] == {
        "Name": "r",
        "Class": ATOMIC,
        "State": "Waiting",
        "Reason": "WaitingForNodes",
        "Age": "5m",
    }
    assert [shown["s"][column] for column in ("State", "Reason")] == ["Waiting", "CapacityIsNotFound"]
    assert [shown["u"][column] for column in ("State", "Reason")] == ["Failed", "FailedToCreatePods"]


# ---- checks count nodes that exist


@pytest.mark.parametrize(
    ("options", "parameters", "status"),
    [
        ({}, {}, "False"),
        ({}, {"countUpcoming": "true"}, "True"),
        ({"check-capacity-count-upcoming-nodes": True}, {}, "True"),
        ({"check-capacity-count-upcoming-nodes": True}, {"countUpcoming": "false"}, "False"),
    ],
)
def test_a_check_counts_nodes_that_have_not_joined_only_if_it_is_asked_to(
    options: Json, parameters: dict[str, str], status: str
):
    ended = served(
        loop(1),
        {"apply": [request("c", {"t": 2}, kind=CHECK, **parameters)]},
        loop(1),
        options=options,
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, replica_set("web", 2, cpu="900m")],
    )
    assert conditions(ended, "c")["Provisioned"][0] == status
    if status == "False":
        message = next(
            condition["message"]
            for condition in of_request(ended, "c")["conditions"]
            if condition["type"] == "Provisioned"
        )
        assert "0/1 nodes are available: 1 node(s) have not joined yet" in message


def test_what_a_check_was_promised_is_not_moved_to_nodes_that_have_not_joined():
    """The autoscaler restarts while a node is on its way: it packs bookings anew."""
    ended = served(
        loop(1),
        {"apply": [replica_set("web", 4, cpu="3500m")]},
        loop(1),
        crash_after(1),
        loop(2),
        {"apply": [request("d", {"t": 4}, kind=CHECK)]},
        loop(2),
        nodeGroups=[group("g", target=1, bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("c", {"t": 4}, kind=CHECK)],
    )
    assert conditions(ended, "c") == {"Accepted": ("True", "Accepted"), "Provisioned": ("True", "CapacityIsFound")}
    assert conditions(ended, "d")["Provisioned"] == ("False", "CapacityIsNotFound")


# ---- nodes that are being removed


def closed_node(**spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
        "spec": spec,
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.mark.parametrize("kind", [CHECK, ATOMIC])
@pytest.mark.parametrize(
    "spec",
    [
        {"unschedulable": True},
        {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
    ],
)
def test_a_node_that_is_drained_is_not_promised_even_to_pods_that_tolerate_everything(kind: str, spec: Json):
    ended = served(
        loop(1),
        nodeGroups=[group("g", max=0)],
        objects=[
            closed_node(**spec),
            template("t", cpu="900m", tolerations=[{"operator": "Exists"}]),
            request("r", {"t": 2}, kind=kind),
        ],
    )
    assert conditions(ended)["Provisioned"] == ("False", "CapacityIsNotFound")
