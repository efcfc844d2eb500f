"""What conditions and Events of requests say: one answer per attempt, and why, pod set by pod set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.nodes.autoscaler.loop_scenarios import crash_after, group
from tests.nodes.requests.request_scenarios import (
    ATOMIC,
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

NO_QUOTA = {"name": "no", "kind": "Fail", "call": "IncreaseSize", "message": "no quota"}
REFUSAL = ("Provisioned", "False", "CapacityIsNotFound")


def two_groups(*steps: Json, **more: Any) -> FinishedScenario:
    """A pod set for each; with the first one two nodes are wanted, with the second one."""
    return served(
        *steps,
        nodeGroups=[group(name, template={"labels": {"pool": name}}) for name in "ab"],
        objects=[
            *(template(name, cpu="3500m", nodeSelector={"pool": name}) for name in "ab"),
            request("r", {"a": 2, "b": 1}),
        ],
        **more,
    )


def loop(turns: int) -> Json:
    return {"loop": turns, "every": "10s"}


def events(ended: FinishedScenario, reason: str) -> list[str]:
    return [
        event["message"]
        for event in ended.outcome["events"]
        if event["reason"] == reason and "ProvisioningRequest" in str(event)
    ]


def blocking(ended: FinishedScenario) -> Any:
    return json.loads(of_request(ended)["details"]["blocking"])


# ---- one answer an attempt


@pytest.mark.parametrize("kind", [ATOMIC, CHECK])
def test_an_accepted_request_gets_one_event_however_often_it_is_tried(kind: str):
    ended = served(loop(10), nodeGroups=[group("g", max=0)], objects=[template("t"), request("r", {"t": 3}, kind=kind)])
    assert of_request(ended)["details"]["attempts"] == "2"
    assert events(ended, "Accepted") == ["Provisioning Request was successfully queued."]
    assert ended.outcome["metrics"][f"provreq_total{{class={kind},outcome=Accepted}}"] == 1


def test_a_request_that_gets_its_nodes_at_once_is_accepted_too():
    ended = two_groups(loop(1), options=REQUESTED)
    assert events(ended, "Accepted") == ["Provisioning Request was successfully queued."]
    assert len(events(ended, "Provisioned")) == 1


@pytest.mark.parametrize("refusing", ["a", "b"])
def test_an_attempt_that_is_rolled_back_is_answered_once(refusing: str):
    ended = two_groups(faults({**NO_QUOTA, "group": refusing}), loop(1))
    assert targets(ended) == {"a": 0, "b": 0}
    assert history(ended) == [("Accepted", "True", "Accepted"), REFUSAL]


# ---- what stands in the way


@pytest.mark.parametrize(("refusing", "pod_set"), [("a", "0"), ("b", "1")])
def test_a_call_that_fails_is_in_the_way_of_the_pod_sets_that_wanted_its_nodes(refusing: str, pod_set: str):
    ended = two_groups(faults({**NO_QUOTA, "group": refusing}), loop(1))
    assert blocking(ended) == {pod_set: [f"{refusing}: no quota"]}


def test_a_pod_set_that_would_fit_is_not_reported_what_the_other_lacks():
    ended = two_groups(faults({**NO_QUOTA, "group": "b"}), loop(8))
    (reported,) = blocking(ended).items()
    assert reported[0] == "1"
    assert reported[1][0] == "2 of 3 pods fit, and all are wanted or none"
    assert any("backoff" in message for message in reported[1])


def test_a_check_says_it_by_pod_set_too():
    ended = served(
        loop(1),
        nodeGroups=[group("g", target=1)],
        objects=[template("small"), template("huge", cpu="99"), request("r", {"small": 1, "huge": 1}, kind=CHECK)],
    )
    assert list(blocking(ended)) == ["1"]
    assert blocking(ended)["1"][0].startswith("1 of 2 pods fit")


# ---- what it costs


def test_after_a_crash_the_cost_is_that_of_the_reported_nodes():
    """Of three nodes two were asked for when the process died."""
    whole = of_request(two_groups(loop(3)))["details"]
    ended = of_request(two_groups(crash_after(2), loop(3)))["details"]
    assert ended["nodeGroups"] == whole["nodeGroups"] == '{"a":2,"b":1}'
    assert float(ended["planCostPerHour"]) == pytest.approx(float(whole["planCostPerHour"]))
    assert float(ended["costLowerBoundPerHour"]) == pytest.approx(float(whole["costLowerBoundPerHour"]))


# ---- endings


def test_where_nothing_was_left_to_give_back_nothing_was_rolled_back():
    ended = served(
        {"provider": {"stockout": {"n1-standard-4": 0}}},
        loop(4),
        options=REQUESTED,
        nodeGroups=[group("g")],
        objects=[template("t", cpu="3500m"), request("r", {"t": 1})],
    )
    assert conditions(ended)["CapacityRevoked"] == ("True", "NodesFailed")
    assert "intent" not in of_request(ended)["details"]
    assert events(ended, "RolledBack") == []
    assert ended.outcome["metrics"]["rollbacks_total"] == 0


def test_an_expired_request_is_not_retried_and_its_event_does_not_promise_it():
    ended = served(
        loop(10),
        nodeGroups=[group("g", max=0)],
        objects=[template("t"), request("r", {"t": 3}, ValidUntilSeconds="70")],
    )
    assert conditions(ended)["Failed"] == ("True", "Expired")
    assert "nextAttemptTime" not in of_request(ended)["details"]


def test_of_capacity_that_was_not_kept_there_is_no_such_message():
    ended = served(
        loop(3),
        nodeGroups=[group("g", target=1)],
        objects=[
            template("t"),
            request("r", {"t": 1}, kind=CHECK, reserve="false", BookingDurationSeconds="10"),
        ],
    )
    (reported,) = [condition for condition in of_request(ended)["conditions"] if condition["type"] == "BookingExpired"]
    assert "kept" not in reported["message"]


def test_nodes_that_have_not_joined_when_it_expires_are_given_back():
    ended = served(
        loop(9),
        options={"provreq-provisioned-when": "registered", "max-node-provision-time": "15m"},
        nodeGroups=[group("g", bootSeconds=600)],
        objects=[template("t"), request("r", {"t": 3}, ValidUntilSeconds="60")],
    )
    assert history(ended)[1:] == [("Provisioned", "False", "WaitingForNodes"), REFUSAL, ("Failed", "True", "Expired")]
    assert targets(ended) == {"g": 0}
