"""What a dump that was edited by hand can get wrong: names that Kafka refuses, references to what is not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.kafka.model.description import ClusterDescription, PartitionDescription

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_LIMIT: Final = re.compile(r"Expected `(?P<kind>\w+)`(?P<length> of length)? (?P<sign>>=|<=|>|<) (?P<limit>\S+)")
_TYPE: Final = re.compile(r"Expected `(?P<kind>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>\w+)`")
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_SIGNS: Final = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


def check_consistency(description: ClusterDescription) -> None:
    """Raise `InvalidInput` with the path of the first field that no cluster has."""
    dirs_of = {
        broker.id: None if broker.log_dirs is None else {log_dir.path for log_dir in broker.log_dirs}
        for broker in description.brokers
    }
    for index, topic in enumerate(description.topics):
        path = f"topics[{index}]"
        if not _TOPIC_NAME.fullmatch(topic.name) or topic.name in {".", ".."}:
            problem = f"{topic.name!r} is no name of a topic: letters, digits, '.', '_' and '-', and not '.' or '..'"
            raise InvalidInput(problem, path=f"{path}.name")
        for number, partition in enumerate(topic.partitions):
            _check_partition(partition, dirs_of, f"{path}.partitions[{number}]")


def _check_partition(partition: PartitionDescription, dirs_of: dict[int, set[str] | None], path: str) -> None:
    replicas = partition.replicas
    if partition.leader != -1 and replicas and partition.leader not in replicas:
        problem = f"broker {partition.leader} is not among the replicas {list(replicas)}; -1 is no leader"
        raise InvalidInput(problem, path=f"{path}.leader")
    for number, log in enumerate(partition.logs):
        known = dirs_of.get(log.broker)
        if log.log_dir and known is not None and log.log_dir not in known:
            problem = f"broker {log.broker} has no log directory {log.log_dir}; it has {', '.join(sorted(known))}"
            raise InvalidInput(problem, path=f"{path}.logs[{number}].logDir")


def translate_problem(problem: str) -> str:
    """A complaint of the decoder in words that name no type of Python."""
    if limit := _LIMIT.fullmatch(problem):
        kind = _KINDS.get(limit["kind"], limit["kind"])
        unit = " characters" if limit["length"] else ""
        return f"must be {kind} {_SIGNS[limit['sign']]} {limit['limit']}{unit}"
    if found := _TYPE.fullmatch(problem):
        kinds = " or ".join(_KINDS.get(kind, kind) for kind in found["kind"].split(" | "))
        return f"must be {kinds}, and is {_KINDS.get(found['got'], found['got'])}"
    if missing := _MISSING.fullmatch(problem):
        return f"the field {missing['name']} is missing"
    return problem
