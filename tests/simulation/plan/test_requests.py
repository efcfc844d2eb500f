"""ProvisioningRequests of a file: who is answered, in which order, with which pods, and who fails at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.booking.booking import BookingHints, book
from plimsoll.nodes.requests.model import ClassKind
from plimsoll.simulation.plan.inputs import PlanInput, read_plan_input

Json = dict[str, Any]
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CHECK = "check-capacity.autoscaling.x-k8s.io"


def template(name: str = "t", **spec: Any) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "ml"},
        "template": {"spec": {"containers": [container], **spec}},
    }


def request(name: str, kind: str = ATOMIC, *, age: int = 0, conditions: Any = (), **more: Any) -> Json:
    """`age` in minutes before 2026."""
    sets = [{"count": count, "podTemplateRef": {"name": name}} for name, count in more.pop("sets", {"t": 2}).items()]
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": f"2025-12-31T23:{59 - age:02}:00Z"},
        "spec": {"provisioningClassName": kind, "podSets": sets, "parameters": more},
        "status": {"conditions": list(conditions)},
    }


def read(*objects: Json, **options: Any) -> PlanInput:
    story = {"start": "2026-01-01T00:00:00Z", "options": options, "objects": list(objects)}
    return read_plan_input([("-", json.dumps(story).encode())])


def condition(kind: str, status: str = "True", *, at: str = "2025-12-31T23:59:00Z", reason: str = "X") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": at}


def test_the_oldest_is_served_first_then_by_name():
    given = read(template(), request("b", age=3), request("c", age=9), request("a", age=3))
    assert [request.name for request in given.requests] == ["ml/c", "ml/a", "ml/b"]


def test_a_higher_priority_goes_before_age():
    given = read(template(), template("urgent", priority=10), request("old", age=9), request("new", sets={"urgent": 1}))
    assert [request.name for request in given.requests] == ["ml/new", "ml/old"]


def test_a_missing_template_fails_its_request_alone():
    """N18."""
    given = read(template(), request("a", sets={"t": 1, "gone": 2}, age=5), request("b"))
    bad, good = given.requests
    assert bad.problem == ("FailedToCreatePods", "of 2 PodTemplates it refers to, 1 not found: ml/gone")
    assert (good.problem, [pending.key for pending in given.snapshot.pending]) == (None, ["ml/b/0"])


def test_checks_are_no_pending_pods():
    given = read(template(), request("r", CHECK))
    assert ([request.class_kind for request in given.requests], given.snapshot.pending) == ([ClassKind.CHECK], ())
    assert [(pods.key, pods.count) for pods in given.requests[0].pods] == [("ml/r/0", 2)]


@pytest.mark.parametrize(
    ("more", "keeps", "retries", "warned"),
    [
        ({}, True, True, False),
        ({"reserve": "false"}, False, True, False),
        ({"noRetry": "true"}, True, False, False),
        ({"noRetry": "yes"}, True, True, True),
    ],
)
def test_parameters_of_checks(more: Json, keeps: bool, retries: bool, warned: bool):
    """N06, N07."""
    given = read(template(), request("r", CHECK, **more))
    (one,) = given.requests
    assert (one.parameters.reserves, one.parameters.retries, bool(given.warnings)) == (keeps, retries, warned)


@pytest.mark.parametrize(("text", "expected"), [("60", 60), ("0", 600), ("90000", 600), ("soon", 600)])
def test_how_long_room_is_kept(text: str, expected: int):
    assert (
        read(template(), request("r", CHECK, BookingDurationSeconds=text)).requests[0].parameters.booking_s == expected
    )


def test_a_class_without_a_handler_is_left_alone():
    given = read(template(), request("r", "foo.example.com"))
    assert (given.requests, given.snapshot.pending) == ((), ())
    assert given.warnings == ("ProvisioningRequest ml/r is of class foo.example.com, which no handler here answers",)


class TestClasses:
    """N46."""

    def listed(self, name: str, **parameters: str) -> Json:
        return {
            "apiVersion": "autoscaling.x-k8s.io/v1alpha1",
            "kind": "ProvisioningClass",
            "metadata": {"name": name},
            "parameters": parameters,
        }

    def test_one_that_is_not_listed_fails(self):
        (one,) = read(template(), request("r"), self.listed(CHECK)).requests
        assert one.problem is not None
        assert one.problem[0] == "ClassNotAllowed"

    def test_parameters_of_the_class_are_defaults(self):
        (one,) = read(template(), request("r", CHECK), self.listed(CHECK, reserve="false")).requests
        assert not one.parameters.reserves


class TestInstances:
    """N19."""

    def names(self, **options: Any) -> list[str]:
        blue, green = (request(name, CHECK, processorInstance=name) for name in ("blue", "green"))
        given = read(template(), request("atomic"), request("check", CHECK), blue, green, **options)
        return [request_view.name for request_view in given.requests]

    def test_a_named_instance_answers_requests_that_name_it(self):
        assert self.names(**{"check-capacity-processor-instance": "blue"}) == ["ml/blue"]

    def test_the_one_without_answers_requests_that_name_none(self):
        assert self.names() == ["ml/atomic", "ml/check"]


class TestAnsweredBefore:
    @pytest.mark.parametrize(
        ("conditions", "waits"),
        [
            ([condition("Accepted")], True),
            ([condition("Provisioned", "False", reason="CapacityIsNotFound")], True),
            ([condition("Provisioned", "False", reason="WaitingForNodes")], False),
            ([condition("Provisioned", "Unknown")], False),
            ([condition("Provisioned")], False),
            ([condition("Failed")], False),
        ],
    )
    def test_requests_that_are_retried(self, conditions: list[Json], waits: bool):
        assert bool(read(template(), request("r", conditions=conditions)).requests) is waits

    def promised(self, *conditions: Json, objects: Any = (), **more: Any) -> int:
        """Pods that are booked on a node with room for all."""
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "8", "pods": "110"}},
        }
        given = read(template(), request("r", conditions=conditions, **more), node, *objects)
        booked = book(given.snapshot, given.held, BookingHints(), read_options({})).by_request
        return sum(booked.get("ml/r", {}).values())

    def test_room_stays_theirs_while_the_booking_lasts(self):
        assert self.promised(condition("Provisioned")) == 2
        assert self.promised(condition("Provisioned", at="2025-12-31T23:49:00Z")) == 0
        assert self.promised(condition("Provisioned"), condition("BookingExpired")) == 0

    def test_a_check_may_reserve_nothing(self):
        assert self.promised(condition("Provisioned"), kind=CHECK) == 2
        assert self.promised(condition("Provisioned"), kind=CHECK, reserve="false") == 0

    def test_pods_that_run_have_their_room(self):
        consumer = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "namespace": "ml",
                "annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "r"},
            },
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]},
        }
        assert self.promised(condition("Provisioned"), objects=[consumer]) == 1
