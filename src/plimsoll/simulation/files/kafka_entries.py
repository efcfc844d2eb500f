"""The section `kafka` of a scenario: the topics that simulated clusters begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.local.kafka.topic_seeds import TopicSeed, read_topic_seeds
from plimsoll.simulation.scenario import KafkaEntry

if TYPE_CHECKING:
    from plimsoll.kube.informer.events import Key
    from plimsoll.simulation.document import DocumentValue

_FIELDS: Final = ("name", "namespace", "topics")


def read_kafka_entries(given: DocumentValue) -> tuple[KafkaEntry, ...]:
    """The entries; problems are added to the document."""
    entries: dict[Key, KafkaEntry] = {}
    for item in given.read_items():
        entry = _read_entry(item)
        if entry.name and entry.key in entries:
            item.get_place("name").add_problem(f"{entry.key} occurs twice")
        entries[entry.key] = entry
    return tuple(entries.values())


def _read_entry(given: DocumentValue) -> KafkaEntry:
    fields = given.read_fields(_FIELDS)
    if "name" not in fields:
        given.add_problem("name is missing")
    return KafkaEntry(
        name=fields["name"].read_text() if "name" in fields else "",
        namespace=fields["namespace"].read_text() if "namespace" in fields else "default",
        topics=_read_topics(fields["topics"]) if "topics" in fields else (),
    )


def _read_topics(given: DocumentValue) -> tuple[TopicSeed, ...]:
    try:
        return read_topic_seeds(given.value, path=given.path)
    except InvalidInput as error:
        given.get_place(error.path.removeprefix(given.path).removeprefix(".")).add_problem(error.problem)
        return ()
