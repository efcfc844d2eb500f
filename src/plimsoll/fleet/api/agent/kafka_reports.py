"""Storing what an agent reports about the Kafkas of its cluster: each Kafka in a transaction of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.plans import Outcome, Result
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.plan_parts import build_plan
from plimsoll.fleet.planning.prewarming import count_reserved_reports, is_reserved
from plimsoll.fleet.planning.reports import read_condition, read_kafka_report
from plimsoll.fleet.wire.agent_reports import UnreadableReport, convert_kafka_status
from plimsoll.journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.plans import Action
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.planning.reports import KafkaReportResult
    from plimsoll.fleet.ports import KafkaChanges

_MOST_WARNINGS: Final = 20
_ALL: Final = frozenset(KafkaStatus)

_log = structlog.get_logger("plimsoll.fleet.api")


class KafkaReports:
    """Stores reports. What cannot be used is logged and changes nothing."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports

    async def store(self, cluster: Cluster, reports: Mapping[str, Any]) -> None:
        """`reports`: by the id of the Kafka, decoded from JSON and not checked."""
        kafkas = await self._ports.store.list_kafkas(_ALL, cluster_id=cluster.cluster_id)
        known = {kafka.id: kafka for kafka in kafkas}
        actions: list[Action] = []
        warnings: list[str] = []
        for kafka_id, report in reports.items():
            kafka = known.get(kafka_id)
            if kafka is not None:
                result = read_kafka_report(kafka, report, cluster, self._ports.clock.now())
                warnings += [f"{kafka_id}: {warning}" for warning in result.warnings]
                actions += await self._apply(kafka, result)
            elif not is_reserved(kafka_id):
                warnings.append(f"{kafka_id[:50]}: it is not on this cluster")
        warnings += self._count_reserved(cluster, reports)
        if warnings:
            _log.warning("report.ignored", cluster=cluster.id, count=len(warnings), problems=warnings[:_MOST_WARNINGS])
        if actions:
            await self._record(actions)

    async def _apply(self, kafka: KafkaRequest, result: KafkaReportResult) -> tuple[Action, ...]:
        """The actions that took effect. The row may have changed since it was read: then the next report decides."""
        changes: KafkaChanges = {**result.changes}
        if result.needs_new_placement:
            changes["placement_id"] = self._ports.entropy.generate_uid()
        if not changes:
            return ()
        changed = await self._ports.store.change_kafka(
            kafka.id, changes, statuses=result.statuses, placement_id=kafka.placement_id
        )
        if changed is None:
            return ()
        now = self._ports.clock.now()
        if changed.status is KafkaStatus.DELETING:
            self._ports.signals.notify(Worker.DELETING_KAFKA)
        elif not changed.cluster_id:
            self._ports.signals.notify(Worker.PROVISIONING_KAFKA)
        elif kafka.status is KafkaStatus.PROVISIONING and changed.status is KafkaStatus.READY:
            self._ports.metrics.observe_kafka_creation((now - changed.created_at).total_seconds())
        return result.build_plan(0, now).actions

    def _count_reserved(self, cluster: Cluster, reports: Mapping[str, Any]) -> list[str]:
        statuses: dict[str, str] = {}
        warnings = []
        for kafka_id, report in reports.items():
            if is_reserved(kafka_id):
                try:
                    statuses[kafka_id] = read_condition(convert_kafka_status(report).conditions or ())
                except UnreadableReport as error:
                    warnings.append(f"{kafka_id[:50]}: the report cannot be read: {error}")
        counts, strange = count_reserved_reports(cluster, statuses)
        self._ports.metrics.set_reserved(cluster.cluster_id, counts)
        return warnings + [f"{kafka_id[:50]}: it is not a reserved instance of this cluster" for kafka_id in strange]

    async def _record(self, actions: list[Action]) -> None:
        plan = build_plan(0, self._ports.clock.now(), actions)
        outcomes = tuple(Outcome(action=action, result=Result.DONE) for action in actions)
        try:
            await self._ports.journal.append(plan, outcomes)
        except JournalError as error:
            _log.warning("journal.not_written", problem=str(error))
