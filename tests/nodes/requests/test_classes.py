"""Provisioning classes of other packages: how they are found, and what becomes of broken ones."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.nodes.requests.classes import GROUP, Handled, load_classes, load_registered_classes, map_condition_types
from plimsoll.nodes.requests.status import build_condition
from tests.nodes.requests.listed_requests import CHECK, START, request, seen_one

if TYPE_CHECKING:
    from plimsoll.nodes.requests.classes import RegisteredClass
    from tests.golden.reviewed_sentences import ReviewedSentences

GANG = "gang.example.com"
SNAPSHOT: Any = None
"""No handler here looks at it."""


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One that is installed beside us."""
    module = ModuleType("gangs")
    monkeypatch.setitem(sys.modules, "gangs", module)
    return module


def point(name: str = GANG, value: str = "gangs:answer") -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def registered(package: ModuleType, answer: Any, **attributes: Any) -> RegisteredClass:
    vars(package)["answer"] = answer
    for name, value in attributes.items():
        setattr(answer, name, value)
    return load_classes([point()])[GANG]


def a_request() -> Any:
    return seen_one(request(kind=GANG), registered={GANG: ()})


def test_a_handler_gets_the_request_and_says_what_to_plan(package: ModuleType):
    made = registered(package, lambda request, _snapshot, _now: Handled(plan=request.pods))
    found = made.answer(a_request(), SNAPSHOT, START)
    assert isinstance(found, Handled)
    assert [pending.key for pending in found.plan] == ["ml/r/0"]


def test_a_class_has_conditions_of_its_own(package: ModuleType):
    def answer(*_: Any) -> Handled:
        return Handled(conditions=(build_condition("Gathered", "True", "All", "", at=START),))

    made = registered(package, answer, condition_types=("Gathered",))
    assert isinstance(made.answer(a_request(), SNAPSHOT, START), Handled)
    assert map_condition_types({GANG: made}) == {GANG: {"Gathered"}}


def test_conditions_of_others_are_not_its_to_set(package: ModuleType, reviewed: ReviewedSentences):
    def answer(*_: Any) -> Handled:
        return Handled(conditions=(build_condition("CapacityRevoked", "True", "X", "", at=START),))

    made = registered(package, answer, condition_types=("CapacityRevoked",))
    reviewed(str(made.answer(a_request(), SNAPSHOT, START)))


def test_what_a_handler_raises_is_an_answer(package: ModuleType, reviewed: ReviewedSentences):
    def answer(*_: Any) -> Handled:
        raise ZeroDivisionError("by zero")

    made = registered(package, answer)
    reviewed(str(made.answer(a_request(), SNAPSHOT, START)))


def test_what_a_handler_must_not_return_is_one_too(package: ModuleType, reviewed: ReviewedSentences):
    reviewed(str(registered(package, lambda *_: None).answer(a_request(), SNAPSHOT, START)))


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (point(value="no_such_package:answer"), "ModuleNotFoundError"),
        (point(value="gangs:nothing"), "AttributeError"),
        (point(value="gangs:__name__"), "str cannot be called"),
        (point(name=CHECK), "it has the name of a class of ours"),
    ],
    ids=["no package", "no function", "no function either", "ours"],
)
def test_a_broken_one_is_reported_and_left_out(package: ModuleType, broken: EntryPoint, problem: str):
    vars(package)["answer"] = lambda *_: Handled()
    with capture_logs() as logs:
        found = load_classes([broken, point("other.example.com")])
    assert [*found] == ["other.example.com"]
    (reported,) = logs
    assert reported["event"] == "requests.class_left_out"
    assert problem in reported["problem"]


def test_of_two_with_one_name_the_first_is_taken(package: ModuleType):
    vars(package).update(answer=(shared := lambda *_: Handled()), other=shared)
    with capture_logs() as logs:
        load_classes([point(value="gangs:other"), point()])
    assert [log_entry["entry_point"] for log_entry in logs] == ["gangs:other"]


def test_they_are_looked_for_once():
    assert load_registered_classes() is load_registered_classes()
