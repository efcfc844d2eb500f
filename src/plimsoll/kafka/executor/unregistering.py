"""The guard of UnregisterBroker: Kafka removes the registration of a live broker without a question.

Its replicas go offline at once, so a registration is removed only if live metadata shows no replica on the broker and
the broker's process is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Outcome, Reason, Result
from plimsoll.kafka.brokers.replica_placement import read_replica_placement
from plimsoll.kafka.executor.reasons import name_some
from plimsoll.kafka.reporting.journal_plans import build_unregistration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import KafkaAdmin

_NOT_REGISTERED: Final = "BROKER_ID_NOT_REGISTERED"


async def unregister_broker(admin: KafkaAdmin, broker: int, is_gone: Callable[[int], Awaitable[bool]]) -> Reason | None:
    """Remove the registration of a broker that is gone. Gives the reason if it is refused.

    `is_gone`: whether the broker's pod or process no longer exists.
    """
    registered = {known.id: known for known in (await admin.describe_nodes()).brokers if known.is_registered}
    if broker not in registered:
        return None
    if not await is_gone(broker):
        return Reason(code="BrokerRuns", message=f"broker {broker} still runs", facts={"broker": broker})
    if not registered[broker].is_fenced:
        message = f"broker {broker} is not fenced: its last heartbeat is too recent, or it still runs"
        return Reason(code="BrokerNotFenced", message=message, facts={"broker": broker})
    refusal = await _find_replicas(admin, broker)
    if refusal is not None:
        return refusal
    error = await admin.unregister_broker(broker)
    if error is None or error.code == _NOT_REGISTERED:
        return None
    return Reason(code="BrokerError", message=f"the brokers refused it: {error}", facts={"error": error.code})


async def unregister_and_record(
    admin: KafkaAdmin,
    broker: int,
    is_gone: Callable[[int], Awaitable[bool]],
    *,
    journal: Journal,
    clock: Clock,
    known: Reason | None = None,
) -> Reason | None:
    """As `unregister_broker`; the journal has what was done, or why it was not.

    `known`: the refusal of the attempt before. It is not recorded again.
    """
    refusal = await unregister_broker(admin, broker, is_gone)
    if refusal is not None and known is not None and refusal.code == known.code:
        return refusal
    plan = build_unregistration(broker, refusal, at=clock.now())
    await journal.append(plan, tuple(Outcome(action=action, result=Result.DONE) for action in plan.actions))
    return refusal


async def _find_replicas(admin: KafkaAdmin, broker: int) -> Reason | None:
    """Why the broker may still be needed. What cannot be seen may be there."""
    placement = await read_replica_placement(admin)
    hosted, unseen = placement.partitions.get(broker), placement.unseen
    if hosted:
        message = f"broker {broker} hosts {format_count(len(hosted), 'replica')}: {name_some(hosted)}"
        return Reason(code="HostsReplicas", message=message, facts={"broker": broker, "replicas": len(hosted)})
    if unseen:
        message = f"topics could not be described, and may have replicas on broker {broker}: {name_some(unseen)}"
        return Reason(code="TopicsUnseen", message=message, facts={"broker": broker, "topics": sorted(unseen)[:100]})
    return None
