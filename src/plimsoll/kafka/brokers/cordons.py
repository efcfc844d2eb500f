"""Cordons of brokers that leave (Kafka 4.3 and later): new topics get no replica there.

DescribeConfigs names the setting if the broker has it and does not show its value, so the log directories say whether
they are cordoned. A cordon does not replace the check of replicas: explicit reassignments are accepted all the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    KafkaError,
    KafkaRefused,
    KafkaUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kafka.brokers.ports import KafkaAdmin

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
ALL: Final = "*"
BROKER_TIMEOUT_S: Final = 10.0


async def change_cordons(
    admin: KafkaAdmin, *, leaving: Collection[int], staying: Collection[int]
) -> tuple[Reason, ...]:
    """Cordon `leaving`, uncordon those of `staying` that are cordoned as a whole. Gives what could not be done."""
    brokers = sorted({*leaving, *staying})
    if not brokers:
        return ()
    resources = [_name_resource(broker) for broker in brokers]
    try:
        known = await admin.describe_configs(resources, (CORDONED_LOG_DIRS,))
    except (KafkaUnavailable, KafkaRefused) as error:
        return tuple(_explain(broker, str(error)) for broker in brokers)
    results = await asyncio.gather(
        *(_choose_change(admin, broker, known.get(_name_resource(broker)), broker in leaving) for broker in brokers)
    )
    problems = [result for result in results if isinstance(result, Reason)]
    changes = [result for result in results if isinstance(result, ConfigChange)]
    if changes:
        problems += await _send(admin, changes)
    return tuple(problems)


async def _choose_change(
    admin: KafkaAdmin,
    broker: int,
    known: object,
    leaves: bool,
) -> ConfigChange | Reason | None:
    """The change that a broker needs; None: it has what it should have, or knows no cordons."""
    if isinstance(known, KafkaError):
        return _explain(broker, str(known))
    if not isinstance(known, dict) or CORDONED_LOG_DIRS not in known:
        return None
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            log_dirs = (await admin.describe_log_dirs(broker)).log_dirs
    except TimeoutError:
        return _explain(broker, f"it did not answer within {BROKER_TIMEOUT_S:g} s")
    except (KafkaUnavailable, KafkaRefused) as error:
        return _explain(broker, str(error))
    is_cordoned = bool(log_dirs) and all(log_dir.is_cordoned for log_dir in log_dirs)
    if is_cordoned == leaves:
        return None
    operation = ConfigOperation.SET if leaves else ConfigOperation.DELETE
    value = ALL if leaves else ""
    return ConfigChange(resource=_name_resource(broker), key=CORDONED_LOG_DIRS, operation=operation, value=value)


async def _send(admin: KafkaAdmin, changes: list[ConfigChange]) -> list[Reason]:
    try:
        results = await admin.alter_configs(changes)
    except (KafkaUnavailable, KafkaRefused) as error:
        return [_explain(int(change.resource.name), str(error)) for change in changes]
    return [_explain(int(resource.name), str(error)) for resource, error in results.items() if error is not None]


def _name_resource(broker: int) -> ConfigResource:
    return ConfigResource("broker", str(broker))


def _explain(broker: int, problem: str) -> Reason:
    return Reason(
        code="CordonNotChanged",
        message=f"the cordon of broker {broker} could not be changed: {problem}",
        facts={"broker": broker},
    )
