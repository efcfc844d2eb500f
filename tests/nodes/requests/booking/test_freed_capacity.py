"""Capacity that is freed, given back or lost: who gets it next, and when."""

from __future__ import annotations

import pytest

from tests.nodes.autoscaler.loop_scenarios import (
    FinishedScenario,
    Json,
    containers,
    crash_after,
    group,
    lived,
    replica_set,
)
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

FOUR_TO_A_NODE = template("t", cpu="900m")
REFUSED = ("Provisioned", "False", "CapacityIsNotFound")


def loop(turns: int) -> Json:
    return {"loop": turns, "every": "10s"}


def delete(kind: str, name: str) -> Json:
    return {"delete": {"kind": kind, "name": name, "namespace": "default"}}


def running(name: str, node: str, *, cpu: str = "900m", **annotations: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": node, **containers(cpu)},
        "status": {"phase": "Running"},
    }


# ---- tried again at once


@pytest.mark.parametrize("kind", [CHECK, ATOMIC])
def test_a_request_in_back_off_is_tried_when_a_pod_ends(kind: str):
    ended = served(
        loop(8),
        delete("Pod", "p"),
        loop(1),
        nodeGroups=[group("g", target=1, max=1)],
        objects=[FOUR_TO_A_NODE, running("p", "g-0", cpu="3500m"), request("r", {"t": 4}, kind=kind)],
    )
    assert history(ended)[1:] == [REFUSED, REFUSED, ("Provisioned", "True", "CapacityIsFound")]


def test_a_request_in_back_off_is_tried_when_a_node_joins():
    ended = served(
        loop(1),
        {"apply": [replica_set("web", 1, cpu="900m")]},
        loop(2),
        {"schedule": True},
        loop(1),
        nodeGroups=[group("g", bootSeconds=15)],
        objects=[FOUR_TO_A_NODE, request("c", {"t": 3}, kind=CHECK)],
    )
    assert history(ended, "c")[1:] == [REFUSED, ("Provisioned", "True", "CapacityIsFound")]


def test_a_request_in_back_off_is_tried_when_another_one_is_cancelled():
    """The group is as large as it may be: what the first one gives back, the second one gets."""
    ended = served(
        loop(3),
        delete("ProvisioningRequest", "a"),
        loop(3),
        nodeGroups=[group("g", max=2, bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("a", {"t": 8}), request("b", {"t": 8})],
    )
    assert history(ended, "b")[1:] == [REFUSED, ("Provisioned", "False", "WaitingForNodes")]


def test_a_refusal_that_is_repeated_early_writes_nothing_and_does_not_lengthen_the_back_off():
    """A pod ends before every loop, and there is never enough room."""
    ends = [step for number in range(6) for step in (delete("Pod", f"p{number}"), loop(1))]
    ended = served(
        loop(1),
        *ends,
        loop(1),
        nodeGroups=[group("g", target=1, max=1)],
        objects=[
            FOUR_TO_A_NODE,
            *(running(f"p{number}", "g-0", cpu="100m") for number in range(6)),
            request("r", {"t": 8}, kind=CHECK),
        ],
    )
    assert history(ended)[1:] == [REFUSED, REFUSED]
    assert of_request(ended)["details"]["attempts"] == "2"


def test_a_new_process_tries_every_check_once():
    """What was freed while no process ran is used at once."""
    ended = served(
        loop(8),
        delete("Pod", "p"),
        crash_after(1),
        loop(2),
        nodeGroups=[group("g", target=1, max=1)],
        objects=[FOUR_TO_A_NODE, running("p", "g-0", cpu="3500m"), request("r", {"t": 4}, kind=CHECK)],
    )
    assert history(ended)[-1] == ("Provisioned", "True", "CapacityIsFound")


def test_nodes_of_its_own_that_are_given_back_do_not_end_the_back_off():
    ended = served(
        {"provider": {"stockout": {"n1-standard-4": 1}}},
        loop(7),
        options={"initial-node-group-backoff-duration": "1s", "max-node-group-backoff-duration": "1s"},
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert [change for change in history(ended) if change == REFUSED] == [REFUSED]


# ---- cancelled while machines boot


def cancelled(*steps: Json, options: Json | None = None, **parameters: str) -> FinishedScenario:
    """Four machines are requested; they run, but none of them has registered a node."""
    return served(
        loop(1),
        *({"delete": {"kind": "Node", "name": f"g-{number}"}} for number in range(4)),
        loop(2),
        *steps,
        loop(3),
        options=options or {},
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 16}, **parameters)],
    )


def test_a_deleted_request_gives_back_machines_that_run_and_have_not_joined():
    ended = cancelled(delete("ProvisioningRequest", "r"))
    assert targets(ended) == {"g": 0}


def test_a_request_that_fails_gives_back_machines_that_have_not_joined():
    """Its PodTemplate is deleted, so nothing can be booked for it any more."""
    ended = cancelled(delete("PodTemplate", "t"))
    assert conditions(ended)["Failed"] == ("True", "FailedToBookCapacity")
    assert targets(ended) == {"g": 0}


def test_a_booking_that_ends_gives_back_machines_that_have_not_joined():
    ended = cancelled(loop(2), options=REQUESTED, BookingDurationSeconds="30")
    assert conditions(ended)["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    assert targets(ended) == {"g": 0}


def test_nodes_that_joined_follow_ordinary_scale_down():
    ended = served(
        loop(3),
        delete("ProvisioningRequest", "r"),
        loop(3),
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 16})],
    )
    assert targets(ended) == {"g": 4}


# ---- a node is lost after the booking was consumed


CONSUMES = {"autoscaling.x-k8s.io/consume-provisioning-request": "a"}


def job(name: str, replicas: int, **annotations: str) -> Json:
    made = replica_set(name, replicas, cpu="900m")
    made["spec"]["template"]["metadata"]["annotations"] = annotations
    return made


@pytest.mark.parametrize("kind", [CHECK, ATOMIC])
def test_pods_that_replace_those_of_a_lost_node_are_served_like_any_pending_pods(kind: str):
    """Another request has booked the room that is free, and keeps it."""
    ended = served(
        {"apply": [job("job", 4, **CONSUMES)]},
        loop(2),
        {"schedule": True},
        loop(2),
        {"apply": [request("b", {"t": 4}, kind=CHECK)]},
        loop(1),
        {"provider": {"calls": [{"call": "DeleteNodes", "group": "g", "arg": ["g-0"]}]}},
        loop(3),
        nodeGroups=[group("g", target=2)],
        objects=[FOUR_TO_A_NODE, request("a", {"t": 4}, kind=kind)],
    )
    assert conditions(ended, "a")["BookingExpired"] == ("True", "CapacityBookingConsumed")
    assert conditions(ended, "b")["Provisioned"] == ("True", "CapacityIsFound")
    assert [call["arg"] for call in ended.calls("IncreaseSize")] == [1]
    assert targets(ended) == {"g": 2}


@pytest.mark.parametrize("is_named", [True, False])
def test_a_finished_request_is_not_deleted_while_pods_name_it(monkeypatch: pytest.MonkeyPatch, *, is_named: bool):
    """Its week is over; the pods that consumed it still run, and replacements of them are to be served."""
    monkeypatch.setattr("plimsoll.nodes.requests.lifecycle.RETENTION_S", 60)
    ended = served(
        {"apply": [job("job", 4, **CONSUMES)]},
        loop(2),
        {"schedule": True},
        loop(2),
        {"advance": "2m"},
        *([] if is_named else [delete("ReplicaSet", "job"), {"advance": "1m"}]),
        loop(2),
        nodeGroups=[group("g", target=1)],
        objects=[FOUR_TO_A_NODE, request("a", {"t": 4}, kind=CHECK, ValidUntilSeconds="60")],
    )
    assert ("default/a" in ended.outcome["requests"]) == is_named


# ---- in a live cluster


def test_in_a_live_cluster_a_request_gets_freed_room_within_seconds():
    """Neither the back-off of a minute nor the scan interval of ten seconds is waited for."""
    ended = lived(
        {"advance": "2m"},
        {"apply": [request("r", {"t": 4})]},
        {"advance": "31s"},
        delete("Pod", "p"),
        {"advance": "4s"},
        world="live",
        options={"enable-provisioning-requests": True},
        nodeGroups=[group("g", target=1, max=1)],
        objects=[FOUR_TO_A_NODE, {**running("p", "g-0", cpu="3500m"), "status": {}}],
    )
    assert history(ended)[1:] == [REFUSED, ("Provisioned", "True", "CapacityIsFound")]
