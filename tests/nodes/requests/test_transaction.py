"""What a running autoscaler does for atomic requests, turn by turn: one call a group, all or nothing, and arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.nodes.autoscaler.loop_scenarios import group, replica_set
from tests.nodes.requests.request_scenarios import (
    CHECK,
    REQUESTED,
    conditions,
    faults,
    history,
    of_request,
    request,
    served,
    targets,
    template,
)

if TYPE_CHECKING:
    from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, Json

FOUR_TO_A_NODE = template("t", cpu="900m")
LOOP: Json = {"loop": 1, "every": "10s"}


def calls(ended: FinishedScenario, *names: str) -> list[tuple[str, Any]]:
    return [(call["group"], call["arg"]) for call in ended.calls(*(names or ("IncreaseSize",)))]


def boots(**rule: Any) -> Json:
    return {
        "apply": {
            "apiVersion": "cloud.plimsoll.io/v1alpha1",
            "kind": "Cloud",
            "metadata": {"name": "cloud"},
            "spec": {"boots": [{"name": "boot", **rule}]},
        }
    }


# ---- one plan for all


def test_growth_of_many_requests_and_of_ordinary_pods_is_one_call():
    ended = served(
        LOOP,
        {"schedule": True},
        {"loop": 3, "every": "10s"},
        nodeGroups=[group("g")],
        objects=[
            FOUR_TO_A_NODE,
            *(request(f"r{number}", {"t": 3}) for number in range(3)),
            replica_set("web", 3, cpu="900m"),
        ],
    )
    assert calls(ended) == [("g", 3)]
    assert all(conditions(ended, f"r{number}")["Provisioned"][0] == "True" for number in range(3))
    owned = [of_request(ended, f"r{number}")["details"]["nodeGroups"] for number in range(3)]
    assert sum(int(annotation.removeprefix('{"g":').removesuffix("}")) for annotation in owned) == 3


def test_a_request_that_fails_takes_nothing_from_its_neighbour():
    """Both have pods on the same node of `a`; only the one that also wants `b` fails."""
    refuse = {"name": "no", "kind": "Fail", "call": "IncreaseSize", "group": "b", "message": "no quota"}
    ended = served(
        faults(refuse),
        LOOP,
        options=REQUESTED,
        nodeGroups=[
            group("a", template={"labels": {"pool": "a"}}),
            group("b", template={"labels": {"pool": "b"}}),
        ],
        objects=[
            template("a", cpu="900m", nodeSelector={"pool": "a"}),
            template("b", cpu="900m", nodeSelector={"pool": "b"}),
            request("greedy", {"a": 6, "b": 1}),
            request("modest", {"a": 2}),
        ],
    )
    assert conditions(ended, "modest")["Provisioned"] == ("True", "CapacityIsProvisioned")
    assert of_request(ended, "modest")["details"]["nodeGroups"] == '{"a":1}'
    assert conditions(ended, "greedy")["Provisioned"] == ("False", "CapacityIsNotFound")
    assert targets(ended) == {"a": 1, "b": 0}


TWO_POOLS = [group("a", template={"labels": {"pool": "a"}}), group("b", template={"labels": {"pool": "b"}})]
IN_POOLS = [template(name, cpu="900m", nodeSelector={"pool": name}) for name in ("a", "b")]


def refused(name: str) -> Json:
    return faults({"name": "no", "kind": "Fail", "call": "IncreaseSize", "group": name, "message": "no quota"})


def test_remaining_requests_are_packed_onto_fewer_nodes_after_a_failed_one():
    """Its pods were mixed with those of others on all new nodes of `a`: seven pods need two of the four."""
    ended = served(
        refused("b"),
        {"loop": 3, "every": "10s"},
        options=REQUESTED,
        nodeGroups=TWO_POOLS,
        objects=[
            *IN_POOLS,
            request("good", {"a": 6}),
            request("greedy", {"a": 6, "b": 4}),
            replica_set("web", 1, cpu="900m", nodeSelector={"pool": "a"}),
        ],
    )
    assert targets(ended) == {"a": 2, "b": 0}
    assert calls(ended) == [("a", 4), ("b", 1)]
    assert of_request(ended, "good")["details"]["nodeGroups"] == '{"a":2}'
    assert conditions(ended, "good")["Provisioned"] == ("True", "CapacityIsProvisioned")
    assert conditions(ended, "greedy")["Provisioned"] == ("False", "CapacityIsNotFound")
    reported = [event["message"] for event in ended.outcome["events"] if event["reason"] == "RolledBack"]
    assert [message.partition("rolled back: ")[2] for message in reported] == ["a -2"]


def test_nothing_is_asked_for_a_request_that_was_refused_another_group_already():
    ended = served(refused("a"), LOOP, nodeGroups=TWO_POOLS, objects=[*IN_POOLS, request("r", {"a": 8, "b": 4})])
    assert [(call["group"], call["call"]) for call in ended.outcome["providerCalls"]] == [("a", "IncreaseSize")]
    assert conditions(ended)["Provisioned"] == ("False", "CapacityIsNotFound")
    assert targets(ended) == {"a": 0, "b": 0}


def test_others_get_their_nodes_although_a_request_among_them_was_refused_another_group():
    ended = served(
        refused("a"),
        LOOP,
        options=REQUESTED,
        nodeGroups=TWO_POOLS,
        objects=[*IN_POOLS, request("r", {"a": 8, "b": 4}), request("s", {"b": 4})],
    )
    assert targets(ended) == {"a": 0, "b": 1}
    assert conditions(ended, "s")["Provisioned"] == ("True", "CapacityIsProvisioned")


def test_where_the_cloud_grows_whole_groups_it_is_asked_to():
    ended = served(LOOP, nodeGroups=[group("g", atomic=True)], objects=[FOUR_TO_A_NODE, request("r", {"t": 8})])
    assert calls(ended, "IncreaseSize", "AtomicIncreaseSize") == [("g", 2)]
    assert [call["call"] for call in ended.outcome["providerCalls"]] == ["AtomicIncreaseSize"]


def test_a_dry_run_writes_and_calls_nothing():
    ended = served(
        {"loop": 2, "every": "10s"},
        options={"dry-run": True},
        nodeGroups=[group("g", target=1)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8}), request("c", {"t": 1}, kind=CHECK)],
    )
    assert calls(ended) == []
    assert of_request(ended)["conditions"] == of_request(ended, "c")["conditions"] == []


# ---- nodes that are on their way


def test_capacity_that_is_on_its_way_is_not_asked_for_again():
    ended = served(
        {"loop": 8, "every": "10s"},
        options=REQUESTED,
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert calls(ended) == [("g", 2)]
    assert conditions(ended) == {"Accepted": ("True", "Accepted"), "Provisioned": ("True", "CapacityIsProvisioned")}


def test_it_waits_until_all_nodes_have_joined():
    waiting = served(
        {"loop": 3, "every": "10s"},
        nodeGroups=[group("g", bootSeconds=60)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert conditions(waiting)["Provisioned"] == ("False", "WaitingForNodes")
    joined = served(
        {"loop": 8, "every": "10s"},
        nodeGroups=[group("g", bootSeconds=60)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert history(joined)[1:] == [
        ("Provisioned", "False", "WaitingForNodes"),
        ("Provisioned", "True", "CapacityIsProvisioned"),
    ]
    assert calls(joined) == [("g", 2)]


def test_nodes_that_never_come_are_given_back_and_it_is_tried_again():
    ended = served(
        boots(group="g", never=True),
        {"loop": 35, "every": "10s"},
        options={"max-node-provision-time": "5m"},
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert targets(ended) == {"g": 0}
    assert conditions(ended) == {"Accepted": ("True", "Accepted"), "Provisioned": ("False", "CapacityIsNotFound")}
    assert of_request(ended)["details"]["attempts"] == "1"


def test_with_requested_capacity_that_does_not_come_is_revoked_and_given_back():
    ended = served(
        boots(group="g", never=True),
        {"loop": 35, "every": "10s"},
        options={**REQUESTED, "max-node-provision-time": "5m"},
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8}, BookingDurationSeconds="3600")],
    )
    assert conditions(ended)["CapacityRevoked"] == ("True", "NodesFailed")
    assert conditions(ended)["Provisioned"] == ("True", "CapacityIsProvisioned")
    assert targets(ended) == {"g": 0}
    assert "intent" not in of_request(ended)["details"]


def test_one_machine_that_cannot_be_made_revokes_the_whole():
    ended = served(
        {"provider": {"stockout": {"n1-standard-4": 1}}},
        {"loop": 4, "every": "10s"},
        options=REQUESTED,
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert conditions(ended)["CapacityRevoked"] == ("True", "NodesFailed")
    assert targets(ended) == {"g": 0}


@pytest.mark.parametrize(("turns", "is_lost"), [(2, False), (3, True)])
def test_capacity_that_vanishes_is_lost_after_three_turns(turns: int, *, is_lost: bool):
    ended = served(
        {"loop": 2, "every": "10s"},
        {"provider": {"calls": [{"call": "DeleteNodes", "group": "g", "arg": ["g-1"]}]}},
        {"loop": turns, "every": "10s"},
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert conditions(ended).get("CapacityRevoked") == (("True", "NodesLost") if is_lost else None)
    assert targets(ended) == {"g": 1}, "nobody adds nodes for what was promised once"


def without_the_node_of(machine: str) -> Json:
    return {"delete": {"kind": "Node", "name": machine}}


@pytest.mark.parametrize(("turns", "is_lost"), [(2, False), (3, True)])
def test_a_node_that_was_there_and_is_gone_is_not_waited_for_although_its_machine_runs(turns: int, *, is_lost: bool):
    ended = served(
        {"loop": 3, "every": "10s"},
        without_the_node_of("g-0"),
        {"loop": turns, "every": "10s"},
        nodeGroups=[group("g")],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert conditions(ended).get("CapacityRevoked") == (("True", "NodesLost") if is_lost else None)
    assert targets(ended) == {"g": 1 if is_lost else 2}


# ---- cancel


def test_growth_of_a_deleted_request_is_given_back_as_far_as_it_has_not_come():
    ended = served(
        {"loop": 2, "every": "10s"},
        {"delete": {"kind": "ProvisioningRequest", "name": "r", "namespace": "default"}},
        {"loop": 2, "every": "10s"},
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8})],
    )
    assert targets(ended) == {"g": 0}
    assert calls(ended, "DecreaseTargetSize") == [("g", -2)]


def test_what_others_were_given_is_not_given_back_with_a_deleted_request():
    ended = served(
        {"loop": 2, "every": "10s"},
        {"delete": {"kind": "ProvisioningRequest", "name": "r", "namespace": "default"}},
        {"loop": 2, "every": "10s"},
        options=REQUESTED,
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("r", {"t": 8}), request("s", {"t": 4}), replica_set("web", 2, cpu="900m")],
    )
    assert targets(ended) == {"g": 2}
    assert conditions(ended, "s")["Provisioned"][0] == "True"


def test_those_that_stay_move_together_on_what_a_deleted_request_leaves():
    """18 pods share five nodes; the six that stay need two."""
    ended = served(
        {"loop": 3, "every": "10s"},
        {"delete": {"kind": "ProvisioningRequest", "name": "r", "namespace": "default"}},
        {"loop": 3, "every": "10s"},
        options=REQUESTED,
        nodeGroups=[group("g", bootSeconds=300)],
        objects=[FOUR_TO_A_NODE, request("q", {"t": 4}), request("r", {"t": 12}), replica_set("web", 2, cpu="900m")],
    )
    assert calls(ended) == [("g", 5)]
    assert targets(ended) == {"g": 2}
    assert conditions(ended, "q")["Provisioned"][0] == "True"
