"""Dumps: a description of a cluster as a JSON file, for plans without the cluster.

Equal descriptions give equal bytes, whatever the order in which brokers answered. Reading is strict about types,
ranges, repeated keys and references; what makes no sense as a whole (a broker listed twice) is found when the model is
built. A dump may also be written in YAML. Fields that are not known are ignored, because a later version may have
written them; `parse_dump` names them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
import msgspec.inspect

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.kafka.brokers.dump_checks import check_consistency, translate_problem
from plimsoll.kafka.model.description import FORMAT, ClusterDescription
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.description import PartitionDescription, TopicDescription

LARGEST_DUMP_BYTES: Final = 1 << 30
"""A million replicas take about 200 MB."""

_NAMED_AT_MOST: Final = 20
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(ClusterDescription)


def write_dump(description: ClusterDescription) -> bytes:
    """The dump of a description."""
    ordered = msgspec.structs.replace(
        description,
        brokers=tuple(sorted(description.brokers, key=lambda broker: broker.id)),
        topics=tuple(_order_topic(topic) for topic in sorted(description.topics, key=lambda topic: topic.name)),
        format=FORMAT,
    )
    return _ENCODER.encode(ordered) + b"\n"


def read_dump(data: bytes) -> ClusterDescription:
    """The description of a dump. Raises `InvalidInput` with the path of the field."""
    return parse_dump(data)[0]


def parse_dump(data: bytes) -> tuple[ClusterDescription, list[str]]:
    """The description of a dump, and the paths of fields that no version of a dump has. Raises `InvalidInput`.

    A misspelt field would be lost without a word.
    """
    if len(data) > LARGEST_DUMP_BYTES:
        raise InvalidInput(f"the dump has more than {LARGEST_DUMP_BYTES} bytes")
    description = _decode_plain(data)
    if description is not None:
        check_consistency(description)
        return description, []
    document = _read_document(data)
    found = document.get("format", "")
    if found != FORMAT:
        wanted = f"a dump of Kafka has {FORMAT}"
        raise InvalidInput(f"is {str(found)[:100]!r}; {wanted}" if found else f"is missing; {wanted}", path="format")
    try:
        description = msgspec.convert(document, ClusterDescription)
    except msgspec.ValidationError as error:
        raise _explain(error) from error
    check_consistency(description)
    return description, list(islice(_walk(document, msgspec.inspect.type_info(ClusterDescription), ""), _NAMED_AT_MOST))


def _decode_plain(data: bytes) -> ClusterDescription | None:
    """The description of a dump with the fields that `write_dump` writes, each once, in its order; None: any other.

    Only such a dump is equal to its description, encoded again. So it has no field that is not known and no key twice,
    and needs no second look. Blanks between the fields make no difference.
    """
    try:
        description = _DECODER.decode(data)
        is_plain = msgspec.json.format(data, indent=-1) == _ENCODER.encode(description)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # the strict reader names the mistake
    return description if is_plain and description.format == FORMAT else None


def _read_document(data: bytes) -> dict[str, Any]:
    """The only document of a file. The content decides between JSON and YAML."""
    documents = [document for _, document in read_documents(data, source="", letters_are_text=True)]
    if not documents:
        raise UnreadableDocument("is empty; plimsoll kafka dump writes a dump")
    if len(documents) > 1 or not isinstance(documents[0], dict):
        raise UnreadableDocument("is not a dump, which is one object")
    return documents[0]


def _explain(error: msgspec.ValidationError) -> InvalidInput:
    """The error in words, with the path of the field."""
    text = describe_problem(error)
    path, _, problem = text.partition(": ")
    return InvalidInput(translate_problem(text)) if " " in path else InvalidInput(translate_problem(problem), path=path)


def _walk(value: Any, kind: msgspec.inspect.Type, path: str) -> Iterator[str]:
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next((part for part in kind.types if not isinstance(part, msgspec.inspect.NoneType)), kind)
    if isinstance(kind, msgspec.inspect.VarTupleType) and isinstance(value, list):
        if isinstance(kind.item_type, msgspec.inspect.StructType):
            for index, item in enumerate(value):
                yield from _walk(item, kind.item_type, f"{path}[{index}]")
    elif isinstance(kind, msgspec.inspect.StructType) and isinstance(value, dict):
        known = {field.encode_name: field.type for field in kind.fields}
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            if name not in known:
                yield below
            elif isinstance(item, (dict, list)):
                yield from _walk(item, known[name], below)


def _order_topic(topic: TopicDescription) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition)
    return msgspec.structs.replace(topic, partitions=tuple(_order_partition(partition) for partition in partitions))


def _order_partition(partition: PartitionDescription) -> PartitionDescription:
    """The order of replicas has a meaning; that of the others has none."""
    return msgspec.structs.replace(
        partition,
        isr=tuple(sorted(partition.isr)),
        offline=tuple(sorted(partition.offline)),
        logs=tuple(sorted(partition.logs, key=lambda log: (log.broker, log.is_future, log.log_dir))),
    )
