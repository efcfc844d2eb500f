"""The annotations strimzi.io/next-node-ids and strimzi.io/remove-node-ids: `[0, 5, 10-20, 30-25]`.

A value that cannot be read is ignored with a warning: the ids are then chosen as without the annotation. One that can
be read and is probably a mistake is used, with a warning that says how.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.core.value_parsing import quote
from plimsoll.kafka.model.node_ids import HIGHEST_NODE_ID, MOST_NODES, NodeIdRange, NodeIdRanges
from plimsoll.kafka.wire.names import NEXT_NODE_IDS_ANNOTATION, REMOVE_NODE_IDS_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_RANGES: Final = 1_000
_RANGE: Final = re.compile(r"\s*(\d{1,10})(?:\s*-\s*(\d{1,10}))?\s*", re.ASCII)


def read_next_node_ids(annotations: Mapping[str, str], path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    """The ids for new nodes, and a warning if they cannot be read."""
    return _read(annotations, NEXT_NODE_IDS_ANNOTATION, path)


def read_remove_node_ids(annotations: Mapping[str, str], path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    """The ids of nodes that leave first, and a warning if they cannot be read."""
    return _read(annotations, REMOVE_NODE_IDS_ANNOTATION, path)


def parse_node_id_ranges(text: str) -> NodeIdRanges | str:
    """The ranges, or what is wrong with the text."""
    trimmed = text.strip()
    if not trimmed:
        return NodeIdRanges()
    if not (trimmed.startswith("[") and trimmed.endswith("]")):
        return "it is not a list in square brackets"
    inside = trimmed[1:-1]
    if not inside.strip():
        return NodeIdRanges()
    parts = inside.split(",", MOST_RANGES)
    if len(parts) > MOST_RANGES:
        return f"it has more than {MOST_RANGES} entries"
    ranges: list[NodeIdRange] = []
    for part in parts:
        matched = _RANGE.fullmatch(part)
        if matched is None:
            return f"{quote(part.strip())} is neither a node id nor a range of them"
        first = int(matched[1])
        last = first if matched[2] is None else int(matched[2])
        if max(first, last) > HIGHEST_NODE_ID:
            return f"{max(first, last)} is larger than the largest node id, {HIGHEST_NODE_ID}"
        ranges.append(NodeIdRange(first=first, last=last))
    return NodeIdRanges(ranges=tuple(ranges))


def _read(annotations: Mapping[str, str], annotation: str, path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    text = annotations.get(annotation, "")
    parsed = parse_node_id_ranges(text)
    field = f"metadata.annotations[{annotation}]"
    if not isinstance(parsed, NodeIdRanges):
        message = f"{path}: {field} is ignored: {parsed}. Write for example [0, 5, 10-20]"
        facts = {"field": field, "value": quote(text)}
        return NodeIdRanges(), (Reason(code="NodeIdRangesInvalid", message=message, facts=facts),)
    doubts = list(_list_doubts(parsed))
    if not doubts:
        return parsed, ()
    message = f"{path}: {field}: {'; '.join(doubts)}"
    return parsed, (Reason(code="NodeIdRangesUnusual", message=message, facts={"field": field, "value": quote(text)}),)


def _list_doubts(ranges: NodeIdRanges) -> Iterator[str]:
    """What is probably a mistake, the first of each kind."""
    for ids_range in ranges.ranges:
        if ids_range.last < ids_range.first:
            yield f"{ids_range} ends before it begins, so {ids_range.first} is taken first"
            break
    for ids_range in ranges.ranges:
        if (width := ids_range.highest - ids_range.lowest + 1) > MOST_NODES:
            yield f"{ids_range} has {width} ids, and a pool has at most {MOST_NODES} nodes"
            break
    ordered = sorted(ranges.ranges, key=lambda ids_range: ids_range.lowest)
    widest = ordered[0] if ordered else None
    for ids_range in ordered[1:]:
        assert widest is not None
        if ids_range.lowest <= widest.highest:
            yield f"{widest} and {ids_range} overlap, and each id is taken once"
            break
        widest = ids_range
