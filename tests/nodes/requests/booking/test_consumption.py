"""What waiting pods that consume a request, or their requests, are warned of (docs/design/nodes.md 2.4, 4.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from plimsoll.nodes.requests.booking.consumption import find_consumer_warnings
from plimsoll.nodes.requests.model import ClassKind, ObservedRequests, Phase
from plimsoll.nodes.requests.status import ConditionReason, Conditions, ConditionType, build_condition
from plimsoll.objects.api.pods import PodCondition, PodStatus
from tests.nodes.planning.builders import NOON
from tests.nodes.requests.request_views import ATOMIC, CHECK, consumer, pods_of, request_view
from tests.scheduling.builders import pod

ONE = pods_of(1)
R = request_view("r", (ONE, 4))
REFUSED = PodStatus(conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),))


def there(*held: Any, others: tuple[Any, ...] = (), known: frozenset[str] = frozenset()) -> ObservedRequests:
    names = {request.name for request in (*held, *others)}
    return ObservedRequests(held=held, others=others, known=frozenset(names) | known)


def codes(waiting: Any, requests: ObservedRequests, **more: Any) -> list[str]:
    return [consumer_warning.reason.code for consumer_warning in find_consumer_warnings(waiting, requests, **more)]


def test_nothing_is_wrong_with_pods_made_from_the_template():
    assert codes([consumer("c", "r", ONE)], there(R)) == []


def test_pods_that_consume_nothing_are_passed_over():
    assert codes([pod("web")], there(R)) == []


@pytest.mark.parametrize(
    ("stated", "code"), [("", "ProvisioningClassAnnotationMissing"), (CHECK, "ProvisioningClassMismatch")]
)
def test_the_class_is_to_be_named(stated: str, code: str):
    (warning,) = find_consumer_warnings([consumer("c", "r", ONE, stated_class=stated)], there(R))
    assert warning.reason.code == code
    assert warning.pod is not None
    assert ATOMIC in warning.reason.message


@pytest.mark.parametrize(
    "differing",
    [
        pods_of(2),
        pods_of(1, nodeSelector={"disk": "ssd"}),
        pods_of(1, tolerations=[{"key": "gpu", "operator": "Exists"}]),
    ],
    ids=["requests", "node selector", "tolerations"],
)
def test_a_pod_that_no_template_matches(differing: Any):
    assert codes([consumer("c", "r", differing)], there(R)) == ["ProvisioningRequestPodMismatch"]


def test_labels_and_names_make_no_difference():
    assert codes([consumer("c", "r", ONE, job="x")], there(R)) == []


def test_a_request_that_does_not_exist_is_reported_once():
    """N10."""
    waiting = [consumer(f"c{number}", "pr-x", ONE) for number in range(3)]
    (warning,) = find_consumer_warnings(waiting, there())
    assert warning.reason.code == "ProvisioningRequestMissing"
    assert warning.request == "default/pr-x"
    assert warning.reason.facts["pods"] == 3


def test_the_class_is_to_be_named_also_of_a_request_that_does_not_exist():
    waiting = [consumer("c0", "pr-x", ONE), consumer("c1", "pr-x", ONE, stated_class="")]
    missing, unnamed = find_consumer_warnings(waiting, there())
    assert (missing.reason.code, unnamed.reason.code) == (
        "ProvisioningRequestMissing",
        "ProvisioningClassAnnotationMissing",
    )
    assert unnamed.pod is waiting[1]


def test_a_class_may_be_named_by_any_of_its_names():
    assert codes([consumer("c", "r", ONE, stated_class="atomic-scale-up.kubernetes.io")], there(R)) == []


def test_of_requests_of_other_classes_nothing_is_reported():
    waiting = [consumer("c", "foreign", ONE, stated_class="")]
    assert codes(waiting, there(known=frozenset({"default/foreign"}))) == []


class TestUnschedulable:
    """N47."""

    waiting = [consumer(f"c{number}", "r", ONE) for number in range(2)]

    def test_while_room_is_kept_all_is_well(self):
        assert codes(self.waiting, there(R)) == []

    def test_others_took_the_room(self):
        (warning,) = find_consumer_warnings(self.waiting, there(R), unbookable={"default/r": 2})
        assert warning.reason.code == "ConsumingPodsUnschedulable"
        assert warning.pod is None
        assert "2 pods" in warning.reason.message
        assert "2 of the 4" in warning.reason.message

    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            (ConditionType.BOOKING_EXPIRED, ConditionReason.TIME_OVER),
            (ConditionType.CAPACITY_REVOKED, ConditionReason.NODES_LOST),
            (ConditionType.FAILED, ConditionReason.EXPIRED),
        ],
    )
    def test_nothing_is_kept_any_more(self, kind: ConditionType, why: ConditionReason):
        over = request_view("r", (ONE, 4), phase=Phase.OVER)
        ended = build_condition(kind, status=True, reason=why, message="", at=NOON)
        over = replace(over, conditions=Conditions((ended,)))
        (warning,) = find_consumer_warnings(self.waiting, there(others=(over,)))
        assert warning.reason.code == "ConsumingPodsUnschedulable"
        assert why in warning.reason.message

    @pytest.mark.parametrize("phase", [Phase.DUE, Phase.WAITING, Phase.ARRIVING, Phase.INTENDED])
    def test_capacity_that_is_still_to_come_is_waited_for(self, phase: Phase):
        assert codes(self.waiting, there(others=(request_view("r", (ONE, 4), phase=phase),))) == []

    @pytest.mark.parametrize(("status", "stated"), [(PodStatus(), []), (REFUSED, ["ConsumingPodsUnschedulable"])])
    def test_room_that_was_not_to_be_kept(self, status: PodStatus, stated: list[str]):
        """Only the scheduler can say whether it is gone."""
        free = request_view("r", (ONE, 4), class_kind=ClassKind.CHECK, reserves=False)
        waiting = [consumer("c", "r", ONE, stated_class=CHECK)]
        assert codes([structs.replace(request, status=status) for request in waiting], there(others=(free,))) == stated
