"""Events of a Kafka: each warning once, also if several have one reason, and again when it is back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceStep
from plimsoll.kafka.reporting.cluster_reporter import ClusterReporter, ClusterResult
from plimsoll.objects.api.kafka import Kafka
from plimsoll.objects.api.meta import ObjectMeta

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Recorder:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def record(self, _about: object, _type: object, *, message: str, **_fields: Any) -> None:
        self.messages.append(message)


def build_step() -> AutoRebalanceStep:
    return AutoRebalanceStep(stored=AutoRebalance())


def test_a_warning_is_an_event_once_and_again_when_it_is_back():
    recorder = Recorder()
    reporter = ClusterReporter(recorder=recorder)
    kafka = Kafka(metadata=ObjectMeta(namespace="kafka", name="c"))

    def report(*messages: str, problem: str = "") -> list[str]:
        warnings = tuple(Reason(code="NodeIdRangesUnusual", message=message) for message in messages)
        failure = Reason(code="KafkaUnavailable", message=problem) if problem else None
        step = None if problem else build_step()
        recorder.messages.clear()
        result = ClusterResult(kafka=kafka, at=AT, step=step, warnings=warnings, problem=failure)
        asyncio.run(reporter.report(result))
        return list(recorder.messages)

    assert report("of p", "of q") == ["of p", "of q"]
    assert report("of p", "of q", "of p") == []
    assert report("of p", "of r") == ["of r"]
    assert report(problem="no broker answers") == ["no broker answers"]
    assert report("of p", "of r") == [], "a reconcile that failed says nothing about warnings"
    assert report() == []
    assert report("of p") == ["of p"]
