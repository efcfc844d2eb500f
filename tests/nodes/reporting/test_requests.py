"""ProvisioningRequests in Events, metrics, the journal and the sentence of a turn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Reason, Ref
from plimsoll.kube.recorder import EventType
from plimsoll.nodes.reporting.events.emitter import EventEmitter, build_events
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from plimsoll.nodes.requests.model import ClassKind, ConsumerWarning, Phase, RequestsPart, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.status import ConditionType, build_condition
from tests.nodes.planning.builders import NOON
from tests.nodes.reporting.loop_results import later, loop_result, pod
from tests.nodes.requests.request_views import ATOMIC, pods_of, request_view

if TYPE_CHECKING:
    from plimsoll.nodes.loop_result import LoopResult

SOME = request_view("r", (pods_of(1), 3), class_kind=ClassKind.ATOMIC)
NEW = request_view("r", (pods_of(1), 3), class_kind=ClassKind.ATOMIC, phase=Phase.DUE)


def verdict(kind: UpdateKind, message: str = "so it is", *, is_written: bool = True) -> StatusUpdate:
    return StatusUpdate(
        view=SOME,
        kind=kind,
        reason=Reason(code=kind.value, message=message),
        conditions=SOME.conditions,
        details=SOME.details,
        is_written=is_written,
    )


def with_requests(*verdicts: StatusUpdate, **part: Any) -> LoopResult:
    return loop_result(requests=RequestsPart(updates=verdicts, **part))


def unschedulable(pods: int) -> ConsumerWarning:
    reason = Reason(code="ConsumingPodsUnschedulable", message=f"{pods} pods wait, and the room is gone")
    return ConsumerWarning(reason=reason, request="default/r", view=SOME)


# ---- events


@pytest.mark.parametrize(
    "kind",
    [update_kind for update_kind in UpdateKind if update_kind not in {UpdateKind.ACCEPTED, UpdateKind.DELETED}],
)
def test_a_report_on_a_request_is_an_event_of_it(kind: UpdateKind):
    (reported,) = build_events(with_requests(verdict(kind)))
    assert (reported.about.kind, reported.about.name, reported.about.uid) == ("ProvisioningRequest", "r", "uid-r")
    assert (reported.reason, reported.message) == (kind.value, "so it is")
    is_bad = kind in {UpdateKind.NOT_FOUND, UpdateKind.FAILED, UpdateKind.REVOKED, UpdateKind.ROLLED_BACK}
    assert reported.type is (EventType.WARNING if is_bad else EventType.NORMAL)


def accepting(kind: UpdateKind, *, is_written: bool = True) -> StatusUpdate:
    made = build_condition(ConditionType.ACCEPTED, status=True, reason="Accepted", message="queued", at=NOON)
    stated = verdict(kind, is_written=is_written)
    return replace(stated, view=NEW, conditions=NEW.conditions.with_condition(made))


@pytest.mark.parametrize("kind", [UpdateKind.ACCEPTED, UpdateKind.PROVISIONED, UpdateKind.NOT_FOUND])
def test_an_accepted_request_gets_one_event_before_anything_else(kind: UpdateKind):
    reported = build_events(with_requests(accepting(kind), verdict(UpdateKind.NOT_FOUND)))
    assert (reported[0].reason, reported[0].type) == ("Accepted", EventType.NORMAL)
    assert [message.reason for message in reported[1:]].count("Accepted") == 0
    metrics = Metrics()
    metrics.observe(with_requests(accepting(kind), verdict(UpdateKind.NOT_FOUND)))
    assert metrics.collect_samples()[f"provreq_total{{class={ATOMIC},outcome=Accepted}}"] == 1


def test_an_acceptance_that_was_not_written_is_not_reported():
    assert build_events(with_requests(accepting(UpdateKind.ACCEPTED, is_written=False))) == ()


def test_what_only_tidies_up_is_not_reported_or_counted():
    one = with_requests(replace(verdict(UpdateKind.ROLLED_BACK), is_news=False))
    assert build_events(one) == ()
    assert build_plan_and_outcomes(one)[0].actions == ()
    metrics = Metrics()
    metrics.observe(one)
    assert metrics.collect_samples()["rollbacks_total"] == 0


def test_what_was_not_written_is_not_reported():
    assert (
        build_events(with_requests(verdict(UpdateKind.PROVISIONED, is_written=False), verdict(UpdateKind.DELETED)))
        == ()
    )


def test_a_pod_gets_an_event_with_what_is_wrong():
    reason = Reason(code="ProvisioningClassMismatch", message="it says another class")
    (reported,) = build_events(
        with_requests(warnings=(ConsumerWarning(reason=reason, request="default/r", pod=pod("p")),))
    )
    assert (reported.about.kind, reported.about.name, reported.reason) == ("Pod", "p", "ProvisioningClassMismatch")


class FakeRecorder:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def record(self, _about: Any, _type: EventType, *, reason: str, message: str) -> None:
        assert reason == "ConsumingPodsUnschedulable"
        self.messages.append(message)


def test_n47_waiting_consumers_are_reported_once_in_five_minutes_however_many_they_are():
    heard = FakeRecorder()
    emitter = EventEmitter(heard)
    first = with_requests(warnings=(unschedulable(2),))
    for seconds in range(0, 310, 10):
        emitter.emit(later(with_requests(warnings=(unschedulable(seconds),)), at=first.at + timedelta(seconds=seconds)))
    assert heard.messages == ["0 pods wait, and the room is gone", "300 pods wait, and the room is gone"]


# ---- metrics


def test_answers_are_counted_by_class_and_outcome():
    metrics = Metrics()
    one = with_requests(
        verdict(UpdateKind.PROVISIONED),
        verdict(UpdateKind.ROLLED_BACK),
        verdict(UpdateKind.FAILED, is_written=False),
        waiting={ATOMIC: 4},
        booked={"default/r": {"n1": 3, "n2": 2}},
        unbookable={"default/r": 1},
    )
    metrics.observe(one)
    counted = metrics.collect_samples()
    assert counted[f"provreq_total{{class={ATOMIC},outcome=Provisioned}}"] == 1
    assert f"provreq_total{{class={ATOMIC},outcome=Failed}}" not in counted
    assert counted["rollbacks_total"] == 1
    assert counted[f"provreq_pending{{class={ATOMIC}}}"] == 4
    assert (counted["provreq_booked_pods"], counted["provreq_unbookable_pods"]) == (5, 1)
    metrics.observe(with_requests())
    assert f"provreq_pending{{class={ATOMIC}}}" not in metrics.collect_samples()


def test_the_time_to_capacity_is_measured():
    metrics = Metrics()
    one = with_requests(verdict(UpdateKind.PROVISIONED))
    assert SOME.created is not None
    metrics.observe(later(one, at=SOME.created + timedelta(seconds=90)))
    reported = metrics.render().decode()
    assert f'provreq_time_to_provisioned_seconds_sum{{class="{ATOMIC}"}} 90.0' in reported
    shown = metrics.collect_samples()
    assert shown["provreq_time_to_provisioned_seconds_count"] == 1
    assert shown[f"provreq_time_to_provisioned_seconds_sum{{class={ATOMIC}}}"] == 90


def test_pods_that_got_their_room_in_this_very_turn_count_as_booked():
    metrics = Metrics()
    metrics.observe(with_requests(verdict(UpdateKind.PROVISIONED)))
    assert metrics.collect_samples()["provreq_booked_pods"] == 3


# ---- journal and log


def test_the_journal_knows_what_was_done_and_what_was_not():
    plan, outcomes = build_plan_and_outcomes(
        with_requests(verdict(UpdateKind.PROVISIONED), verdict(UpdateKind.NOT_FOUND, "14 of 24 pods fit"))
    )
    request = Ref(kind="request", namespace="default", name="r")
    assert [(action.verb, action.target) for action in plan.actions] == [("provision", request)]
    assert [str(outcome.result.value) for outcome in outcomes] == ["Done"]
    (left,) = plan.not_done
    assert (left.about, left.reason.message) == ((request,), "14 of 24 pods fit")


def test_the_sentence_names_requests():
    line = build_log_line(
        with_requests(verdict(UpdateKind.NOT_FOUND, "14 of 24 pods fit"), verdict(UpdateKind.ACCEPTED))
    )
    assert line.endswith("default/r (14 of 24 pods fit)")
    assert line.count("default/r") == 1, "an acceptance is not worth a clause"
