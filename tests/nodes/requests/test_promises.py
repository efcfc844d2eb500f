"""What `Provisioned=True` promises: nodes that exist, room that stays, pods as they will run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from plimsoll.local.apiserver.presentation.custom_printers import CustomPrinter
from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json, group, replica_set
from tests.nodes.requests.request_scenarios import (
    ATOMIC,
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
    cells = printer.cells(body, datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
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
