"""Requests of classes that other packages registered, through the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes import builder
from plimsoll.nodes.requests.classes import Handled, RegisteredClass
from plimsoll.nodes.requests.status import build_condition
from tests.nodes.autoscaler.loop_scenarios import containers, group, lived

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.model import RequestView

Json = dict[str, Any]

GANG = "gang.example.com"
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "t", "namespace": "default"},
    "template": {"spec": containers("1")},
}


def request(name: str, kind: str = GANG) -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"provisioningClassName": kind, "podSets": [{"count": 8, "podTemplateRef": {"name": "t"}}]},
    }


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def register(handler: Any, *types: str) -> None:
        made = RegisteredClass(name=GANG, handler=handler, condition_types=frozenset(types))
        monkeypatch.setattr(builder, "load_registered_classes", lambda: {GANG: made})

    return register


def served(*objects: Json, loops: int = 1) -> Json:
    return lived(
        {"loop": loops, "every": "10s"},
        nodeGroups=[group("g")],
        objects=[TEMPLATE, *objects],
        options={"enable-provisioning-requests": True},
    ).outcome


def conditions(outcome: Json, name: str = "r") -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in outcome["requests"][f"default/{name}"]["conditions"]
    }


def planned(one: RequestView, _snapshot: Snapshot, now: datetime) -> Handled:
    stated = (build_condition("Gathered", "True", "All", "", at=now),)
    return Handled(plan=one.pods, conditions=stated, details={"gang": "blue"})


def test_what_a_class_plans_is_added_all_or_none(registered: Callable[..., None]):
    registered(planned, "Gathered")
    outcome = served(request("r"), loops=2)
    assert outcome["nodeGroups"]["g"]["target"] == 2
    assert conditions(outcome) == {
        "Gathered": ("True", "All"),
        "Accepted": ("True", "Accepted"),
        "Provisioned": ("True", "CapacityIsProvisioned"),
    }
    assert outcome["requests"]["default/r"]["details"]["gang"] == "blue"


def test_a_class_may_answer_by_itself(registered: Callable[..., None]):
    def refused(_one: RequestView, _snapshot: Snapshot, now: datetime) -> Handled:
        return Handled(conditions=(build_condition("Failed", "True", "TooLarge", "at most 4 pods", at=now),))

    registered(refused)
    outcome = served(request("r"), loops=3)
    assert conditions(outcome) == {"Failed": ("True", "TooLarge"), "Accepted": ("True", "Accepted")}
    assert outcome["nodeGroups"]["g"]["target"] == 0


def test_a_class_that_says_nothing_is_asked_again_by_back_off(registered: Callable[..., None]):
    asked: list[datetime] = []

    def silent(_one: RequestView, _snapshot: Snapshot, now: datetime) -> Handled:
        asked.append(now)
        return Handled()

    registered(silent)
    outcome = served(request("r"), loops=30)
    assert [(time - asked[0]).total_seconds() for time in asked] == [0, 70, 200]
    assert conditions(outcome)["Provisioned"] == ("False", "CapacityIsNotFound")


def test_a_class_that_raises_fails_its_own_request_and_no_other(registered: Callable[..., None]):
    def raising(*_: Any) -> Handled:
        raise ZeroDivisionError

    registered(raising)
    outcome = served(request("r"), request("other", "atomic-scale-up.kubernetes.io"), loops=2)
    assert conditions(outcome)["Provisioned"] == ("False", "FailedToCheckCapacity")
    assert conditions(outcome, "other")["Provisioned"] == ("True", "CapacityIsProvisioned")
