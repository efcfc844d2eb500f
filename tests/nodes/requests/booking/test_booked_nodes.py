"""Bookings and scale-down, turn by turn: booked nodes stay, no node flaps, and room is free at once when it is over."""

from __future__ import annotations

from typing import Any

from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, containers, group, pods
from tests.nodes.requests.request_scenarios import CHECK, conditions, request, served, template

Json = dict[str, Any]

ONE = template("t", cpu="900m")


def removed(ended: FinishedScenario) -> dict[str, str]:
    """Node to when it was taken."""
    return {name: call["time"][11:19] for call in ended.calls("DeleteNodes") for name in call["arg"]}


def reasons(ended: FinishedScenario, node: str) -> list[str]:
    """Of every turn why it stays."""
    return [loop["scaleDown"]["unremovable"].get(node, "").partition(":")[0] for loop in ended.outcome["loops"]]


def test_room_found_on_a_node_that_was_about_to_go_keeps_it():
    """It would go at 00:10:10; the check is answered in that very turn."""
    ended = served(
        {"loop": 61, "every": "10s"},
        {"apply": request("r", {"t": 1}, kind=CHECK)},
        {"loop": 3, "every": "10s"},
        nodeGroups=[group("g", target=1)],
        objects=[ONE],
    )
    assert conditions(ended)["Provisioned"] == ("True", "CapacityIsFound")
    assert removed(ended) == {}


def test_a_booking_holds_its_node_and_not_the_one_beside_it():
    """One of its four pods comes; the others stay booked where they were, and none goes from node to node."""
    consuming = {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
    ended = served(
        {"loop": 2, "every": "10s"},
        {"apply": _consumer("c0", consuming)},
        {"schedule": True},
        {"loop": 4, "every": "10s"},
        nodeGroups=[group("g", target=3)],
        objects=[ONE, request("r", {"t": 4}, kind=CHECK)],
    )
    stays = {name: {*reasons(ended, name)} for name in ("g-0", "g-1", "g-2")}
    assert sorted("BookedCapacity" in seen for seen in stays.values()) == [False, False, True]


def test_a_deleted_request_leaves_its_room_to_the_next_in_the_same_turn():
    ended = served(
        {"loop": 1, "every": "10s"},
        {"delete": {"kind": "ProvisioningRequest", "namespace": "default", "name": "a"}},
        {"apply": request("b", {"t": 4}, kind=CHECK)},
        {"loop": 1, "every": "10s"},
        nodeGroups=[group("g", target=1)],
        objects=[ONE, request("a", {"t": 4}, kind=CHECK)],
    )
    assert conditions(ended, "b")["Provisioned"] == ("True", "CapacityIsFound")


def test_ordinary_pods_get_nodes_of_their_own_while_room_is_booked():
    ended = served(
        {"loop": 1, "every": "10s"},
        {"apply": _consumer("web", {})},
        {"loop": 1, "every": "10s"},
        nodeGroups=[group("g", target=1)],
        objects=[ONE, request("a", {"t": 4}, kind=CHECK)],
    )
    assert [(call["group"], call["arg"]) for call in ended.calls("IncreaseSize")] == [("g", 1)]


def test_pods_that_run_make_the_booking_smaller_until_it_is_consumed():
    annotated = pods("c", 4, cpu="900m")
    annotated["template"]["metadata"] = {"annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}}
    ended = served(
        {"loop": 2, "every": "10s"},
        {"schedule": True},
        {"loop": 2, "every": "10s"},
        nodeGroups=[group("g", target=1)],
        objects=[ONE, request("r", {"t": 4}, kind=CHECK)],
        pods=[annotated],
    )
    assert conditions(ended)["BookingExpired"] == ("True", "CapacityBookingConsumed")
    assert ended.calls("IncreaseSize") == []


def _consumer(name: str, annotations: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": containers("900m"),
    }
