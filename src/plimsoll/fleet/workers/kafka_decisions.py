"""Decisions about one Kafka as steps and as things not done, shared by the workers of Kafkas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Action, NotDone
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster, refer_to_kafka
from plimsoll.fleet.workers.passes import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime, timedelta

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.ports import KafkaChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore

FAIL: Final = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why something is done or not done about a Kafka. `code` in the spelling of docs/design/fleet.md."""

    code: str
    message: str
    facts: Mapping[str, Any]


def build_change_step(
    store: LeasedStore,
    kafka: KafkaRequest,
    changes: KafkaChanges,
    *,
    verb: str,
    cause: Cause,
    statuses: Collection[KafkaStatus] | None = None,
) -> Step:
    """Changes the row if it is in one of `statuses`; None: if it is in the status in which it was read."""
    expected = {kafka.status} if statuses is None else statuses

    async def run() -> bool:
        return await store.change_kafka(kafka.id, changes, statuses=expected) is not None

    return Step(action=_build_action(verb, kafka, cause, changes), run=run)


def build_failure_step(store: LeasedStore, kafka: KafkaRequest, failed_reason: str, cause: Cause) -> Step:
    """`failed_reason` is what the user reads."""
    changes: KafkaChanges = {"status": KafkaStatus.FAILED, "failed_reason": failed_reason}
    return build_change_step(store, kafka, changes, verb=FAIL, cause=cause)


def build_removal_step(store: LeasedStore, kafka: KafkaRequest, cause: Cause) -> Step:
    async def run() -> bool:
        return await store.remove_kafka(kafka.id, statuses={kafka.status})

    return Step(action=_build_action("remove", kafka, cause, {}), run=run)


def build_waiting(kafka: KafkaRequest, cause: Cause, *, cluster: Cluster | None = None) -> NotDone:
    reason = build_reason(cause.code, cause.message, cause.facts)
    not_done = NotDone(what="waiting", about=(refer_to_kafka(kafka.id),), reason=reason)
    if cluster is None:
        return not_done
    return NotDone(what=not_done.what, about=not_done.about, reason=reason, concerns=(refer_to_cluster(cluster.id),))


def is_older(kafka: KafkaRequest, age: timedelta, now: datetime) -> bool:
    """Whether the request was made at least that long ago."""
    return now - kafka.created_at >= age


def _build_action(verb: str, kafka: KafkaRequest, cause: Cause, changes: KafkaChanges) -> Action:
    """The arguments name the new status only: other columns may hold what a journal must not."""
    status = changes.get("status")
    return Action(
        verb=verb,
        target=refer_to_kafka(kafka.id),
        reason=build_reason(cause.code, cause.message, cause.facts),
        arguments={} if status is None else {"status": status.value},
        precondition={"status": kafka.status.value},
    )
