"""Events of a Kafka: each warning once, also if several have one reason."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from plimsoll.core.plans import Reason
from plimsoll.kafka.reporting.cluster_reporter import ClusterReporter, ClusterResult
from plimsoll.objects.api.kafka import Kafka
from plimsoll.objects.api.meta import ObjectMeta

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Recorder:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def record(self, _about: object, _type: object, *, message: str, **_fields: Any) -> None:
        self.messages.append(message)


def test_warnings_with_one_reason_are_recorded_once():
    recorder = Recorder()
    reporter = ClusterReporter(recorder=recorder)  # type: ignore[arg-type]
    kafka = Kafka(metadata=ObjectMeta(namespace="kafka", name="c"))

    def report(*messages: str) -> list[str]:
        warnings = tuple(Reason(code="NodeIdRangesUnusual", message=message) for message in messages)
        recorder.messages.clear()
        asyncio.run(reporter.report(ClusterResult(kafka=kafka, at=AT, warnings=warnings)))
        return list(recorder.messages)

    assert report("of p", "of q") == ["of p", "of q"]
    assert report("of p", "of q") == []
    assert report("of p", "of q", "of p") == []
    assert "of r" in report("of p", "of r")
