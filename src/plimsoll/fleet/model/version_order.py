"""The order of Strimzi and Kafka versions (docs/design/fleet.md 1.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.value_parsing import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.model.clusters import StrimziVersion, VersionItem

_NUMBER: Final = "[0-9]{1,9}"
_SUFFIX: Final = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})-({_NUMBER})$", re.ASCII)
_PLAIN: Final = re.compile(rf"{_NUMBER}(\.{_NUMBER}){{0,3}}", re.ASCII)


class UnsortableVersion(Exception):
    """A version without the numbers that give its place in the order."""


def parse_strimzi_version(version: str) -> tuple[int, ...]:
    """The comparable part: `strimzi-cluster-operator.v0.23.0-0` is 0.23.0-0."""
    found = _SUFFIX.search(version)
    if found is None:
        raise UnsortableVersion(f"{quote(version)} does not end in a version like 0.23.0-0")
    return tuple(int(part) for part in found.groups())


def parse_kafka_version(version: str) -> tuple[int, ...]:
    """A Kafka version, or an IBP version: 2.7.0, 2.7."""
    if _PLAIN.fullmatch(version) is None:
        raise UnsortableVersion(f"{quote(version)} is not a version like 2.7.0")
    return tuple(int(part) for part in version.split("."))


def sort_strimzi_versions(versions: Iterable[StrimziVersion]) -> tuple[StrimziVersion, ...]:
    """All lists in ascending order. Raises `UnsortableVersion`."""
    sorted_inside = [
        msgspec.structs.replace(
            strimzi,
            kafkaVersions=_sort_items(strimzi.kafkaVersions),
            kafkaIBPVersions=_sort_items(strimzi.kafkaIBPVersions),
        )
        for strimzi in versions
    ]
    return tuple(sorted(sorted_inside, key=lambda strimzi: parse_strimzi_version(strimzi.version)))


def _sort_items(items: Iterable[VersionItem]) -> tuple[VersionItem, ...]:
    return tuple(sorted(items, key=lambda item: parse_kafka_version(item.version)))
