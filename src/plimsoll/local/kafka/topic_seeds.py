"""Topics that a simulated cluster has from its beginning, from an annotation of the Kafka or from a scenario. Pure.

    simulated.plimsoll.io/topics: |
      [{"name": "orders", "partitions": 12, "replicationFactor": 3, "partitionSize": "1Gi"}]

Sizes are quantities; `bytesInPerSecond` and `bytesOutPerSecond` are rates of each partition.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value

TOPICS_ANNOTATION: Final = "simulated.plimsoll.io/topics"
MOST_PARTITIONS: Final = 100_000
"""The most partitions of all topics of a cluster."""
_FIELDS: Final = (
    "name",
    "partitions",
    "replicationFactor",
    "partitionSize",
    "bytesInPerSecond",
    "bytesOutPerSecond",
    "internal",
)
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MOST_REPLICAS: Final = 1_000
_LARGEST_BYTES: Final = 2**50


class TopicSeed(Value):
    """A topic to create. Sizes and rates are those of each partition."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    partition_bytes: int = 0
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    is_internal: bool = False


def parse_topic_seeds(text: str, *, path: str) -> tuple[TopicSeed, ...]:
    """The topics of an annotation. Raises `InvalidInput` with the path of the first mistake."""
    try:
        written = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"must be a JSON list of topics: {error}", path=path) from None
    return read_topic_seeds(written, path=path)


def read_topic_seeds(written: Any, *, path: str) -> tuple[TopicSeed, ...]:
    """The same from what was decoded already."""
    if not isinstance(written, list):
        raise InvalidInput("must be a list of topics", path=path)
    seeds: dict[str, TopicSeed] = {}
    total = 0
    for index, entry in enumerate(written):
        seed = _read_topic(entry, path=f"{path}[{index}]")
        if seed.name in seeds:
            raise InvalidInput(f"{seed.name} occurs twice", path=f"{path}[{index}].name")
        seeds[seed.name] = seed
        total += seed.partitions
        if total > MOST_PARTITIONS:
            raise InvalidInput(
                f"at most {MOST_PARTITIONS} partitions are simulated", path=f"{path}[{index}].partitions"
            )
    return tuple(seeds.values())


def _read_topic(entry: Any, *, path: str) -> TopicSeed:
    if not isinstance(entry, dict):
        raise InvalidInput("must be a topic with a name", path=path)
    unknown = next((field for field in entry if field not in _FIELDS), None)
    if unknown is not None:
        raise InvalidInput(f"unknown field; there are {', '.join(_FIELDS)}", path=f"{path}.{unknown}")
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput("must be a name of letters, digits, '.', '_' and '-'", path=f"{path}.name")
    is_internal = entry.get("internal", False)
    if not isinstance(is_internal, bool):
        raise InvalidInput("must be true or false", path=f"{path}.internal")
    return TopicSeed(
        name=name,
        partitions=_read_count(entry, "partitions", most=MOST_PARTITIONS, path=path),
        replication_factor=_read_count(entry, "replicationFactor", most=_MOST_REPLICAS, path=path),
        partition_bytes=_read_bytes(entry, "partitionSize", path=path),
        bytes_in_per_s=float(_read_bytes(entry, "bytesInPerSecond", path=path)),
        bytes_out_per_s=float(_read_bytes(entry, "bytesOutPerSecond", path=path)),
        is_internal=is_internal,
    )


def _read_count(entry: dict[str, Any], field: str, *, most: int, path: str) -> int:
    value = entry.get(field, 1)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInput(f"must be a whole number from 1 to {most}", path=f"{path}.{field}")
    return value


def _read_bytes(entry: dict[str, Any], field: str, *, path: str) -> int:
    try:
        amount = Quantity.parse(entry.get(field, 0)).round_up()
    except (InvalidInput, TypeError, AttributeError):
        amount = -1
    if not 0 <= amount <= _LARGEST_BYTES:
        raise InvalidInput("must be an amount of bytes such as 500Mi", path=f"{path}.{field}")
    return amount
