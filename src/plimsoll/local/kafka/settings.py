"""Dynamic settings of topics and brokers, with the operations of IncrementalAlterConfigs.

As seen on Kafka 4.3.1: the changes of one resource apply together or not at all; APPEND to `*` is refused and leaves
it; duplicates merge; SUBTRACT of the last entry leaves an empty value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.local.kafka.answers import ItemError

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC: Final = "topic"
BROKER: Final = "broker"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
CORDONED: Final = "cordoned.log.dirs"
MIN_ISR: Final = "min.insync.replicas"
ALL: Final = "*"

_LISTS: Final = {TOPIC: (LEADER_REPLICAS, FOLLOWER_REPLICAS, "cleanup.policy"), BROKER: (CORDONED,)}
_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_THROTTLED: Final = re.compile(r"|\*|\d+:\d+(,\d+:\d+)*")
_INVALID: Final = "INVALID_CONFIG"


class SettingChange(NamedTuple):
    """A change of one setting. `operation`: SET, DELETE, APPEND or SUBTRACT."""

    key: str
    operation: str
    value: str = ""


class DynamicSettings:
    """The dynamic settings of all resources: (type, name) → key → value."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[str, str]] = {}

    def read(self, kind: str, name: str) -> dict[str, str]:
        return dict(self._values.get((kind, name), {}))

    def get(self, kind: str, name: str, key: str) -> str:
        return self._values.get((kind, name), {}).get(key, "")

    def remove(self, kind: str, name: str) -> None:
        self._values.pop((kind, name), None)

    def list_all(self) -> list[tuple[str, str, dict[str, str]]]:
        """Type, name and values of every resource."""
        return [(kind, name, dict(values)) for (kind, name), values in sorted(self._values.items())]

    def restore(self, kind: str, name: str, values: dict[str, str]) -> None:
        """Set what was stored, without checks."""
        self._values[kind, name] = dict(values)

    def change(self, kind: str, name: str, changes: Sequence[SettingChange]) -> ItemError | None:
        """All changes of one resource, or none of them."""
        values = self.read(kind, name)
        for change in changes:
            problem = _apply(kind, values, change)
            if problem is not None:
                return problem
        self._values[kind, name] = values
        return None


def _apply(kind: str, values: dict[str, str], change: SettingChange) -> ItemError | None:
    key, operation = change.key, change.operation
    if operation == "DELETE":
        values.pop(key, None)
        return None
    value = change.value
    if operation in {"APPEND", "SUBTRACT"}:
        if key not in _LISTS.get(kind, ()):
            return ItemError(_INVALID, f"Config value {operation.lower()} is not allowed for config key: {key}")
        value = _combine(values.get(key, ""), operation, change.value)
    elif operation != "SET":
        return ItemError("INVALID_REQUEST", f"Unknown operation {operation}")
    problem = _check(key, value)
    if problem is None:
        values[key] = value
    return problem


def _combine(current: str, operation: str, value: str) -> str:
    entries = split_list(current)
    given = split_list(value)
    if operation == "APPEND":
        return ",".join(dict.fromkeys((*entries, *given)))
    return ",".join(entry for entry in entries if entry not in given)


def _check(key: str, value: str) -> ItemError | None:
    if key in {LEADER_REPLICAS, FOLLOWER_REPLICAS} and not _THROTTLED.fullmatch(value):
        message = f"Invalid value {value} for configuration {key}: must be the literal '*' or a list of replicas"
        return ItemError(_INVALID, message)
    if key in _RATES and not (value.isascii() and value.isdecimal()):
        return ItemError(_INVALID, f"Invalid value {value} for configuration {key}: Value must be at least 0")
    return None


@lru_cache(maxsize=4096)
def split_list(value: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in value.split(",") if entry.strip())


def lists_replica(value: str, partition: int, broker: int) -> bool:
    """Whether a list of throttled replicas names a replica."""
    entries = split_list(value)
    return ALL in entries or f"{partition}:{broker}" in entries
